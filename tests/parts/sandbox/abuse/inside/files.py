"""Probes of files, devices and what the kernel shows as files."""

from __future__ import annotations

import os
from contextlib import suppress

from tests.parts.sandbox.abuse.inside.kit import Facts, Try, opened, probe, read

GROUP = "files and devices"
WRITABLE = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
)
DEVICES = (
    "/dev/mem",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/fuse",
    "/dev/net/tun",
    "/dev/loop-control",
    "/dev/vda",
    "/dev/tty1",
)
"""The probe names those; a machine that has none of a kind cannot leak it."""
READABLE = ("/proc/kcore", "/proc/kpagecount", "/proc/timer_list", "/proc/vmallocinfo")


def _opens(path: str, flags: int) -> Try:
    def run(facts: Facts) -> str:
        return opened(path, flags)

    return run


for _path in WRITABLE:
    probe(GROUP, f"open {_path} for writing")(_opens(_path, os.O_WRONLY))
for _path in DEVICES:
    probe(GROUP, f"open {_path}")(_opens(_path, os.O_RDONLY))
for _path in READABLE:
    probe(GROUP, f"open {_path} for reading")(_opens(_path, os.O_RDONLY))


@probe(GROUP, "read a file of the machine in /dev/shm")
def shared_file(facts: Facts) -> str:
    return opened(facts["shared"])


@probe(GROUP, "list the kernel's keys")
def keys(facts: Facts) -> str:
    return read("/proc/keys") or read("/proc/key-users")


@probe(GROUP, "learn kernel addresses from /proc/kallsyms")
def kernel_addresses(facts: Facts) -> str:
    first = read("/proc/kallsyms").split()[0]
    return first if int(first, 16) else ""


@probe(GROUP, "read the kernel's command line")
def command_line(facts: Facts) -> str:
    return read("/proc/cmdline")


def _unnamed(folder: str) -> Try:
    def run(facts: Facts) -> str:
        fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY)  # a file without a name goes with its descriptor
        os.close(fd)
        return f"a file was made in {folder}"

    return run


for _path in ("/usr", "/usr/bin", "/usr/local/lib", "/etc", "/dev", "/var/tmp", "/run", "/opt", "/"):
    probe(GROUP, f"make a file without a name in {_path}")(_unnamed(_path))


@probe(GROUP, "give a name in the workspace to a file of the machine")
def hard_link(facts: Facts) -> str:
    os.link(facts["secret"], "linked")
    os.unlink("linked")
    return "linked"


@probe(GROUP, "climb out of the root by descriptors")
def climbed(facts: Facts) -> str:
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(20):  # up and up, by descriptors
        fd = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    os.close(os.open(facts["secret"].lstrip("/"), os.O_RDONLY, dir_fd=fd))
    return "opened by descriptors"


@probe(GROUP, "see where on the machine the workspace lies")
def mount_table(facts: Facts) -> str:
    table = read("/proc/self/mountinfo", 100_000)
    return next((line for line in table.splitlines() if facts["above"] in line), "")


@probe(GROUP, "see mounts of the machine")
def machine_mounts(facts: Facts) -> str:
    seen = [line.split()[1] for line in read("/proc/self/mounts", 100_000).splitlines()]
    return " ".join(one for one in seen if one.startswith(("/sys", "/run", "/boot", "/home", "/root", "/var")))


@probe(GROUP, "make a file that runs as its owner")
def set_id(facts: Facts) -> str:
    with open("ours", "w"):
        pass
    try:
        os.chmod("ours", 0o4755)
        return "it was made" if os.stat("ours").st_mode & 0o4000 else ""
    finally:
        os.unlink("ours")


@probe(GROUP, "open a file with a mode that runs as its owner")
def set_id_open(facts: Facts) -> str:
    try:
        os.close(os.open("ours", os.O_CREAT | os.O_WRONLY, 0o4755))
        return "it was made" if os.stat("ours").st_mode & 0o4000 else ""
    finally:
        with suppress(FileNotFoundError):
            os.unlink("ours")


@probe(GROUP, "make a folder that hands its group on")
def set_group(facts: Facts) -> str:
    os.mkdir("ours")
    try:
        os.chmod("ours", 0o2755)
        return "it was made" if os.stat("ours").st_mode & 0o2000 else ""
    finally:
        os.rmdir("ours")


@probe(GROUP, "make a device")
def device(facts: Facts) -> str:
    os.mknod("null", 0o020666, os.makedev(1, 3))
    os.unlink("null")
    return "made"


@probe(GROUP, "give a program of ours capabilities")
def file_capability(facts: Facts) -> str:
    with open("ours", "w"):
        pass
    try:
        os.setxattr("ours", "security.capability", bytes.fromhex("01000002" + "00" * 16))
    finally:
        os.unlink("ours")
    return "given"


@probe(GROUP, "give a file of ours away")
def give_away(facts: Facts) -> str:
    with open("ours", "w"):
        pass
    try:
        os.chown("ours", 12_345, -1)
    finally:
        os.unlink("ours")
    return "given"


@probe(GROUP, "put more than the limit into /dev/shm")
def shared_memory(facts: Facts) -> str:
    found = os.statvfs("/dev/shm")
    size = found.f_blocks * found.f_frsize
    fd = os.open("/dev/shm", os.O_TMPFILE | os.O_WRONLY)
    os.close(fd)
    return f"{size} bytes" if size > int(facts["tmp_bytes"]) else ""
