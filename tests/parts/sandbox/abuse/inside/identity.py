"""Probes of who one is, and what one can find out about the machine."""

from __future__ import annotations

import fcntl
import os

from tests.parts.sandbox.abuse.inside.kit import Facts, Try, opened, probe, read

GROUP = "identity and machine"


def _status(name: str) -> str:
    for line in read("/proc/self/status", 4_000).splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return ""


def _capability(name: str) -> Try:
    def run(facts: Facts) -> str:
        return f"{name} {_status(name)}" if int(_status(name), 16) else ""

    return run


for _name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"):
    probe(GROUP, f"hold capabilities ({_name})")(_capability(_name))


@probe(GROUP, "become root")
def root(facts: Facts) -> str:
    os.setuid(0)
    return "root"


@probe(GROUP, "become root's group")
def group(facts: Facts) -> str:
    os.setgid(0)
    return "root's group"


@probe(GROUP, "join another group")
def groups(facts: Facts) -> str:
    os.setgroups([0, 4])
    return "joined"


@probe(GROUP, "keep a group of the runtime")
def kept(facts: Facts) -> str:
    found = [one for one in os.getgroups() if one not in {os.getgid(), 65534}]
    return f"{found}" if found else ""


@probe(GROUP, "gain rights from a program that runs as its owner")
def privileges(facts: Facts) -> str:
    import ctypes

    return "" if ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1 else "new privileges can be gained"


@probe(GROUP, "find root behind the user that it is")
def behind(facts: Facts) -> str:
    with open("owned", "w"):
        pass
    found = os.stat("owned").st_uid
    os.unlink("owned")
    return "files belong to root" if found == 0 else ""


@probe(GROUP, "learn the machine's name")
def name(facts: Facts) -> str:
    return os.uname().nodename if os.uname().nodename == facts["hostname"] else ""


@probe(GROUP, "have more than one user to become")
def mapped(facts: Facts) -> str:
    rows = [line.split() for line in read("/proc/self/uid_map", 4_000).splitlines()]
    return f"{rows}" if len(rows) != 1 or rows[0][2] != "1" else ""


@probe(GROUP, "learn the cgroup that it is in")
def cgroup(facts: Facts) -> str:
    found = [line.split(":", 2)[2] for line in read("/proc/self/cgroup", 4_000).splitlines()]
    return " ".join(sorted({path for path in found if path not in {"/", "/.."} and "remit" in path}))


@probe(GROUP, "learn when the machine was started")
def boot(facts: Facts) -> str:
    return read("/proc/sys/kernel/random/boot_id")


@probe(GROUP, "learn how busy the machine is")
def busy(facts: Facts) -> str:
    return read("/proc/loadavg")


@probe(GROUP, "learn which kernel and processor it runs on")
def kernel(facts: Facts) -> str:
    return os.uname().release


def _terminal(request: int) -> Try:
    def run(facts: Facts) -> str:
        try:
            fcntl.ioctl(0, request, b"\0")
        except OSError as error:
            return "" if error.errno == 1 else f"the driver answered: {error.strerror}"
        return "done"

    return run


for _request, _title in ((0x5412, "TIOCSTI"), (0x541C, "TIOCLINUX"), (0x5423, "TIOCSETD"), (0x5437, "TIOCVHANGUP")):
    probe(GROUP, f"put words into a terminal's mouth ({_title})")(_terminal(_request))


@probe(GROUP, "put words into a terminal's mouth (TIOCSTI with high bits set)")
def high_bits(facts: Facts) -> str:
    from tests.parts.sandbox.abuse.inside.kit import let_in

    return let_in(16 if os.uname().machine == "x86_64" else 29, 0, 0x5412 | 1 << 32, 1)


@probe(GROUP, "open the terminal of the runtime")
def terminal(facts: Facts) -> str:
    return opened("/dev/tty", os.O_RDWR)


@probe(GROUP, "share the session of the runtime")
def session(facts: Facts) -> str:
    return "the same session" if str(os.getsid(0)) == facts["session"] else ""
