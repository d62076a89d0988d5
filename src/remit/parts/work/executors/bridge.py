"""A program that joins its stdin and stdout to a Unix socket: what an agent starts as its MCP server.

    python bridge.py SOCKET

It imports the standard library alone, for it is copied into the home of a run, where it may be all that is seen of us.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

_CHUNK = 65_536


def main(path: str) -> int:
    """Pass bytes on in both ways until the other side ends; return the exit status."""
    place = Path(path)
    os.chdir(place.parent)  # a socket's own name is at most some 100 bytes long
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(place.name)
        threading.Thread(target=_send, args=(wire,), daemon=True).start()
        while data := wire.recv(_CHUNK):
            _write(data)
    return 0


def _send(wire: socket.socket) -> None:
    with suppress(OSError):
        while data := os.read(sys.stdin.fileno(), _CHUNK):
            wire.sendall(data)
        wire.shutdown(socket.SHUT_WR)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(sys.stdout.fileno(), data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
