"""Calls that sandboxed programs may ask of the kernel. An allowlist: what is not named here does not exist (ENOSYS).

What a program might expect to be refused is refused with EPERM, so that it does not look for another way. Arguments are
compared by their low 32 bits wherever the kernel looks at no more of them (ioctl's request, clone's flags, modes).
"""

from __future__ import annotations

import errno
from typing import Final, NamedTuple


class Argument(NamedTuple):
    """A test of one argument; the call is refused with `error` if it `holds`."""

    number: int
    how: str
    """`equal`, `any_bit`, or `not_in`."""
    values: tuple[int, ...]
    error: int = errno.EPERM
    mask: int | None = None
    only_if: tuple[int, int] | None = None
    """(index, bits): the test counts only if that argument has one of these bits."""


_NAMESPACES: Final = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, and NEWTIME."""
_SET_ID: Final = 0o6000
_DEVICES: Final = (0o020000, 0o060000)
_KIND: Final = 0o170000
_CREATES: Final = 0o100 | 0o20000000
"""O_CREAT and __O_TMPFILE: only with them does open look at a mode."""
_FAMILIES: Final = (1, 2, 10)
"""UNIX, INET, INET6. A network namespace does not keep VSOCK (40) from the host."""
_TERMINAL: Final = (0x5412, 0x541C, 0x5423, 0x5437)
"""TIOCSTI puts words into the terminal's mouth, TIOCLINUX too; TIOCSETD and TIOCVHANGUP reach into its driver."""

REFUSED: Final[dict[str, tuple[Argument, ...]]] = {
    "clone": (Argument(0, "any_bit", (_NAMESPACES,)),),
    "socket": (Argument(0, "not_in", _FAMILIES, errno.EAFNOSUPPORT),),
    "socketpair": (Argument(0, "not_in", (1,), errno.EAFNOSUPPORT),),
    "ioctl": (Argument(1, "equal", _TERMINAL),),
    "prctl": (Argument(0, "equal", (22, 35)),),  # PR_SET_SECCOMP, PR_SET_MM
    "personality": (Argument(0, "not_in", (0, 0x20000, 0xFFFFFFFF)),),
    "chmod": (Argument(1, "any_bit", (_SET_ID,)),),
    "fchmod": (Argument(1, "any_bit", (_SET_ID,)),),
    "fchmodat": (Argument(2, "any_bit", (_SET_ID,)),),
    "creat": (Argument(1, "any_bit", (_SET_ID,)),),
    "open": (Argument(2, "any_bit", (_SET_ID,), only_if=(1, _CREATES)),),
    "openat": (Argument(3, "any_bit", (_SET_ID,), only_if=(2, _CREATES)),),
    "mkdir": (Argument(1, "any_bit", (_SET_ID,)),),
    "mkdirat": (Argument(2, "any_bit", (_SET_ID,)),),
    "mknod": (Argument(1, "any_bit", (_SET_ID,)), Argument(1, "equal", _DEVICES, mask=_KIND)),
    "mknodat": (Argument(2, "any_bit", (_SET_ID,)), Argument(2, "equal", _DEVICES, mask=_KIND)),
}
"""Calls that are allowed unless one of these tests holds."""

_NESTED: Final = 0x70000000
"""CLONE_NEWUSER, NEWPID and NEWNET: the namespaces of which Chromium makes its sandbox."""
BROWSER: Final[dict[str, tuple[Argument, ...]]] = {
    "chroot": (),
    "clone": (Argument(0, "any_bit", (_NAMESPACES & ~_NESTED,)),),
    "prctl": (Argument(0, "equal", (35,)),),  # PR_SET_MM
    "seccomp": (),
    "unshare": (Argument(0, "any_bit", (_NAMESPACES & ~_NESTED,)),),
}
"""The calls that a browser may ask for instead, so that each page runs in a sandbox within ours; the rest stays as it
is.
"""

FORBIDDEN: Final = frozenset(
    [
        "acct",
        "add_key",
        "adjtimex",
        "bpf",
        "chroot",
        "clock_adjtime",
        "clock_settime",
        "create_module",
        "delete_module",
        "fanotify_init",
        "fanotify_mark",
        "finit_module",
        "fsconfig",
        "fsmount",
        "fsopen",
        "fspick",
        "get_kernel_syms",
        "get_mempolicy",
        "init_module",
        "ioperm",
        "iopl",
        "io_uring_enter",
        "io_uring_register",
        "io_uring_setup",
        "kcmp",
        "kexec_file_load",
        "kexec_load",
        "keyctl",
        "lookup_dcookie",
        "mbind",
        "migrate_pages",
        "modify_ldt",
        "mount",
        "mount_setattr",
        "move_mount",
        "move_pages",
        "name_to_handle_at",
        "nfsservctl",
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "pidfd_getfd",
        "pivot_root",
        "process_madvise",
        "process_mrelease",
        "process_vm_readv",
        "process_vm_writev",
        "ptrace",
        "query_module",
        "quotactl",
        "quotactl_fd",
        "reboot",
        "request_key",
        "seccomp",
        "set_mempolicy",
        "setdomainname",
        "sethostname",
        "setns",
        "settimeofday",
        "swapoff",
        "swapon",
        "syslog",
        "umount2",
        "unshare",
        "uselib",
        "userfaultfd",
        "ustat",
        "vhangup",
    ]
)
"""Answered with EPERM."""

ABSENT: Final = frozenset(
    [
        "_sysctl",
        "afs_syscall",
        "clone3",
        "epoll_ctl_old",
        "epoll_wait_old",
        "get_thread_area",
        "getpmsg",
        "memfd_secret",
        "openat2",
        "putpmsg",
        "security",
        "set_mempolicy_home_node",
        "set_thread_area",
        "sysfs",
        "tuxcall",
        "vserver",
    ]
)
"""Answered with ENOSYS: dead, or with arguments behind a pointer, which a filter cannot see (clone3, openat2)."""
