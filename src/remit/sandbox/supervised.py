"""A run whose isolation another program sets up: its output, its limits, its end. What the drivers but bwrap share."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from remit.clock import SystemClock
from remit.process.enclosure import Listener, Status
from remit.sandbox.child import Child
from remit.sandbox.execution import Execution, Receipt, Usage
from remit.sandbox.identity import Identity
from remit.sandbox.output import outputs
from remit.sandbox.spec import Spec
from remit.sandbox.stdin import stdin_of
from remit.sandbox.watch import Watch

_SIGNALLED: Final = 128


class Supervised:
    """A program that was started as a child of ours."""

    def __init__(self, spec: Spec, listener: Listener) -> None:
        self.limit = ""
        self._stopped = False
        self._spec = spec
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._child: Child | None = None
        self._watch: Watch | None = None
        self._stdout, self._stderr = outputs(spec, listener, self.stop)

    def start(
        self,
        argv: Sequence[str],
        identity: Identity,
        *,
        env: dict[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        folder: Path | None = None,
    ) -> None:
        """Start it, in this folder if one is given. Raises OSError; nothing is left open then."""
        stdin = stdin_of(self._spec.stdin, self._spec.feed)
        (out_r, out_w), (err_r, err_w) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        try:
            self._child = Child.start(
                argv,
                stdin=stdin,
                stdout=out_w,
                stderr=err_w,
                pass_fds=pass_fds,
                identity=identity,
                env=env,
                folder=folder,
            )
        except BaseException:
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            for fd in (stdin, out_w, err_w):
                os.close(fd)
        self._stdout.follow(out_r)
        self._stderr.follow(err_r)
        self._watch = Watch(self._spec, self.first, None, self.stop)

    @property
    def first(self) -> int | None:
        """The process from which those of the program descend; None: it is not known."""
        return self._child.pid if self._child is not None else None

    def stop(self, limit: str) -> None:
        """Have it end, for a limit that was hit if one is named."""
        self.limit = self.limit or limit
        self._stopped = True
        if self._child is not None:
            self._child.kill()

    def signal(self, how: signal.Signals) -> None:
        """Send it a signal."""
        if self._child is not None:
            self._child.kill(how)

    async def ended(self, receipt: Receipt) -> Execution:
        """Return how it ended."""
        if self._child is None or self._watch is None:
            raise AssertionError("the run was not started")
        code = await self._child.ended()
        wall = int((self._clock.monotonic() - self._began) * 1000)
        await self._watch.ended()
        stdout, stderr = await self._stdout.ended(), await self._stderr.ended()
        number = -code if code < 0 else code - _SIGNALLED
        name = signal.Signals(number).name if number in signal.valid_signals() else ""
        limit = self.limit or {"SIGXCPU": "cpu_ms", "SIGXFSZ": "file_bytes"}.get(name, "") or self._watch.found
        seen = self._watch.seen
        usage = (
            Usage(wall_ms=wall)
            if seen is None
            else Usage(wall_ms=wall, cpu_ms=seen.cpu_ms, memory_bytes=seen.memory_bytes, mechanism="seen every 50 ms")
        )
        return Execution(
            status=_status(code, limit),
            exit_code=_SIGNALLED - code if code < 0 else code,
            signal=name,
            limit=limit,
            stdout=stdout,
            stderr=stderr,
            receipt=_with(receipt, usage),
        )

    async def close(self) -> None:
        """End it if it still runs, and leave nothing open."""
        self.stop("")
        if self._child is not None:
            await self._child.ended()
            self._child.close()
        if self._watch is not None:
            await self._watch.ended()
        self._stdout.close()
        self._stderr.close()


def _status(code: int, limit: str) -> Status:
    if limit == "wall_ms":
        return "TIMEOUT"
    return "SUCCEEDED" if code == 0 and not limit else "FAILED"


def _with(receipt: Receipt, usage: Usage) -> Receipt:
    return msgspec.structs.replace(receipt, usage=usage)
