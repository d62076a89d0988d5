"""The client of a hook where no compiler is: as client.c, `python3 -I -S client.py SOCKET SECONDS TAG STARTER...`."""

import os
import signal
import socket
import sys


def _fail(*_: object) -> None:
    os.write(2, b"remit guard: no answer; the call is not made\n")
    os._exit(2)


def main(path: str, seconds: str, tag: str, *starter: str) -> None:
    """Send stdin to the guard and print its answer; end with 2 on every failure."""
    guard = socket.socket(socket.AF_UNIX)
    try:
        guard.connect(path)
    except OSError:
        os.execv(starter[0], starter)  # noqa: S606 - Remit itself, by its whole path
    signal.signal(signal.SIGALRM, _fail)
    signal.alarm(int(seconds))
    message = sys.stdin.buffer.read()
    guard.sendall(b"%s\n%s%s" % (tag.encode(), len(message).to_bytes(8, "little"), message))
    answer = b"".join(iter(lambda: guard.recv(65_536), b""))
    if answer[:1] not in {b"0", b"2"} or answer[-1:] != b"\n":
        _fail()
    if len(answer) > 2:  # noqa: PLR2004 - the status and the end of the line
        os.write(1 if answer[:1] == b"0" else 2, answer[1:])
    os._exit(int(answer[:1]))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:  # noqa: BLE001 - whatever it is, the call must not be made
        _fail()
