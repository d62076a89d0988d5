"""The context of a call, as told to the provider that serves it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec.structs import replace

from remit.canonical import sha256
from remit.errors import ChainBrokenError, PayloadErasedError, RemitError
from remit.gateway.call import Progress, no_progress
from remit.ids import trace_id
from remit.journal.blobs import BlobRef, pack
from remit.journal.event import Blob
from remit.journal.kinds import INNER, UNSET, BytesKept, CallLogged, LogLine, decode
from remit.journal.lineage import whole
from remit.redact import line
from remit.tools.provider import CallContext, LogLevel, no_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remit.gateway.call import Call
    from remit.gateway.model_request import ModelRequest
    from remit.gateway.outcome import Outcome
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload, ToolInvocationStarted
    from remit.journal.writer import StreamWriter
    from remit.models.reply import Watch
    from remit.tools.catalog import Catalog


_log: Final = logging.getLogger("remit.gateway")


def context_of(
    call: Call,
    catalog: Catalog,
    loop: asyncio.AbstractEventLoop,
    *,
    timeout_s: float,
    now: int,
    moves: Callable[[], None] = no_time,
    lines: CallLog,
) -> CallContext:
    """The context of a call that was just announced, by a task of this loop."""
    request = call.request
    return CallContext(
        stream=call.writer.stream,
        step=request.step,
        invocation_id=call.invocation_id,
        idempotency_key=call.idempotency_key,
        attempt=request.attempt,
        principal=request.principal,
        trace_id=request.trace_id or trace_of(call.writer.stream),
        span_id=call.span_id,
        timeout_s=timeout_s,
        now=now,
        progress=no_progress if call.progress is no_progress else _Reporter(call.progress, loop),
        job=request.job,
        keeper=CallKeeper(call.journal, call.writer, call.invocation_id, request.step),
        peer=call.peer,
        untrusted=call.tainted,
        sandbox=request.sandbox,
        hidden=_hidden(call, catalog) if call.policy.restricts_arguments else None,
        within=request.within,
        moves=moves,
        inside=CallInside(call),
        lines=lines,
    )


LINES: Final = 200
"""Lines of a call that are recorded; more are counted."""
LENGTH: Final = 400
"""Characters of a line."""
_LEVELS: Final = get_args(LogLevel)


class CallLog:
    """Records the lines that a tool writes beside its call: as they come, and all of them before the call's end.

    Lines that come while others are being written are recorded together.
    """

    __slots__ = ("_call", "_count", "_left_out", "_lines", "_loop", "_over", "_task")

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self._call = call
        self._loop = loop
        self._lines: list[LogLine] = []
        self._count = self._left_out = 0
        self._over = False
        self._task: asyncio.Task[None] | None = None

    def __call__(self, text: str, level: LogLevel) -> None:
        """Take lines, from any thread; never fails."""
        if _running_loop() is self._loop:
            self._take(text, level)
        else:
            with suppress(RuntimeError):  # the loop is closed: nothing is recorded any more
                self._loop.call_soon_threadsafe(self._take, text, level)

    async def end(self) -> None:
        """Record what is left; nothing is taken after it."""
        self._over = True
        if self._task is not None:
            await self._task
        if self._left_out:
            await self._record([], self._left_out)

    def _take(self, text: str, level: LogLevel) -> None:
        if self._over:
            return
        known = level if level in _LEVELS else "info"
        for each in text[: LINES * LENGTH].splitlines():
            if self._count == LINES:
                self._left_out += 1
                continue
            self._count += 1
            self._lines.append(LogLine(at=self._call.journal.clock.now(), text=line(each, LENGTH), level=known))
        if self._lines and self._task is None:
            self._task = self._loop.create_task(self._write())

    async def _write(self) -> None:
        while self._lines:
            lines, self._lines = self._lines, []
            await self._record(lines)
        self._task = None

    async def _record(self, lines: list[LogLine], left_out: int = 0) -> None:
        call, packed = self._call, pack(msgspec.json.encode(lines))
        event = CallLogged(
            invocation_id=call.invocation_id,
            step=call.request.step,
            lines=packed.inline,
            lines_blob=packed.ref,
            left_out=left_out,
        )
        try:
            await call.journal.append(call.writer, event, synced=False, blobs=packed.blobs)
        except RemitError:  # whatever is wrong with the journal, the call's own end says it
            _log.debug("lines of a call were not recorded", exc_info=True)


class CallInside:
    """Records below one call (`remit.tools.door.Inside`)."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def stream(self) -> str:
        return self._call.writer.stream

    def place(self, name: str) -> str:
        return f"{self._call.request.step}{INNER}{name}"

    async def ask(self, request: ModelRequest, watch: Watch) -> Outcome:
        return await self._call.ask(request, self._call.writer, watch)

    async def record(self, *payloads: Payload, blobs: Sequence[Blob] = ()) -> None:
        await self._call.journal.append(self._call.writer, *payloads, synced=False, blobs=blobs)


def _hidden(call: Call, catalog: Catalog) -> Callable[[str, dict[str, Any]], bool]:
    def hidden(name: str, args: dict[str, Any]) -> bool:
        tool = catalog.known(name)
        if tool is None:
            return False
        return call.policy.hides(call.query, replace(call.query, tool=tool.meta, key=tool.key, args=args))

    return hidden


def context_again(started: ToolInvocationStarted, stream: str, *, timeout_s: float, now: int) -> CallContext:
    """The context of a call as it was announced."""
    return CallContext(
        stream=stream,
        step=started.step,
        invocation_id=started.invocation_id,
        idempotency_key=started.idempotency_key,
        attempt=started.attempt,
        principal=started.principal,
        trace_id=started.trace_id or trace_of(stream),
        span_id=started.span_id,
        timeout_s=timeout_s,
        now=now,
        progress=no_progress,
    )


@lru_cache(maxsize=1_024)
def trace_of(stream: str) -> str:
    """The trace a stream's calls belong to: 32 hexadecimal digits, those of the job's or session's identifier."""
    try:
        return trace_id(stream.split("/", 2)[1])
    except (IndexError, ValueError):  # a stream that someone named by hand
        return hashlib.sha256(stream.encode()).hexdigest()[:32]


class _Reporter(msgspec.Struct, frozen=True, gc=False):
    """Passes progress on, in the event loop's thread; what the listener raises is not the tool's."""

    _progress: Progress
    _loop: asyncio.AbstractEventLoop

    def __call__(self, done: float | None, total: float | None, message: str) -> None:
        """Report; never fails."""
        if _running_loop() is self._loop:
            self._report(done, total, message)
        else:
            with suppress(RuntimeError):  # the loop is closed: there is no listener any more
                self._loop.call_soon_threadsafe(self._report, done, total, message)

    def _report(self, done: float | None, total: float | None, message: str) -> None:
        try:
            self._progress(done, total, message)
        except Exception:  # noqa: BLE001 - it is the listener's error
            _log.debug("a progress report was lost", exc_info=True)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class CallKeeper(msgspec.Struct, frozen=True, gc=False):
    """Keeps bytes for one announced call."""

    _journal: Journal
    _writer: StreamWriter
    _invocation_id: str
    _step: str

    async def put(self, data: bytes, *, until: int | None = None) -> str:
        digest = sha256(data)
        ref = BlobRef(digest, len(data), "")
        event = BytesKept(invocation_id=self._invocation_id, step=self._step, kept_blob=ref, until=until)
        await self._journal.append(self._writer, event, synced=True, blobs=(Blob(digest, data, until),))
        return digest

    async def get(self, digest: str) -> bytes | None:
        if self._writer.subject:
            return await self._beside(digest)
        data = await self._journal.blob(digest)
        if data is not None and sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy="Restore a backup.")
        return data

    async def _beside(self, digest: str) -> bytes | None:
        """In a stream with a subject bytes are not kept under their own digest: look at what was kept."""
        stream = self._writer.stream
        for event in await whole(self._journal, await self._journal.read(stream)):
            payload = decode(event.kind, event.data)
            if isinstance(payload, BytesKept) and await self._journal.blob(payload.digest) is not None:
                try:
                    data = await self._journal.value(UNSET, payload.kept_blob)
                except PayloadErasedError:
                    continue
                if data is not None and sha256(data) == digest:
                    return data
        return None
