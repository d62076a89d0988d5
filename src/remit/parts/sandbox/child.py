"""A child process whose end is awaited through a pidfd: no thread, no signal handler, no process left unreaped."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.identity import UserIdentity


class GroupChild:
    """A process that was started; its group is its own, so that Ctrl-C at the terminal is not for it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._end = ProcessEnd(os.pidfd_open(process.pid), self._reap)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        pass_fds: Sequence[int],
        identity: UserIdentity,
        env: Mapping[str, str] | None = None,
        program: Path | None = None,
        folder: Path | None = None,
    ) -> GroupChild:
        """Start `program`, or what `argv` begins with, without any environment if none is given. Raises OSError.

        It starts in `folder`, or in the one that is ours.

        It must be called in a thread that lives as long as the child: the kernel tells `--die-with-parent` of the end
        of the thread.
        """
        cleanup_process().begin()
        process = subprocess.Popen(
            argv,
            executable=program,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            env=env or {},
            cwd=folder,
            start_new_session=True,
            user=identity.uid,
            group=identity.gid,
            extra_groups=None if identity.uid is None else (),
        )
        return cls(process)

    async def ended(self) -> int:
        """Its exit status; negative for a signal."""
        await self._end.wait()
        return self._process.returncode if self._process.returncode is not None else -signal.SIGKILL

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, or send it another signal."""
        if not self._end.done:
            with suppress(ProcessLookupError):
                os.kill(self.pid, how)

    def close(self) -> None:
        """Forget it."""
        self._end.close()

    def _reap(self) -> None:
        self._process.wait()


class ProcessEnd:
    """Awaits the end of any process, ours or not."""

    def __init__(self, pidfd: int, reap: Callable[[], None] | None = None) -> None:
        self._pidfd = pidfd
        self._reap = reap
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pidfd, self._ended)

    @property
    def done(self) -> bool:
        """Return whether it has ended; looks itself, for the loop may not have come to it yet."""
        if self._pidfd >= 0 and select.select([self._pidfd], [], [], 0)[0]:
            self._ended()
        return self._event.is_set()

    async def wait(self) -> None:
        """Return once it has ended."""
        await self._event.wait()

    def kill(self) -> None:
        """End it; the pidfd makes sure that it is the right one."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Forget it."""
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        self._event.set()

    def _ended(self) -> None:
        if self._reap is not None:
            self._reap()
        elif self._pidfd >= 0:
            # A grandchild becomes ours to reap if we are the machine's first process, as in a container.
            with suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)
        self.close()
