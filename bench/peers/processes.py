"""Servers that a peer needs: started, waited for, measured and ended with all their processes."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_READY_S = 30.0


class Server:
    """A running server and everything it started."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root

    def cpu(self) -> float:
        """Processor seconds used so far."""
        total = 0.0
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                used = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += used.user + used.system + used.children_user + used.children_system
        return total

    def end(self) -> None:
        """Stop it, and what it leaves behind."""
        running = [self._root, *self._root.children(recursive=True)]
        for signal in (psutil.Process.terminate, psutil.Process.kill):
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    signal(process)
            _, running = psutil.wait_procs(running, timeout=5)


@contextmanager
def started(
    command: Sequence[str | Path],
    ready: Callable[[], bool],
    *,
    folder: Path,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    within: float = _READY_S,
) -> Iterator[Server]:
    """Start a server and wait until it is ready, so many seconds at most; its output goes into the folder."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, user=user, cwd=folder)  # noqa: S603 - a server we installed
    server = Server(psutil.Process(process.pid))
    try:
        until = time.monotonic() + within
        while not ready():
            if process.poll() is not None or time.monotonic() > until:
                last = (folder / "server.log").read_text(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"the server did not start: {''.join(last)}")
            time.sleep(0.05)  # noqa: TID251 - a server that says nothing when it is ready
        yield server
    finally:
        server.end()
        process.wait()


def answers(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports(count: int) -> list[int]:
    """Ports that no process listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
