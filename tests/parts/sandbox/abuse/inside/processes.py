"""Probes of other processes: those of the machine, and the sandbox's own first one."""

from __future__ import annotations

import ctypes
import os
import resource

from tests.parts.sandbox.abuse.inside.kit import BAD, Facts, Try, called, let_in, libc, opened, probe, read, x86_64
from tests.parts.sandbox.abuse.inside.numbers import number_of

GROUP = "processes"
# The victim is a process of the machine with the user of the sandbox. Its number is so high that within a PID namespace
# nobody bears it.


def _of_victim(name: str) -> Try:
    def run(facts: Facts) -> str:
        return read(f"/proc/{facts['victim']}/{name}") or f"{name} was read"

    return run


for _name in ("cmdline", "environ", "maps", "status", "stack"):
    probe(GROUP, f"read {_name} of a process of the machine")(_of_victim(_name))


def _link_of_victim(name: str) -> Try:
    def run(facts: Facts) -> str:
        return os.readlink(f"/proc/{facts['victim']}/{name}")

    return run


for _name in ("exe", "cwd", "root", "fd/0", "ns/net"):
    probe(GROUP, f"follow {_name} of a process of the machine")(_link_of_victim(_name))


@probe(GROUP, "open the memory of a process of the machine")
def memory(facts: Facts) -> str:
    return opened(f"/proc/{facts['victim']}/mem", os.O_RDWR)


@probe(GROUP, "signal a process of the machine")
def signalled(facts: Facts) -> str:
    os.kill(int(facts["victim"]), 0)
    return "it could be signalled"


@probe(GROUP, "signal the runtime")
def runtime(facts: Facts) -> str:
    os.kill(int(facts["runtime"]), 0)
    return "it could be signalled"


@probe(GROUP, "open a descriptor of a process of the machine")
def pidfd(facts: Facts) -> str:
    found, _ = called(number_of("pidfd_open"), int(facts["victim"]), 0)
    return "it was opened" if found >= 0 else ""


@probe(GROUP, "trace a process of the machine")
def seized(facts: Facts) -> str:
    found, _ = called(number_of("ptrace"), 0x4206, int(facts["victim"]), 0, 0)  # PTRACE_SEIZE stops nothing
    return "it was seized" if found == 0 else ""


@probe(GROUP, "be traced")
def traced(facts: Facts) -> str:
    return let_in(number_of("ptrace"), 0, 0, 0, 0)


@probe(GROUP, "change the priority of a process of the machine")
def priority(facts: Facts) -> str:
    pid = int(facts["victim"])
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return "it was set"


@probe(GROUP, "see which processors a process of the machine may use")
def affinity(facts: Facts) -> str:
    return f"{os.sched_getaffinity(int(facts['victim']))}"


@probe(GROUP, "set the limits of a process of the machine")
def limits(facts: Facts) -> str:
    pid = int(facts["victim"])
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))
    return "they were set"


@probe(GROUP, "count the processes of the machine")
def counted(facts: Facts) -> str:
    found = [name for name in os.listdir("/proc") if name.isdigit()]
    return f"{len(found)} are in sight" if facts["victim"] in found else ""


@probe(GROUP, "write to the memory of the sandbox's first process")
def first_memory(facts: Facts) -> str:
    status = read("/proc/1/status", 4_000)
    fd = os.open("/proc/1/mem", os.O_RDWR)
    os.close(fd)
    filtered = "Seccomp:\t2" in status  # under the same filter it can do no more than we can
    return "" if filtered else "it can be written to, and no filter holds it"


@probe(GROUP, "find the sandbox's first process without a filter")
def first_filter(facts: Facts) -> str:
    return "" if "Seccomp:\t2" in read("/proc/1/status", 4_000) else "no filter holds it"


@probe(GROUP, "read variables of the sandbox's first process")
def first_environment(facts: Facts) -> str:
    return read("/proc/1/environ")


@probe(GROUP, "take a descriptor from the sandbox's first process")
def first_descriptors(facts: Facts) -> str:
    found = [os.readlink(f"/proc/1/fd/{fd}") for fd in os.listdir("/proc/1/fd") if int(fd) > 2]
    return " ".join(one for one in found if not one.startswith(("anon_inode:[eventfd]", "anon_inode:[signalfd]")))


@probe(GROUP, "inherit a descriptor of the runtime")
def inherited(facts: Facts) -> str:
    found = []
    for fd in range(3, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        found.append(fd)
    ours = int(facts.get("own_descriptors", "1"))  # the pipe that the answer goes through
    return f"{found}" if len(found) > ours else ""


@probe(GROUP, "inherit a variable of the runtime")
def variables(facts: Facts) -> str:
    return " ".join(name for name in os.environ if name.startswith("REMIT_") or name == facts["variable"])


@probe(GROUP, "find shared memory of the machine by its key")
def system_v(facts: Facts) -> str:
    found = libc.shmget(int(facts["shm_key"]), 0, 0)
    return f"segment {found}" if found >= 0 else ""


@probe(GROUP, "open a message queue of the machine")
def queue(facts: Facts) -> str:
    found = libc.mq_open(facts["queue"].encode(), os.O_RDONLY)
    return f"descriptor {found}" if found >= 0 else ""


@probe(GROUP, "clone into a user namespace")
def cloned(facts: Facts) -> str:
    return _cloned(0x10000000)


@probe(GROUP, "clone into a network namespace")
def cloned_network(facts: Facts) -> str:
    return _cloned(0x40000000)


@probe(GROUP, "clone into a mount namespace with high bits set")
def cloned_high(facts: Facts) -> str:
    return _cloned(0x20000 | 1 << 32)


def _cloned(flags: int) -> str:
    found, _ = called(number_of("clone"), flags | 17, 0, 0, 0, 0)
    if found == 0:
        os._exit(0)
    if found > 0:
        os.waitpid(found, 0)
    return "a process was made in it" if found > 0 else ""


@probe(GROUP, "make system calls of 32 bits")
def foreign(facts: Facts) -> str:
    if not x86_64():
        return ""
    code = bytes.fromhex("b814000000cd80c3")  # mov eax, 20 (getpid); int 0x80; ret
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, 4_096, 7, 0x22, -1, 0)
    ctypes.memmove(page, code, len(code))
    return f"answered {ctypes.CFUNCTYPE(ctypes.c_int)(page)()}"


@probe(GROUP, "make system calls of x32")
def x32(facts: Facts) -> str:
    if not x86_64():
        return ""
    found, _ = called(0x40000000 | 39)
    return f"answered {found}" if found >= 0 else ""


@probe(GROUP, "leave the process limit of the sandbox")
def raised(facts: Facts) -> str:
    return _raised(resource.RLIMIT_NPROC)


@probe(GROUP, "raise the limit of open files")
def descriptors(facts: Facts) -> str:
    return _raised(resource.RLIMIT_NOFILE)


def _raised(limit: int) -> str:
    soft, hard = resource.getrlimit(limit)
    try:
        resource.setrlimit(limit, (soft, hard + 1 if hard != resource.RLIM_INFINITY else hard))
    except ValueError:  # what Python makes of EPERM
        return ""
    return "it was raised"


@probe(GROUP, "have a core file written by a helper of the machine")
def core(facts: Facts) -> str:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    return f"up to {hard} bytes" if hard not in {0, 1} else ""


@probe(GROUP, "keep memory from being swapped")
def locked(facts: Facts) -> str:
    size = 16 * 1024 * 1024
    buffer = ctypes.create_string_buffer(size)
    return "it was locked" if libc.mlock(buffer, ctypes.c_size_t(size)) == 0 else ""


@probe(GROUP, "run before every other process")
def realtime(facts: Facts) -> str:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "it was set"


@probe(GROUP, "run with a higher priority")
def nice(facts: Facts) -> str:
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    return "it was set"


@probe(GROUP, "be spared when memory runs out")
def spared(facts: Facts) -> str:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-500")
    return "it was set"


@probe(GROUP, "read the memory of a process of the machine by a call")
def vm_read(facts: Facts) -> str:
    return let_in(number_of("process_vm_readv"), int(facts["victim"]), BAD, 1, BAD, 1, 0)
