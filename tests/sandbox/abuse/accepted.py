"""What leaks, and why that is so. Whatever leaks without standing here is a defect."""

from __future__ import annotations

from typing import Final

_KERNEL: Final = "The kernel is the machine's; only `kernel` isolation (gVisor, WebAssembly) hides it."
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
