"""The command line of bwrap; docs/sandbox.md says what each part of it stops."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from remit.sandbox.bwrap.network import ENVIRONMENT as PROXIED
from remit.sandbox.spec import WORKSPACE, Spec

UID: Final = 1000
"""The user that the program is in its own user namespace."""
_ISOLATE: Final = (
    f"--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --uid {UID} "
    f"--gid {UID} --hostname sandbox --cap-drop ALL --new-session --die-with-parent --clearenv"
).split()
_NOTHING_WITHIN: Final = ("--disable-userns", "--assert-userns-disabled")
"""No namespace of users is made inside; a browser makes those of its own sandbox (seccomp/rules.py says which)."""
_ROOT: Final = [
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/sbin",
    "/sbin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--dir",
    "/etc",
    "--ro-bind-try",
    "/etc/ld.so.cache",
    "/etc/ld.so.cache",
    "--ro-bind-try",
    "/etc/alternatives",
    "/etc/alternatives",
    "--ro-bind-try",
    "/etc/localtime",
    "/etc/localtime",
    "--ro-bind-try",
    "/etc/ssl/certs",
    "/etc/ssl/certs",
    "--ro-bind-try",
    "/etc/fonts",
    "/etc/fonts",
]
_KERNEL: Final = [
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--dev",
    "/dev",
]
_HIDDEN: Final = ("/proc/cmdline", "/proc/keys", "/proc/key-users")
"""Files that no namespace keeps the machine's own of; not every kernel has all of them."""
_CLOSED: Final = ["--remount-ro", "/dev", "--remount-ro", "/"]

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": PATH,
    "HOME": WORKSPACE,
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "PYTHONDONTWRITEBYTECODE": "1",
}
FILES: Final[Mapping[str, bytes]] = {
    "/etc/passwd": (
        b"root:x:0:0::/:/bin/false\nsandbox:x:1000:1000::/workspace:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    ),
    "/etc/group": b"root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


class Descriptors(NamedTuple):
    """Open files that bwrap is given."""

    status: int
    """Gets bwrap's reports."""
    block: int
    """Read before the program begins; it has no end, so that nothing begins because we have ended."""
    filter: int
    environment: int
    """With what `environment` gives: other users of the machine can read a command line, and so no secret is in it."""
    files: tuple[int, ...]
    """With the contents of FILES, in order."""


def environment(spec: Spec) -> bytes:
    """The words that set the program's variables, as bwrap reads them from a descriptor."""
    variables = {**ENVIRONMENT, **(PROXIED if spec.network else {}), **spec.env}
    return b"".join(os.fsencode(f"--setenv\0{name}\0{value}\0") for name, value in variables.items())


def command(mark: str, spec: Spec, fds: Descriptors, before: Sequence[str] = ()) -> list[str]:
    """Bwrap's whole command line for a run, which `mark` begins; `before` are words that start the program within."""
    size = str(spec.limits.tmp_bytes)
    words = [mark, *_ISOLATE, *(() if spec.rules == "browser" else _NOTHING_WITHIN)]
    if not spec.network:
        words.append("--unshare-net")  # else it shares one that holds only the proxy's door
    words += ["--args", str(fds.environment), *_ROOT]
    for fd, path in zip(fds.files, FILES, strict=True):
        words += ["--perms", "0444", "--file", str(fd), path]
    words += _KERNEL
    for path in filter(os.path.exists, _HIDDEN):
        words += ["--ro-bind", "/dev/null", path]
    for place in ("/dev/shm", "/tmp"):  # noqa: S108 - the sandbox's own
        words += ["--size", size, "--perms", "1777", "--tmpfs", place]
    words += ["--bind", str(spec.workspace), WORKSPACE]
    for mount in spec.mounts:
        words += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
    words += ["--chdir", spec.cwd, *_CLOSED]
    words += ["--json-status-fd", str(fds.status), "--block-fd", str(fds.block), "--seccomp", str(fds.filter)]
    return [*words, "--", *before, *spec.argv]
