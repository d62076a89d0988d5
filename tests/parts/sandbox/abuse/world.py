"""What the probes try to reach: made for one battery, so that nothing of the machine is at stake."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from remit.parts.sandbox.identity import identity
from remit.parts.sandbox.workspaces import Workspace, Workspaces

VARIABLE: Final = "REMIT_PROBE_SECRET"
_LEAST_PID: Final = 1_000
"""Within a PID namespace of its own no probe is numbered so high."""
_KEY: Final = 0x52454D54


class World(NamedTuple):
    """A conversation's workspace, and what lies around it."""

    workspace: Workspace
    facts: dict[str, str]


@contextmanager
def world(folder: Path, tmp_bytes: int) -> Iterator[World]:
    """Things to reach below `folder`, which every user can pass."""
    with ExitStack() as stack:
        spaces = Workspaces(folder / "spaces")
        ours, other = spaces.of("job/ours"), spaces.of("job/other")
        other.put("private", b"private", inputs=False)
        ours.put("given", b"given", inputs=True)
        secrets = folder / "secrets"
        secrets.mkdir(mode=0o755)
        (secrets / "secret").write_text("secret")
        for made in (secrets, secrets / "secret"):
            identity().own(made)  # owned by the very user that programs run as
        (ours.work / "link-to-secret").symlink_to(secrets / "secret")
        (ours.work / "link-to-root").symlink_to("/")
        victim = stack.enter_context(_victim())
        facts = {
            "secret": str(secrets / "secret"),
            "secret_folder": str(secrets),
            "other": str(other.work),
            "above": str(ours.folder),
            "victim": str(victim),
            "runtime": str(max(os.getpid(), _LEAST_PID)),
            "session": str(os.getsid(0)),
            "variable": VARIABLE,
            "hostname": socket.gethostname(),
            "tmp_bytes": str(tmp_bytes),
            "shm_key": str(_KEY + os.getpid()),
            "queue": f"/remit-probe-{os.getpid()}",
            "shared": f"/dev/shm/remit-probe-{os.getpid()}",
        }
        facts |= _servers(stack, ours, secrets)
        _inheritable(stack, secrets / "secret")
        _shared(stack, facts)
        yield World(ours, facts)


@contextmanager
def _victim() -> Iterator[int]:
    who = identity()
    while True:
        process = subprocess.Popen(
            ["/bin/sleep", "1000"],
            env={VARIABLE: "secret"},
            stdin=subprocess.DEVNULL,
            user=who.uid,
            group=who.gid,
            extra_groups=None if who.uid is None else (),
        )
        if process.pid >= _LEAST_PID:
            break
        process.kill()
        process.wait()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _servers(stack: ExitStack, ours: Workspace, secrets: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, family, host in (("port", socket.AF_INET, "127.0.0.1"), ("port6", socket.AF_INET6, "::1")):
        server = stack.enter_context(socket.socket(family))
        server.bind((host, 0))
        server.listen(16)
        found[name] = str(server.getsockname()[1])
    found["abstract"] = f"remit-probe-{os.getpid()}"
    found["socket"] = str(secrets / "socket")
    for address in ("\0" + found["abstract"], found["socket"], str(ours.inputs / "socket")):
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(address)
        server.listen(16)
        if not address.startswith("\0"):
            os.chmod(address, 0o666)
    return found


def _inheritable(stack: ExitStack, file: Path) -> None:
    """A descriptor and a variable that children get if nobody takes care."""
    fd = os.open(file, os.O_RDONLY)
    os.set_inheritable(fd, True)
    stack.callback(os.close, fd)
    os.environ[VARIABLE] = "secret"
    stack.callback(os.environ.pop, VARIABLE)


def _shared(stack: ExitStack, facts: dict[str, str]) -> None:
    """A shared segment, a message queue and a file in shared memory, for everybody."""
    libc = ctypes.CDLL(None, use_errno=True)
    segment = libc.shmget(int(facts["shm_key"]), 4_096, 0o1666)  # IPC_CREAT
    stack.callback(libc.shmctl, segment, 0, None)
    name = facts["queue"].encode()
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDONLY, 0o666, None)
    if queue >= 0:
        stack.callback(libc.mq_unlink, name)
        stack.callback(libc.mq_close, queue)
    place = Path(facts["shared"])
    place.touch(0o666)
    stack.callback(place.unlink)
