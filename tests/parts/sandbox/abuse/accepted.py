"""What leaks, and why that is so. Whatever leaks without standing here is a defect."""

from __future__ import annotations

from typing import Final

from tests.parts.sandbox.abuse.subjects import CONTAINERS

_KERNEL: Final = "The kernel is the machine's; only `kernel` isolation (gVisor) hides it."
_FIRST: Final = "It is the program itself, or its own parent: they are its own variables and descriptors."
_MOUNTED: Final = (
    "The kernel shows the source of each bind mount. It is a name: nothing of what lies there can be opened."
)
_GIVEN: Final = (
    "A socket in a folder that the operator gives belongs to what was given. Remit's tools write regular files only."
)
_CONTAINERS: Final = {
    "see where on the machine the workspace lies": _MOUNTED,
    "see mounts of the machine": (
        "A container has `/sys` with its own cgroups, and what its service puts into `/run`, all of it read-only."
    ),
    "list /sys": "It holds the container's own cgroups, and cannot be written to.",
    "have more than one user to become": (
        "A service that runs as root makes no user namespace. Without capabilities no program becomes another user."
    ),
    "learn when the machine was started": "The boot identifier is the kernel's.",
    "learn how busy the machine is": "Load, memory and processors in /proc are the machine's.",
    "learn which kernel and processor it runs on": _KERNEL,
    "connect to a socket file in the inputs": _GIVEN,
    "read variables of the sandbox's first process": _FIRST,
    "take a descriptor from the sandbox's first process": _FIRST,
    "processes together use more processor time than the limit": (
        "Only the service knows a container's processes. Each is held to the limit, all together to their share of time."
    ),
    "open /proc/timer_list for reading": "What is opened is `/dev/null`: the service hides the file by it.",
}
ACCEPTED: Final[dict[tuple[str, str], str]] = {
    ("bwrap", "see where on the machine the workspace lies"): _MOUNTED,
    ("bwrap", "learn the cgroup that it is in"): (
        "A process reads the name of its own cgroup, and so the process number of Remit. The cgroup itself is not there."
    ),
    (
        "bwrap",
        "learn when the machine was started",
    ): "The boot identifier is the kernel's, and no namespace has another.",
    ("bwrap", "learn how busy the machine is"): "Load, memory and processors in /proc are the machine's.",
    ("bwrap", "learn which kernel and processor it runs on"): _KERNEL,
    ("bwrap", "connect to a socket file in the inputs"): _GIVEN,
    **{(name, title): why for name in CONTAINERS for title, why in _CONTAINERS.items()},
    ("podman", "list /run"): "podman puts a file there that says that it is a container.",
    ("docker", "list the kernel's keys"): "How many keys each user has, in `/proc/key-users`; docker cannot hide it.",
    ("docker", "read the kernel's command line"): "docker hides only what it hides by itself, and that not.",
}
