"""A network namespace that holds only a proxy's door.

A small program makes the namespace, listens in it, hands the listening socket to us, and becomes bwrap, which then
shares it: the proxy answers from outside, and nothing within can reach further than that socket.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from remit.sandbox.proxy import PORT

PYTHONS: Final = ("/usr/bin/python3", "/usr/local/bin/python3")
_SOURCE: Final = f"""
import ctypes, fcntl, os, socket, struct, sys
fd, uid, gid = int(sys.argv[1]), os.getuid(), os.getgid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x50000000):  # CLONE_NEWUSER | CLONE_NEWNET
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
for name, text in (("setgroups", "deny"), ("uid_map", f"{{uid}} {{uid}} 1"), ("gid_map", f"{{gid}} {{gid}} 1")):
    with open("/proc/self/" + name, "w") as file:
        file.write(text)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
    fcntl.ioctl(loopback, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
door = socket.socket()
door.bind(("127.0.0.1", {PORT}))
door.listen(64)
socket.send_fds(socket.socket(fileno=fd), [b"x"], [door.fileno()])
door.close()
os.execv(sys.argv[2], sys.argv[3:])
"""
ENVIRONMENT: Final = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}"
) | {"no_proxy": "localhost,127.0.0.1", "NODE_USE_ENV_PROXY": "1"}
"""Variables that programs look for a proxy in."""


def python() -> str:
    """The Python that makes the namespace; any user can run it. Empty if there is none."""
    return next((path for path in PYTHONS if Path(path).exists()), "")


def before(fd: int, program: Path) -> list[str]:
    """The words that stand before those of `program`; `fd` is the other end of the socket given to `door`."""
    return [python(), "-I", "-S", "-c", _SOURCE, str(fd), str(program)]


def door(ours: socket.socket) -> socket.socket:
    """The listening socket that was handed over. Raises OSError if there is none."""
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    if not fds:
        raise OSError("the network namespace could not be made")
    return socket.socket(fileno=fds[0])
