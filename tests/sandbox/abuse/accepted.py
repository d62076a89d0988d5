"""What leaks, and why that is so. Whatever leaks without standing here is a defect."""

from __future__ import annotations

from typing import Final

_KERNEL: Final = "The kernel is the machine's; only `kernel` isolation (gVisor, WebAssembly) hides it."
_FIRST: Final = "It is the program itself, or its own parent: they are its own variables and descriptors."
ACCEPTED: Final[dict[tuple[str, str], str]] = {
    ("bwrap", "see where on the machine the workspace lies"): (
        "The kernel shows the source of each bind mount. It is a name: nothing of what lies there can be opened."
    ),
    ("bwrap", "learn the cgroup that it is in"): (
        "A process reads the name of its own cgroup, and so the process number of Remit. The cgroup itself is not there."
    ),
    (
        "bwrap",
        "learn when the machine was started",
    ): "The boot identifier is the kernel's, and no namespace has another.",
    ("bwrap", "learn how busy the machine is"): "Load, memory and processors in /proc are the machine's.",
    ("bwrap", "learn which kernel and processor it runs on"): _KERNEL,
    ("bwrap", "connect to a socket file in the inputs"): (
        "A socket in a folder that the operator gives belongs to what was given. Remit's tools write regular files only."
    ),
    (
        "container",
        "open /proc/timer_list for reading",
    ): "What is opened is `/dev/null`: the service hides the file by it.",
    ("container", "see where on the machine the workspace lies"): (
        "The kernel shows the source of each bind mount. It is a name: nothing of what lies there can be opened."
    ),
    ("container", "see mounts of the machine"): (
        "A container has `/sys` with its own cgroups, and what its service puts into `/run`, all of it read-only."
    ),
    ("container", "list /sys"): "The same.",
    ("container", "list /run"): "The same.",
    ("container", "have more than one user to become"): (
        "A service that runs as root makes no user namespace. Without capabilities no program becomes another user."
    ),
    ("container", "learn when the machine was started"): "The boot identifier is the kernel's.",
    ("container", "learn how busy the machine is"): "Load, memory and processors in /proc are the machine's.",
    ("container", "learn which kernel and processor it runs on"): _KERNEL,
    ("container", "connect to a socket file in the inputs"): (
        "A socket in a folder that the operator gives belongs to what was given. Remit's tools write regular files only."
    ),
    ("container", "read variables of the sandbox's first process"): _FIRST,
    ("container", "take a descriptor from the sandbox's first process"): _FIRST,
    ("container", "a program that stops itself is never ended"): (
        "The first process of a container cannot stop itself: it went on, and ended by itself."
    ),
    ("container", "processes together use more processor time than the limit"): (
        "Only the service knows a container's processes. Each is held to the limit, all together to their share of time."
    ),
    ("landlock", "learn the machine's name"): "Landlock has no namespaces.",
    ("landlock", "learn which kernel and processor it runs on"): _KERNEL,
    ("landlock", "open a descriptor of a process of the machine"): (
        "Processes are shared. The descriptor tells when a process ends; it can neither signal it nor look into it."
    ),
    (
        "landlock",
        "see which processors a process of the machine may use",
    ): "Processes are shared; nothing can be changed.",
    ("landlock", "signal a process of the machine"): (
        "Landlock keeps signals in from Linux 6.12 on; before that, programs of the same user can be signalled."
    ),
    ("landlock", "signal the runtime"): "The same. If Remit is root, its programs are another user.",
    ("landlock", "connect to an abstract socket of the machine"): "Sockets cannot be made at all.",
}
