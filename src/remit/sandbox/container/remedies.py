"""What to do if docker or podman says no: the messages that they are known for."""

from __future__ import annotations

from typing import Final

_RUNTIME: Final = "Install that runtime and make it known to the service, or leave sandbox.container_runtime empty."
_KNOWN: Final = (
    (
        "cgroups in hybrid mode",
        'crun cannot work with both versions of cgroups mounted: install runc and set container_runtime = "runc".',
    ),
    ("image not known", "Fetch the image: `{program} pull {image}`."),
    ("No such image", "Fetch the image: `{program} pull {image}`."),
    ("Unable to find image", "Fetch the image: `{program} pull {image}`."),
    (
        "permission denied while trying to connect",
        "Add this user to the group docker, or use podman.",
    ),
    ("Cannot connect to the Docker daemon", "Start the service: `systemctl start docker`."),
    ("OCI runtime", _RUNTIME),
    ("runtime name", _RUNTIME),
    ("Unknown runtime", _RUNTIME),
    (
        "newuidmap",
        (
            "Give this user a range of user numbers, `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
            "USER`, and install the package uidmap."
        ),
    ),
    (
        "rlimits",
        "The limits of this process are lower than those of the sandbox: raise them (`ulimit -Hn`), or lower its own.",
    ),
)


def remedy_for(message: str, program: str, image: str) -> str:
    """What to do about a message of docker or podman; how to look further, if it is not known."""
    found = next((remedy for part, remedy in _KNOWN if part in message), "")
    unknown = (
        "Check whether it runs at all: `{program} run --rm {image} /bin/sh -c true`. Start its service if it has one."
    )
    return (found or unknown).format(program=program, image=image)
