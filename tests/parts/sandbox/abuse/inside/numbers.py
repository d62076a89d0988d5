"""Numbers of system calls, for both machines."""

from __future__ import annotations

import platform

# name: x86_64, aarch64; -: there is none
TABLE = """
clone:56:220 ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 pidfd_open:434:434 mount:165:40
umount2:166:39 pivot_root:155:41 chroot:161:51 unshare:272:97 setns:308:268 open_tree:428:428 move_mount:429:429
fsopen:430:430 fsconfig:431:431 fsmount:432:432 fspick:433:433 mount_setattr:442:442 swapon:167:224 swapoff:168:225
acct:163:89 quotactl:179:60 quotactl_fd:443:443 init_module:175:105 finit_module:313:273 delete_module:176:106
kexec_load:246:104 kexec_file_load:320:294 bpf:321:280 perf_event_open:298:241 userfaultfd:323:282
io_uring_setup:425:425 io_uring_enter:426:426 io_uring_register:427:427 keyctl:250:219 add_key:248:217 request_key:249:218 seccomp:317:277
reboot:169:142 sethostname:170:161 setdomainname:171:162 settimeofday:164:170 clock_settime:227:112
clock_adjtime:305:266 adjtimex:159:171 syslog:103:116 iopl:172:- ioperm:173:- modify_ldt:154:- kcmp:312:272
name_to_handle_at:303:264 open_by_handle_at:304:265 fanotify_init:300:262 fanotify_mark:301:263 pidfd_getfd:438:438
process_madvise:440:440 process_mrelease:448:448 move_pages:279:239 migrate_pages:256:238 mbind:237:235
set_mempolicy:238:237 get_mempolicy:239:236 clone3:435:435 openat2:437:437 memfd_secret:447:447 personality:135:92
prctl:157:167 ioprio_set:251:30 cachestat:451:451 fchmodat2:452:452 map_shadow_stack:453:453 statmount:457:457
listmount:458:458 lsm_set_self_attr:460:460 vmsplice:278:75 setrlimit:160:164
"""
COLUMN = {"x86_64": 1, "aarch64": 2}


def number_of(name: str) -> int:
    """Raises OSError if this machine has no such call."""
    for word in TABLE.split():
        row = word.split(":")
        if row[0] == name:
            if row[COLUMN[platform.machine()]] == "-":
                break
            return int(row[COLUMN[platform.machine()]])
    raise OSError(f"{name} does not exist on {platform.machine()}")
