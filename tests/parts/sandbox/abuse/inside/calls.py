"""Probes of system calls, each with arguments that do nothing: what matters is who refuses it."""

from __future__ import annotations

from tests.parts.sandbox.abuse.inside.kit import BAD, Facts, Try, called, let_in, probe
from tests.parts.sandbox.abuse.inside.numbers import number_of

GROUP = "system calls"
MANY = 1 << 20
CALLS: dict[str, tuple[int, ...]] = {
    "mount": (BAD, BAD, BAD, 0, BAD),
    "umount2": (BAD, 0),
    "pivot_root": (BAD, BAD),
    "chroot": (BAD,),
    "setns": (-1, 0),
    "open_tree": (-1, BAD, 0),
    "move_mount": (-1, BAD, -1, BAD, 0),
    "fsopen": (BAD, 0),
    "fsconfig": (-1, 0, 0, 0, 0),
    "fsmount": (-1, 0, 0),
    "fspick": (-1, BAD, 0),
    "mount_setattr": (-1, BAD, 0, 0, 0),
    "swapon": (BAD, 0),
    "swapoff": (BAD,),
    "acct": (BAD,),
    "quotactl": (0, BAD, 0, 0),
    "quotactl_fd": (-1, 0, 0, 0),
    "init_module": (BAD, 64, BAD),
    "finit_module": (-1, BAD, 0),
    "delete_module": (BAD, 0),
    "kexec_load": (0, MANY, BAD, 0),
    "kexec_file_load": (-1, -1, 0, BAD, 0xFFFF),
    "bpf": (9_999, BAD, 8),
    "perf_event_open": (BAD, 0, -1, -1, 0),
    "userfaultfd": (0xFFFF,),
    "io_uring_setup": (0, BAD),
    "io_uring_enter": (-1, 0, 0, 0, 0, 0),
    "io_uring_register": (-1, 0, 0, 0),
    "keyctl": (0, -3, 0, 0, 0),
    "add_key": (BAD, BAD, 0, 0, -3),
    "request_key": (BAD, BAD, 0, -3),
    "seccomp": (99, 0, 0),
    "reboot": (0, 0, 0, 0),
    "sethostname": (BAD, 5),
    "setdomainname": (BAD, 5),
    "settimeofday": (BAD, 0),
    "clock_settime": (0, BAD),
    "clock_adjtime": (0, BAD),
    "adjtimex": (BAD,),
    "syslog": (10, 0, 0),
    "iopl": (99,),
    "ioperm": (70_000, 1, 1),
    "modify_ldt": (0, BAD, 0),
    "kcmp": (1, 1, 99, 0, 0),
    "name_to_handle_at": (-1, BAD, BAD, BAD, 0),
    "open_by_handle_at": (-1, BAD, 0),
    "fanotify_init": (0xFFFFFFFF, 0),
    "fanotify_mark": (-1, 0, 0, -1, 0),
    "pidfd_getfd": (-1, 0, 0),
    "process_madvise": (-1, BAD, 1, 0, 0),
    "process_mrelease": (-1, 0),
    "process_vm_writev": (1, BAD, 1, BAD, 1, 0),
    "move_pages": (0, 1, BAD, 0, BAD, 0),
    "migrate_pages": (0, 1, BAD, BAD),
    "mbind": (0, 0, 99, 0, 0, 99),
    "set_mempolicy": (99, 0, 0),
    "get_mempolicy": (BAD, 0, 0, 0, 99),
    "clone3": (0, 0),
    "openat2": (-1, BAD, BAD, 0),
    "memfd_secret": (0xFFFF,),
    "fchmodat2": (-1, BAD, 0o4755, 0),
    "ioprio_set": (1, 0, 1 << 13),
    "statmount": (BAD, BAD, 0, 0),
    "listmount": (BAD, BAD, 0, 0),
    "lsm_set_self_attr": (99, BAD, 0, 0),
    "map_shadow_stack": (0, 0, 99),
}
"""The call, and arguments that the kernel refuses once it has let the caller in."""


def _asks(name: str, args: tuple[int, ...]) -> Try:
    def run(facts: Facts) -> str:
        return let_in(number_of(name), *args)

    return run


for _name, _args in CALLS.items():
    probe(GROUP, _name)(_asks(_name, _args))


@probe(GROUP, "unshare, a user namespace")
def unshared(facts: Facts) -> str:
    return let_in(number_of("unshare"), 0x10000000)


@probe(GROUP, "unshare, a mount namespace")
def unshared_mounts(facts: Facts) -> str:
    return let_in(number_of("unshare"), 0x20000)


@probe(GROUP, "prctl, a filter of its own")
def filtered(facts: Facts) -> str:
    return let_in(number_of("prctl"), 22, 99, 0, 0, 0)


@probe(GROUP, "prctl, where its memory lies")
def memory_map(facts: Facts) -> str:
    return let_in(number_of("prctl"), 35, 99, 0, 0, 0)


@probe(GROUP, "personality, memory without protection")
def unprotected(facts: Facts) -> str:
    found, _ = called(number_of("personality"), 0x0400000)
    return "it was set" if found >= 0 else ""


@probe(GROUP, "personality, memory at fixed addresses")
def fixed(facts: Facts) -> str:
    found, _ = called(number_of("personality"), 0x0040000)
    return "it was set" if found >= 0 else ""
