"""The calls that sandboxed programs may ask of the kernel, as a program for it and as a profile of container runtimes.

The program is a binary search over call numbers, then the tests of arguments. The kernel's calls stand by name, with
their numbers on x86_64 and aarch64 (Linux 6.1, `asm/unistd_64.h`, `asm-generic`). Numbers never change, and calls newer
than the table are answered with ENOSYS, which every C library is prepared for.

It is an allowlist: what is not named here does not exist (ENOSYS). What a program might expect to be refused is refused
with EPERM, so that it does not look for another way. Arguments are compared by their low 32 bits wherever the kernel
looks at no more of them (ioctl's request, clone's flags, modes).

The profile of docker, podman and containerd (JSON), which their runtime compiles, knows no order and no "unless": a
call gets the verdict of the entry that its arguments match. So each test becomes two sets of patterns that do not meet:
those that pass and those that are refused.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from remit.process.enclosure import Rules


class ArgumentTest(NamedTuple):
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

REFUSED: Final[dict[str, tuple[ArgumentTest, ...]]] = {
    "clone": (ArgumentTest(0, "any_bit", (_NAMESPACES,)),),
    "socket": (ArgumentTest(0, "not_in", _FAMILIES, errno.EAFNOSUPPORT),),
    "socketpair": (ArgumentTest(0, "not_in", (1,), errno.EAFNOSUPPORT),),
    "ioctl": (ArgumentTest(1, "equal", _TERMINAL),),
    "prctl": (ArgumentTest(0, "equal", (22, 35)),),  # PR_SET_SECCOMP, PR_SET_MM
    "personality": (ArgumentTest(0, "not_in", (0, 0x20000, 0xFFFFFFFF)),),
    "chmod": (ArgumentTest(1, "any_bit", (_SET_ID,)),),
    "fchmod": (ArgumentTest(1, "any_bit", (_SET_ID,)),),
    "fchmodat": (ArgumentTest(2, "any_bit", (_SET_ID,)),),
    "creat": (ArgumentTest(1, "any_bit", (_SET_ID,)),),
    "open": (ArgumentTest(2, "any_bit", (_SET_ID,), only_if=(1, _CREATES)),),
    "openat": (ArgumentTest(3, "any_bit", (_SET_ID,), only_if=(2, _CREATES)),),
    "mkdir": (ArgumentTest(1, "any_bit", (_SET_ID,)),),
    "mkdirat": (ArgumentTest(2, "any_bit", (_SET_ID,)),),
    "mknod": (ArgumentTest(1, "any_bit", (_SET_ID,)), ArgumentTest(1, "equal", _DEVICES, mask=_KIND)),
    "mknodat": (ArgumentTest(2, "any_bit", (_SET_ID,)), ArgumentTest(2, "equal", _DEVICES, mask=_KIND)),
}
"""Calls that are allowed unless one of these tests holds."""

_NESTED: Final = 0x70000000
"""CLONE_NEWUSER, NEWPID and NEWNET: the namespaces of which Chromium makes its sandbox."""
BROWSER: Final[dict[str, tuple[ArgumentTest, ...]]] = {
    "chroot": (),
    "clone": (ArgumentTest(0, "any_bit", (_NAMESPACES & ~_NESTED,)),),
    "prctl": (ArgumentTest(0, "equal", (35,)),),  # PR_SET_MM
    "seccomp": (),
    "unshare": (ArgumentTest(0, "any_bit", (_NAMESPACES & ~_NESTED,)),),
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


_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_GO: Final = 0x05  # BPF_JMP | BPF_JA
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_FAR: Final = 255
MOST: Final = 4_096
"""Instructions that the kernel takes (BPF_MAXINSNS)."""

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000  # SECCOMP_RET_KILL_PROCESS
_ERRNO: Final = 0x00050000

NUMBER: Final = 0
"""Offset of the call's number in `struct seccomp_data`."""
ARCH: Final = 4


def errno_verdict(number: int) -> int:
    """The verdict that makes a call fail with an error number."""
    return _ERRNO | number


def argument(index: int, *, high: bool = False) -> int:
    """Offset of one half of an argument, on a little-endian machine."""
    return 16 + 8 * index + (4 if high else 0)


class FilterVerdict(NamedTuple):
    """The end of the matter."""

    value: int


class FilterBranch(NamedTuple):
    """Loads 32 bits, masks them, compares: `then` or `other`."""

    offset: int
    how: str
    """`equal`, `at_least` or `any_bit`."""
    value: int
    then: Node
    other: Node
    mask: int | None = None


Node = FilterVerdict | FilterBranch


class Instruction(NamedTuple):
    """`struct sock_filter`."""

    code: int
    if_true: int
    if_false: int
    value: int


_HOW: Final = {"equal": _EQUAL, "at_least": _AT_LEAST, "any_bit": _ANY_BIT}


def assemble(root: Node) -> list[Instruction]:
    """The program, first instruction first. Raises ValueError if the kernel would not take it."""
    backwards: list[Instruction] = []
    placed: dict[FilterVerdict, int] = {}
    _emit(root, backwards, placed)
    if len(backwards) > MOST:
        raise ValueError(f"{len(backwards)} instructions; the kernel takes {MOST}")
    return backwards[::-1]


def packed(program: list[Instruction]) -> bytes:
    """The bytes of an array of `struct sock_filter`, as bwrap's `--seccomp` reads them."""
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _emit(node: Node, backwards: list[Instruction], placed: dict[FilterVerdict, int]) -> int:
    """Place a node before everything placed so far; its position, counted from the end."""
    if isinstance(node, FilterVerdict):
        at = placed.get(node)
        if at is None or len(backwards) - at > _FAR:
            backwards.append(Instruction(_RETURN, 0, 0, node.value))
            at = placed[node] = len(backwards)
        return at
    other = _emit(node.other, backwards, placed)
    then = _emit(node.then, backwards, placed)
    then, other = _near(then, other, backwards)
    here = len(backwards)
    backwards.append(Instruction(_HOW[node.how], here - then, here - other, node.value))
    if node.mask is not None:
        backwards.append(Instruction(_AND, 0, 0, node.mask))
    backwards.append(Instruction(_LOAD, 0, 0, node.offset))
    return len(backwards)


def _near(then: int, other: int, backwards: list[Instruction]) -> tuple[int, int]:
    """Both targets within reach of a conditional jump; at most two stepping stones are placed for them."""
    targets = [then, other]
    for index in (0, 1):
        if len(backwards) + 2 - targets[index] > _FAR:
            backwards.append(Instruction(_GO, 0, 0, len(backwards) - targets[index]))
            targets[index] = len(backwards)
    return targets[0], targets[1]


_TABLE: Final = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222 mprotect:10:226
munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 ioctl:16:29 pread64:17:67
pwrite64:18:68 readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124 mremap:25:216
msync:26:227 mincore:27:232 madvise:28:233 shmget:29:194 shmat:30:196 shmctl:31:195 dup:32:23 dup2:33:- pause:34:-
nanosleep:35:101 getitimer:36:102 alarm:37:- setitimer:38:103 getpid:39:172 sendfile:40:71 socket:41:198
connect:42:203 accept:43:202 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212 shutdown:48:210 bind:49:200
listen:50:201 getsockname:51:204 getpeername:52:205 socketpair:53:199 setsockopt:54:208 getsockopt:55:209 clone:56:220
fork:57:- vfork:58:- execve:59:221 exit:60:93 wait4:61:260 kill:62:129 uname:63:160 semget:64:190 semop:65:193
semctl:66:191 shmdt:67:197 msgget:68:186 msgsnd:69:189 msgrcv:70:188 msgctl:71:187 fcntl:72:25 flock:73:32 fsync:74:82
fdatasync:75:83 truncate:76:45 ftruncate:77:46 getdents:78:- getcwd:79:17 chdir:80:49 fchdir:81:50 rename:82:-
mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:- readlink:89:- chmod:90:- fchmod:91:52 chown:92:-
fchown:93:55 lchown:94:- umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179
times:100:153 ptrace:101:117 getuid:102:174 syslog:103:116 getgid:104:176 setuid:105:146 setgid:106:144
geteuid:107:175 getegid:108:177 setpgid:109:154 getppid:110:173 getpgrp:111:- setsid:112:157 setreuid:113:145
setregid:114:143 getgroups:115:158 setgroups:116:159 setresuid:117:147 getresuid:118:148 setresgid:119:149
getresgid:120:150 getpgid:121:155 setfsuid:122:151 setfsgid:123:152 getsid:124:156 capget:125:90 capset:126:91
rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigqueueinfo:129:138 rt_sigsuspend:130:133 sigaltstack:131:132
utime:132:- mknod:133:- uselib:134:- personality:135:92 ustat:136:- statfs:137:43 fstatfs:138:44 sysfs:139:-
getpriority:140:141 setpriority:141:140 sched_setparam:142:118 sched_getparam:143:121 sched_setscheduler:144:119
sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 sched_rr_get_interval:148:127
mlock:149:228 munlock:150:229 mlockall:151:230 munlockall:152:231 vhangup:153:58 modify_ldt:154:- pivot_root:155:41
_sysctl:156:- prctl:157:167 arch_prctl:158:- adjtimex:159:171 setrlimit:160:164 chroot:161:51 sync:162:81 acct:163:89
settimeofday:164:170 mount:165:40 umount2:166:39 swapon:167:224 swapoff:168:225 reboot:169:142 sethostname:170:161
setdomainname:171:162 iopl:172:- ioperm:173:- create_module:174:- init_module:175:105 delete_module:176:106
get_kernel_syms:177:- query_module:178:- quotactl:179:60 nfsservctl:180:42 getpmsg:181:- putpmsg:182:-
afs_syscall:183:- tuxcall:184:- security:185:- gettid:186:178 readahead:187:213 setxattr:188:5 lsetxattr:189:6
fsetxattr:190:7 getxattr:191:8 lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13
removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16 tkill:200:130 time:201:- futex:202:98
sched_setaffinity:203:122 sched_getaffinity:204:123 set_thread_area:205:- io_setup:206:0 io_destroy:207:1
io_getevents:208:4 io_submit:209:2 io_cancel:210:3 get_thread_area:211:- lookup_dcookie:212:18 epoll_create:213:-
epoll_ctl_old:214:- epoll_wait_old:215:- remap_file_pages:216:234 getdents64:217:61 set_tid_address:218:96
restart_syscall:219:128 semtimedop:220:192 fadvise64:221:223 timer_create:222:107 timer_settime:223:110
timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111 clock_settime:227:112 clock_gettime:228:113
clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94 epoll_wait:232:- epoll_ctl:233:21 tgkill:234:131
utimes:235:- vserver:236:- mbind:237:235 set_mempolicy:238:237 get_mempolicy:239:236 mq_open:240:180 mq_unlink:241:181
mq_timedsend:242:182 mq_timedreceive:243:183 mq_notify:244:184 mq_getsetattr:245:185 kexec_load:246:104 waitid:247:95
add_key:248:217 request_key:249:218 keyctl:250:219 ioprio_set:251:30 ioprio_get:252:31 inotify_init:253:-
inotify_add_watch:254:27 inotify_rm_watch:255:28 migrate_pages:256:238 openat:257:56 mkdirat:258:34 mknodat:259:33
fchownat:260:54 futimesat:261:- newfstatat:262:79 unlinkat:263:35 renameat:264:38 linkat:265:37 symlinkat:266:36
readlinkat:267:78 fchmodat:268:53 faccessat:269:48 pselect6:270:72 ppoll:271:73 unshare:272:97 set_robust_list:273:99
get_robust_list:274:100 splice:275:76 tee:276:77 sync_file_range:277:84 vmsplice:278:75 move_pages:279:239
utimensat:280:88 epoll_pwait:281:22 signalfd:282:- timerfd_create:283:85 eventfd:284:- fallocate:285:47
timerfd_settime:286:86 timerfd_gettime:287:87 accept4:288:242 signalfd4:289:74 eventfd2:290:19 epoll_create1:291:20
dup3:292:24 pipe2:293:59 inotify_init1:294:26 preadv:295:69 pwritev:296:70 rt_tgsigqueueinfo:297:240
perf_event_open:298:241 recvmmsg:299:243 fanotify_init:300:262 fanotify_mark:301:263 prlimit64:302:261
name_to_handle_at:303:264 open_by_handle_at:304:265 clock_adjtime:305:266 syncfs:306:267 sendmmsg:307:269
setns:308:268 getcpu:309:168 process_vm_readv:310:270 process_vm_writev:311:271 kcmp:312:272 finit_module:313:273
sched_setattr:314:274 sched_getattr:315:275 renameat2:316:276 seccomp:317:277 getrandom:318:278 memfd_create:319:279
kexec_file_load:320:294 bpf:321:280 execveat:322:281 userfaultfd:323:282 membarrier:324:283 mlock2:325:284
copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 pkey_mprotect:329:288 pkey_alloc:330:289 pkey_free:331:290
statx:332:291 io_pgetevents:333:292 rseq:334:293 pidfd_send_signal:424:424 io_uring_setup:425:425
io_uring_enter:426:426 io_uring_register:427:427 open_tree:428:428 move_mount:429:429 fsopen:430:430 fsconfig:431:431
fsmount:432:432 fspick:433:433 pidfd_open:434:434 clone3:435:435 close_range:436:436 openat2:437:437
pidfd_getfd:438:438 faccessat2:439:439 process_madvise:440:440 epoll_pwait2:441:441 mount_setattr:442:442
quotactl_fd:443:443 landlock_create_ruleset:444:444 landlock_add_rule:445:445 landlock_restrict_self:446:446
memfd_secret:447:447 process_mrelease:448:448 futex_waitv:449:449 set_mempolicy_home_node:450:450
"""


def _column(index: int) -> dict[str, int]:
    rows = (word.split(":") for word in _TABLE.split())
    return {row[0]: int(row[index]) for row in rows if row[index] != "-"}


X86_64: Final = _column(1)
AARCH64: Final = _column(2)


_X32: Final = 0x40000000
"""Numbers from here on are of x86_64's second set of calls, which no program needs."""
_ALLOW: Final = FilterVerdict(ALLOW)
_ABSENT: Final = FilterVerdict(errno_verdict(errno.ENOSYS))
_FORBIDDEN: Final = FilterVerdict(errno_verdict(errno.EPERM))


class Architecture(NamedTuple):
    """One of the machines that the filter is built for."""

    audit: int
    """AUDIT_ARCH_*, by which the kernel says whose call it is."""
    numbers: Mapping[str, int]


ARCHITECTURES: Final = {
    "x86_64": Architecture(0xC000003E, X86_64),
    "aarch64": Architecture(0xC00000B7, AARCH64),
}


@cache
def program(machine: str, rules: Rules = "program") -> tuple[Instruction, ...]:
    """The filter for a machine, as `platform.machine()` names it. Raises KeyError for one that has no table."""
    architecture = ARCHITECTURES[machine]
    leaves = sorted((number, leaf(name, rules)) for name, number in architecture.numbers.items() if name not in ABSENT)
    tree = _search(_ranges(leaves))
    known = FilterBranch(NUMBER, "at_least", _X32, FilterVerdict(KILL), tree)
    return tuple(assemble(FilterBranch(ARCH, "equal", architecture.audit, known, FilterVerdict(KILL))))


@cache
def encoded(machine: str, rules: Rules = "program") -> bytes:
    """The filter's bytes. Raises KeyError."""
    return packed(list(program(machine, rules)))


@cache
def digest(machine: str, rules: Rules = "program") -> str:
    """`sha256:…` of the filter, as receipts hold it. Raises KeyError."""
    return "sha256:" + hashlib.sha256(encoded(machine, rules)).hexdigest()


@cache
def leaf(name: str, rules: Rules = "program") -> Node:
    """Return what becomes of a call, once its number is known."""
    tests = BROWSER.get(name) if rules == "browser" else None
    if tests is None and name in FORBIDDEN:
        return _FORBIDDEN
    node: Node = _ALLOW
    for test in REFUSED.get(name, ()) if tests is None else tests:
        node = _tested_filter(test, node)
    return node


def _tested_filter(test: ArgumentTest, passed: Node) -> Node:
    refused = FilterVerdict(errno_verdict(test.error))
    offset = argument(test.number)
    how = "any_bit" if test.how == "any_bit" else "equal"
    branch, hit = (refused, passed) if test.how == "not_in" else (passed, refused)
    for value in test.values:
        branch = FilterBranch(offset, how, value, hit, branch, test.mask)
    if test.only_if is not None:
        index, bits = test.only_if
        branch = FilterBranch(argument(index), "any_bit", bits, branch, passed)
    return branch


def _ranges(leaves: list[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """(first number, what becomes of it and all up to the next row)."""
    rows: list[tuple[int, Node]] = [(0, _ABSENT)]
    after = 0
    for number, node in leaves:
        if number > after:
            rows.append((after, _ABSENT))
        rows.append((number, node))
        after = number + 1
    rows.append((after, _ABSENT))
    merged: list[tuple[int, Node]] = []
    for number, node in rows:
        if merged and merged[-1][0] == number:
            merged.pop()
        if not merged or merged[-1][1] != node:
            merged.append((number, node))
    return merged


def _search(rows: list[tuple[int, Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][1]
    middle = len(rows) // 2
    return FilterBranch(NUMBER, "at_least", rows[middle][0], _search(rows[middle:]), _search(rows[:middle]))


_NAMES: Final = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW: Final = 0xFFFFFFFF
"""The kernel looks at no more of the arguments that are tested."""
_TOP_BIT: Final = 1 << 31


class Pattern(NamedTuple):
    """Arguments that match: those whose bits under the mask are the value's."""

    mask: int
    value: int


_ANYTHING: Final = Pattern(0, 0)
_Match = Mapping[int, Pattern]
"""By the argument's number; arguments that are not named may be anything."""


@cache
def profile(machine: str) -> bytes:
    """The profile for a machine, as `platform.machine()` names it. Raises KeyError for one that has no table."""
    numbers = ARCHITECTURES[machine].numbers
    plain = sorted(name for name in numbers if name not in ABSENT | FORBIDDEN and name not in REFUSED)
    calls: list[dict[str, Any]] = [
        {"names": plain, "action": "SCMP_ACT_ALLOW"},
        _refusal(sorted(numbers.keys() & FORBIDDEN), errno.EPERM),
        # Named as well: an old service answers what is not named with EPERM, and the C library needs ENOSYS.
        _refusal(sorted(numbers.keys() & ABSENT), errno.ENOSYS),
    ]
    for name in sorted(numbers.keys() & REFUSED.keys()):
        calls += _tested_profile(name, REFUSED[name])
    document = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": [_NAMES[machine]],
        "syscalls": calls,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _refusal(names: list[str], error: int) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _tested_profile(name: str, tests: Iterable[ArgumentTest]) -> list[dict[str, Any]]:
    passes: list[_Match] = [{}]
    entries = []
    for test in tests:
        hits, misses = _cases(test)
        entries += [_refusal([name], test.error) | {"args": _words(condition)} for condition in hits]
        both = (_both(condition, other) for condition, other in itertools.product(passes, misses))
        passes = [condition for condition in both if condition is not None]
    return entries + [{"names": [name], "action": "SCMP_ACT_ALLOW", "args": _words(condition)} for condition in passes]


def _cases(test: ArgumentTest) -> tuple[list[_Match], list[_Match]]:
    """Return what the test refuses, and what it lets pass."""
    if test.how == "any_bit":
        [bits] = test.values
        hits, misses = [Pattern(bit, bit) for bit in _bits(bits)], [Pattern(bits, 0)]
    else:
        mask = _LOW if test.mask is None else test.mask
        named, rest = [Pattern(mask, value) for value in test.values], list(others(mask, test.values))
        hits, misses = (rest, named) if test.how == "not_in" else (named, rest)
    if test.only_if is None:
        return [{test.number: hit} for hit in hits], [{test.number: hit} for hit in misses]
    index, only = test.only_if
    counts: list[_Match] = [{test.number: hit, index: Pattern(bit, bit)} for hit in hits for bit in _bits(only)]
    return counts, [{index: Pattern(only, 0)}, *({test.number: hit} for hit in misses)]


def _bits(number: int) -> list[int]:
    return [1 << at for at in range(32) if number >> at & 1]


def others(mask: int, values: Iterable[int], bit: int = _TOP_BIT, above: Pattern = _ANYTHING) -> Iterable[Pattern]:
    """Patterns for all other numbers: exactly one matches each number that differs from every value under the mask."""
    within = [value for value in values if value & above.mask == above.value]
    if not within:
        yield above
    elif bit and not mask & bit:
        yield from others(mask, within, bit >> 1, above)
    elif bit:
        for value in (0, bit):
            yield from others(mask, within, bit >> 1, Pattern(above.mask | bit, above.value | value))


def _both(match: _Match, other: _Match) -> _Match | None:
    """Return what matches both; None if nothing can."""
    both = dict(match)
    for number, pattern in other.items():
        ours = both.get(number, _ANYTHING)
        if (ours.value ^ pattern.value) & ours.mask & pattern.mask:
            return None
        both[number] = Pattern(ours.mask | pattern.mask, ours.value | pattern.value)
    return both


def _words(match: _Match) -> list[dict[str, Any]]:
    return [
        {"index": number, "value": pattern.mask, "valueTwo": pattern.value, "op": "SCMP_CMP_MASKED_EQ"}
        for number, pattern in sorted(match.items())
    ]
