"""The one place where what a recipe asks for meets what its journal holds.

Recorded and the same: the recorded outcome, and nothing happens. Recorded and different: NONDETERMINISTIC, with both
sides. Not recorded: the *world* does it, which is live (activation.py) or refuses (replay.py).
"""

from __future__ import annotations

import asyncio
import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import JournalError, NondeterminismError, NotCanonicalError
from remit.gateway.call import asked
from remit.gateway.outcome import EvidenceItem, Outcome
from remit.jobs.state import CallRecord, History, Value, WaitRecord
from remit.journal.kinds import ChildStarted, ErrorInfo, TimerFired, WaitType
from remit.redact import line, preview_of

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_NO_GATHER: Final = "-"
"""The beginning of no place."""
_SLICE_S: Final = 0.005
"""Seconds a run may go on without giving other runs of the process a turn."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a wait ended with."""

    payload: Any = None
    by: str = ""
    timed_out: bool = False


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call, as the recipe asked for it."""

    step: str
    tool: str
    args: dict[str, Any]
    hash: str
    """Digest of the arguments; empty where they have no canonical form."""
    timeout_s: float | None


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Something outside that a step waits for."""

    step: str
    type: WaitType
    key: str
    due_at: int | None = None
    """When waiting ends without it; for a timer, when it fires."""
    reason: str = ""
    question: dict[str, Any] | None = None
    """What a recipe asks a person, to be opened as a confirmation named by `key`."""
    attempt: int = 0
    """The attempt whose end nobody saw, where a person is to say what came of it."""
    request_hash: str = ""
    """Digest of what is asked, where that is more than the key says."""

    @property
    def words(self) -> str:
        """What is waited for, for people."""
        if self.type == "timer":
            return "a timer" if not self.key.startswith("retry:") else "the next attempt"
        if self.type == "signal":
            return f"signal {self.key}"
        return f"a decision on step {self.step}" if self.attempt else f"confirmation {self.key}"


class World(Protocol):
    """Does what is not recorded yet."""

    async def call(self, asked: Asked, record: CallRecord) -> Outcome:
        """Make a call, or go on with one that has begun."""
        ...

    async def value(self, step: str, kind: type[Value]) -> Value:
        """Read the clock or draw a random value, and record it."""
        ...

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:
        """Wait for something outside, and record that it came."""
        ...

    async def child(self, started: ChildStarted) -> None:
        """Record that another recipe begins within this run."""
        ...

    def block(self) -> None:
        """The running branch waits now."""
        ...

    def unblock(self) -> None:
        """A waiting branch goes on."""
        ...

    def progress(self, done: float | None, total: float | None, message: str) -> None:
        """Show how far the run is."""
        ...

    def now(self) -> int:
        """Microseconds since the Unix epoch; for bounds of waits, which are recorded."""
        ...


class Effects:
    """Matches effects with a history, and hands the rest to a world."""

    def __init__(self, history: History, journal: Journal, world: World) -> None:
        """Effects of one pass over a job."""
        self.history = history
        self.world = world
        self.failure: BaseException | None = None
        """Ends the pass: who asks for the next effect is not answered any more."""
        self.left = set(history.places)
        """Recorded places the recipe has not come by yet."""
        self._left_in: dict[str, list[str]] | None = None
        """Those that were left when the first new effect began, by every branch they lie in."""
        self._whole: set[tuple[str, str]] = set()
        """Branches in which nothing recorded is left, but within their gather at this place."""
        self._over = False
        self._cut: NondeterminismError | None = None
        self._journal = journal
        self._turn_ends = time.monotonic() + _SLICE_S

    async def call(self, step: str, tool: str, args: dict[str, Any], timeout_s: float | None) -> Outcome:
        """The outcome of a call; the recipe may change the arguments afterwards, and while the call waits."""
        try:
            arguments_hash, encoded = digest(args), _encode(args)
        except (NotCanonicalError, TypeError):  # the gateway refuses them, as they are
            arguments_hash, encoded = "", b""
        if self._enter(step, "call"):
            await self._give_way(step)
        record = self.history.calls.get(step)
        if record is None:
            record = self.history.call(step)
        else:
            self._compare(step, record, tool, args, arguments_hash)
            if record.ended:
                return await self.recorded(record)
        if encoded:
            args = _decode(encoded)
        self._begin(step, "call")
        request = Asked(step=step, tool=tool, args=args, hash=arguments_hash, timeout_s=timeout_s)
        with _Uncut(self, step):
            outcome = await self.world.call(request, record)
        # It is in the journal, where another pass finds it; this one never comes by the place again.
        self.history.forget(step)
        # What is not recorded is not given: the recipe would go another way when it runs again.
        return outcome if outcome.detail is None else msgspec.structs.replace(outcome, detail=None)

    async def value(self, step: str, kind: type[Value]) -> Value:
        """A recorded value of the clock or of chance."""
        if self._enter(step, kind.KIND.removesuffix("_recorded")):
            await self._give_way(step)
        found = self.history.values.get(step)
        if found is not None:
            return found
        self._begin(step, kind.KIND.removesuffix("_recorded"))
        with _Uncut(self, step):
            return await self.world.value(step, kind)

    async def wait(self, wait: Wait) -> Answer:
        """What a wait ended with."""
        if self._enter(wait.step, wait.type):
            await self._give_way(wait.step)
        record = self.history.waits.get((wait.step, wait.key))
        if record is None:
            if wait.step in self.history.places:
                raise self.fail(NondeterminismError(wait.step, _effect(wait.type), f"to wait for {wait.words}"))
            self._begin(wait.step, wait.type)
        elif record.waiting.request_hash not in {"", wait.request_hash}:
            asked_before = f"the question {line(record.waiting.reason)!r}"
            raise self.fail(NondeterminismError(wait.step, asked_before, f"another one: {line(wait.reason)!r}"))
        with _Uncut(self, wait.step):
            return await self.waited(wait)

    async def waited(self, wait: Wait) -> Answer:
        """What a wait ended with, where it belongs to another effect's place."""
        record = self.history.waits.get((wait.step, wait.key))
        if record is None or record.completed is None:
            return await self.world.wait(wait, record)
        done = record.completed
        if isinstance(done, TimerFired):
            return Answer()
        encoded = await self._journal.value(done.payload, done.payload_blob)
        payload = _decode(encoded) if encoded is not None else None
        return Answer(payload=payload, by=done.by, timed_out=done.timed_out)

    async def child(self, started: ChildStarted) -> None:
        """Enter another recipe."""
        if self._enter(started.step, "child"):
            await self._give_way(started.step)
        found = self.history.children.get(started.step)
        if found is None:
            self._begin(started.step, "child")
            with _Uncut(self, started.step):
                await self.world.child(started)
        elif (found.name, found.request_hash) != (started.name, started.request_hash):
            error = NondeterminismError(started.step, f"the recipe {found.name}", f"the recipe {started.name}")
            raise self.fail(error)

    async def recorded(self, record: CallRecord) -> Outcome:
        """An outcome out of the journal, as it was given live."""
        refused, finished = record.refused, record.finished
        if refused is not None:
            return Outcome(
                status="blocked",
                code=Code[refused.code],
                reason=refused.reason,
                remedy=refused.remedy,
                confirmation=refused.confirmation or None,
            )
        if finished is None:
            msg = "an outcome was asked for that is not recorded"
            raise AssertionError(msg)
        evidence = tuple(msgspec.convert(item, EvidenceItem) for item in record.evidence) if finished.evidence else ()
        if finished.error is not None:
            return failed_outcome(finished.error, finished.invocation_id, finished.duration_us)
        result, kept = finished.result, finished.result_blob
        encoded: bytes | msgspec.Raw | None
        if isinstance(result, msgspec.Raw):
            encoded = result
        else:
            with _Uncut(self, finished.step):
                encoded = await self._journal.value(result, kept)
        return Outcome(
            status="ok",
            value=_decode(encoded) if encoded is not None else None,
            evidence=evidence,
            invocation_id=finished.invocation_id,
            duration_us=finished.duration_us,
        )

    def fail(self, error: BaseException) -> BaseException:
        """End the pass with this error, even if the recipe catches it."""
        if self.failure is None:
            self.failure = error
        return error

    def over(self) -> None:
        """The pass is over: the recipe begins nothing more, whatever it does on its way out."""
        self._over = True
        if self.failure is None or self.failure is self._cut:
            self.failure = asyncio.CancelledError()

    def cut_short(self, step: str) -> None:
        """An effect under way was cancelled: unless the whole pass is, the recipe did it, by a clock of its own."""
        if self.failure is None:
            self._cut = self.failure = NondeterminismError(step, "an effect under way", "to give it up")

    @property
    def skipped(self) -> str | None:
        """The first recorded place the recipe has not come by yet."""
        return next((step for step in self.history.places if step in self.left), None) if self.left else None

    def finish(self) -> None:
        """The recipe has come to its end: nothing that is recorded may be left out."""
        skipped = self.skipped
        if skipped is not None and self.failure is None:
            self.fail(NondeterminismError(skipped, _effect(self.history.places[skipped]), "nothing there any more"))

    def _begin(self, step: str, kind: str) -> None:
        """Something new begins: nothing that is recorded before it may be left, for it would be done again."""
        if not self.left:
            return
        if self._left_in is None:
            self._left_in = {}
            for place in self.left:
                for branch in _branches(place):
                    self._left_in.setdefault(branch, []).append(place)
        branches = _branches(step)
        # Every branch but its own stands still at a gather, whose other branches may be anywhere in their record.
        for branch, gather in zip_longest(branches[::2], branches[1::2], fillvalue=_NO_GATHER):
            if (branch, gather) not in self._whole:
                self._check_whole(branch, gather, f"{_effect(kind)} at {step} without it")
                self._whole.add((branch, gather))

    def _check_whole(self, branch: str, gather: str, asked: str) -> None:
        for place in self._left_in.get(branch, ()) if self._left_in else ():
            if place in self.left and not place.startswith(gather):
                raise self.fail(NondeterminismError(place, _effect(self.history.places[place]), asked))

    def _enter(self, step: str, kind: str) -> bool:
        """An effect begins; whether it has to give way, because the run's turn is over, or all of it."""
        if self.failure is not None:
            return True
        self.left.discard(step)
        recorded = self.history.places.get(step)
        if recorded is not None and recorded != kind:
            raise self.fail(NondeterminismError(step, _effect(recorded), _effect(kind)))
        return time.monotonic() >= self._turn_ends

    async def _give_way(self, step: str) -> None:
        if self.failure is None:
            with _Uncut(self, step):
                await asyncio.sleep(0)  # noqa: TID251 - gives way, waits for nothing
            self._turn_ends = time.monotonic() + _SLICE_S
        if self.failure is not None:
            self.go_on()
            # The recipe has been told, and may not have listened. It waits here for the end of the pass.
            self.world.block()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.world.unblock()

    def go_on(self) -> None:
        """Raise CancelledError where the pass is over."""
        if self._over:
            raise asyncio.CancelledError

    def _compare(self, step: str, record: CallRecord, tool: str, args: dict[str, Any], arguments_hash: str) -> None:
        recorded_tool, recorded_hash = record.asked
        if not recorded_hash:
            return  # nothing was announced yet
        same = recorded_hash == (arguments_hash if recorded_tool else asked(tool, arguments_hash))
        if same and recorded_tool in {"", tool}:
            return
        if record.started is not None:
            recorded_tool = record.started.tool_name
            shown = record.started.args
            words = f"{recorded_tool} {bytes(shown).decode()}" if isinstance(shown, msgspec.Raw) else recorded_tool
        else:
            words = f"{recorded_tool} with arguments {recorded_hash[:19]}…"
        raise self.fail(NondeterminismError(step, words[:400], f"{tool} {preview_of(args)}"))


class _Uncut:
    """Ends the pass where an effect was cut short: by the journal's failure, or by the recipe's own code.

    The recipe would else go on without knowing what became of it, and go another way than when it runs again.
    """

    __slots__ = ("_effects", "_step")

    def __init__(self, effects: Effects, step: str) -> None:
        self._effects = effects
        self._step = step

    def __enter__(self) -> None:
        """Nothing: how it ends is what counts."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, JournalError):
            self._effects.fail(error)
        elif isinstance(error, asyncio.CancelledError):
            self._effects.cut_short(self._step)


def _branches(place: str) -> list[str]:
    """Every branch a place lies in, the root first."""
    return [""] + [place[: end + 1] for end, char in enumerate(place) if char == "."]


def failed_outcome(error: ErrorInfo, invocation_id: str, duration_us: int) -> Outcome:
    """A failed call's outcome from its recorded error."""
    code = Code[error.code]
    return Outcome(
        status="blocked" if code.status == "blocked" else "failed",
        code=code,
        reason=error.message,
        remedy=error.remedy,
        cause=error.cause or None,
        invocation_id=invocation_id,
        duration_us=duration_us,
    )


def _effect(kind: str) -> str:
    return {"time": "a clock reading", "random": "a random number", "uuid": "a UUID", "call": "a tool call"}.get(
        kind, f"a wait ({kind})" if kind != "child" else "another recipe"
    )
