"""The one place where what a recipe asks for meets what its journal holds.

Recorded and the same: the recorded outcome, and nothing happens. Recorded and different: NONDETERMINISTIC, with both
sides. Not recorded: the handler does it, which is live (live.py) or refuses (replay.py).

Matches the places a recipe comes by with those that are recorded, and ends the pass if they differ.
"""

from __future__ import annotations

import asyncio
import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import JournalError, NondeterminismError, NotCanonicalError, RunError, UsageError
from remit.gateway.call import asked
from remit.gateway.conversation import values_of
from remit.gateway.outcome import Outcome
from remit.jobs.branch import OWN_LIMIT, current
from remit.jobs.effects.outcomes import held_outcome, recorded_answer, recorded_outcome, recorded_reply
from remit.jobs.effects.port import CallRequest, EffectHandler, ModelQuestion, Undo, Wait, WaitAnswer, checked_undo
from remit.jobs.end import child_end
from remit.jobs.routes import LackingError
from remit.jobs.spans import Activity
from remit.jobs.state import CallRecord, JobHistory, Value, WaitRecord
from remit.journal.event import UNSET
from remit.models.names import parse
from remit.redact import line, preview_of

if TYPE_CHECKING:
    from remit.gateway.conversation import Conversation
    from remit.journal.event import Blob
    from remit.journal.journal import Journal
    from remit.journal.kinds import ChildStarted, CommandStarted, CompensationCompleted, ErrorInfo, JobLabeled


_NO_GATHER: Final = "-"
"""No place begins with it."""
_SLICE_S: Final = 0.005
"""Seconds a run may go on without giving other runs of the process a turn."""
_NAMES: Final = {
    "time": "a clock reading",
    "random": "a random number",
    "uuid": "a UUID",
    "call": "a tool call",
    "model": "a question to a model",
    "child": "another recipe",
    "label": "a label or title",
    "compensation": "undoing what was done",
}


class Matching:
    """The places of one pass over a job."""

    def __init__(self, history: JobHistory, activity: Activity) -> None:
        self.failure: BaseException | None = None
        """Ends the pass: no effect that the recipe asks for after it is answered."""
        self.left = set(history.places)
        """Recorded places the recipe has not come by yet."""
        self._history = history
        self._activity = activity
        self._left_in: dict[str, list[str]] | None = None
        """Those that were left when the first new effect began, by every branch they lie in."""
        self._whole: set[tuple[str, str]] = set()
        """Branches in which nothing recorded is left, except within their gather at this place."""
        self._over = False
        self._cut: NondeterminismError | None = None
        self._turn_ends = time.monotonic() + _SLICE_S

    def enter(self, step: str, kind: str) -> bool:
        """Come by a place with an effect of this kind; whether to `give_way` before it. Raises NondeterminismError."""
        if self.failure is not None:
            return True
        self.left.discard(step)
        recorded = self._history.places.get(step)
        if recorded is not None and recorded != kind:
            raise self.fail(NondeterminismError(step, effect_name(recorded), effect_name(kind)))
        return time.monotonic() >= self._turn_ends

    async def give_way(self, step: str) -> None:
        """Let other runs of the process go on; if this pass is over, wait for its end."""
        if self.failure is None:
            with self.guarded(step):
                await asyncio.sleep(0)  # noqa: TID251 - gives way, waits for nothing
            self._turn_ends = time.monotonic() + _SLICE_S
        if self.failure is not None:
            self.go_on()
            # The recipe has caught the error and goes on. It waits here for the end of the pass.
            self._activity.block()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._activity.unblock()

    def begin(self, step: str, kind: str) -> None:
        """Begin a new effect. Raises NondeterminismError if a recorded one before it is left: it would be done again.

        Every branch but the effect's own stands still at a gather, whose other branches may be anywhere in their
        record.
        """
        if not self.left:
            return
        if self._left_in is None:
            self._left_in = {}
            for place in self.left:
                for branch in _branches(place):
                    self._left_in.setdefault(branch, []).append(place)
        branches = _branches(step)
        for branch, gather in zip_longest(branches[::2], branches[1::2], fillvalue=_NO_GATHER):
            if (branch, gather) not in self._whole:
                self._check_whole(branch, gather, f"{effect_name(kind)} at {step} without it")
                self._whole.add((branch, gather))

    def _check_whole(self, branch: str, gather: str, effect: str) -> None:
        for place in self._left_in.get(branch, ()) if self._left_in else ():
            if place in self.left and not place.startswith(gather):
                raise self.fail(NondeterminismError(place, effect_name(self._history.places[place]), effect))

    def guarded(self, step: str) -> _CancellationGuard:
        """Guard an effect under way: the pass ends if the effect is cut short."""
        return _CancellationGuard(self, step)

    def interrupt(self, step: str, error: BaseException | None) -> None:
        """End the pass if what an effect ended with cut it short: the journal, what is lacking here, the recipe's code.

        The recipe would otherwise go on without knowing the outcome, and go another way than when it runs again.
        """
        if isinstance(error, JournalError | LackingError | NondeterminismError):
            self.fail(error)
        elif isinstance(error, asyncio.CancelledError):
            self.cut_short(step)

    # --- the end of the pass

    def fail(self, error: BaseException) -> BaseException:
        """End the pass with this error, even if the recipe catches it."""
        if self.failure is None:
            self.failure = error
        return error

    def cut_short(self, step: str) -> None:
        """Record that an effect under way was cancelled: by the recipe's own clock, unless the whole pass is over."""
        if self.failure is None:
            held, purpose, code = "an effect under way", "to give it up", Code.FOREIGN_TIMEOUT
            self._cut = self.failure = NondeterminismError(step, held, purpose, code=code, remedy=OWN_LIMIT)

    def refuse_limit(self) -> None:
        """Refuse to wait within an `asyncio.timeout`: a parked job outlives it. Raises RunError (FOREIGN_TIMEOUT)."""
        if current.get().limited:
            reason = "the recipe waits within a time limit of asyncio, which the job would outlive"
            raise self.fail(RunError(reason, code=Code.FOREIGN_TIMEOUT, remedy=OWN_LIMIT))

    def over(self) -> None:
        """End the pass: the recipe begins nothing more, whatever it does on its way out."""
        self._over = True
        if self.failure is None or self.failure is self._cut:
            self.failure = asyncio.CancelledError()

    def go_on(self) -> None:
        """Raise CancelledError if the pass is over."""
        if self._over:
            raise asyncio.CancelledError

    def finish(self) -> None:
        """End the recipe: nothing that is recorded may be left out."""
        skipped = self.skipped
        if skipped is not None and self.failure is None:
            recorded = effect_name(self._history.places[skipped])
            self.fail(NondeterminismError(skipped, recorded, "nothing there any more"))

    @property
    def skipped(self) -> str | None:
        """The first recorded place the recipe has not come by yet."""
        return next((step for step in self._history.places if step in self.left), None) if self.left else None


class _CancellationGuard:
    """Tells a pass how an effect ended."""

    __slots__ = ("_matching", "_step")

    def __init__(self, matching: Matching, step: str) -> None:
        self._matching = matching
        self._step = step

    def __enter__(self) -> None:
        """Do nothing: how it ends is what counts."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._matching.interrupt(self._step, error)


def effect_name(kind: str) -> str:
    """A kind of effect in words."""
    return _NAMES.get(kind, f"a wait ({kind})")


def _branches(place: str) -> list[str]:
    """Every branch a place lies in, the root first."""
    return [""] + [place[: end + 1] for end, char in enumerate(place) if char == "."]


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Effects:
    """Matches effects with a history, and hands the rest to a handler."""

    def __init__(self, history: JobHistory, journal: Journal, handler: EffectHandler, activity: Activity) -> None:
        self.history = history
        self.handler = handler
        self.activity = activity
        self.matching = Matching(history, activity)
        self.journal = journal
        self._unpatched: set[str] = set()
        """Changes of the code that this pass found to be later than what is recorded."""

    async def call(
        self,
        step: str,
        tool: str,
        args: dict[str, Any],
        timeout_s: float | None,
        undo: Undo | None = None,
        *,
        needed: bool,
        conversation: Conversation | None = None,
        attempts: int | None = None,
        barred: Outcome | None = None,
    ) -> Outcome:
        """The outcome of a call; the recipe may change the arguments afterwards, and while the call waits.

        If the tool is `needed`, the job waits for it. Raises LackingError, which ends the pass.
        """
        matching = self.matching
        if self.history.forked is not None:
            tool, args = await self._changed(step, tool, args)
        record = self.history.calls.get(step)
        ended = record is not None and record.ended
        arguments_hash, encoded = _digested(args, encode=not ended)
        if matching.enter(step, "call"):
            await matching.give_way(step)
        if record is None:
            record = self.history.call(step)
        else:
            self._compare(step, record, tool, args, arguments_hash)
            if ended:
                if undo is None and (held := held_outcome(record)) is not None:
                    return self._told(step, held, conversation)
                return self._told(step, await self._ended(step, record, undo), conversation)
        if matching.left:
            matching.begin(step, "call")
        request = CallRequest(
            step=step,
            tool=tool,
            args=_decode(encoded) if encoded else args,
            hash=arguments_hash,
            encoded=encoded,
            timeout_s=timeout_s,
            undo=undo,
            needed=needed,
            conversation=conversation,
            attempts=attempts,
            barred=barred,
        )
        try:
            outcome = await self.handler.call(request, record)
            if undo is not None:
                await self._declare(step, undo, outcome)
        except BaseException as error:
            matching.interrupt(step, error)
            raise
        # It is in the journal, where another pass finds it; this one never comes by the place again.
        self.history.forget(step)
        # What is not recorded is not given: the recipe would go another way when it runs again.
        outcome = outcome if outcome.detail is None else msgspec.structs.replace(outcome, detail=None)
        return outcome if conversation is None else self._told(step, outcome, conversation)

    async def _ended(self, step: str, record: CallRecord, undo: Undo | None) -> Outcome:
        with self.matching.guarded(step):
            outcome = await recorded_outcome(record, self.journal)
            if undo is not None:
                await self._declare(step, undo, outcome)
        return outcome

    async def _changed(self, step: str, tool: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The tool and the arguments of a call: others, if a fork gives it them."""
        arguments = self.history.arguments.get(step)
        recorded = await self.journal.value(arguments.args, arguments.args_blob) if arguments is not None else None
        return self.history.tool_at(step, tool), args if recorded is None else _decode(recorded)

    def _told(self, step: str, outcome: Outcome, conversation: Conversation | None) -> Outcome:
        """The outcome; what a tool made of untrusted values is the model's in the recipe that it runs, as they are."""
        if (
            conversation is not None
            and conversation.known_values is not None
            and step in self.history.provenance.derived
        ):
            conversation.known_values.update(values_of(outcome.value))
        return outcome

    async def ask(self, question: ModelQuestion) -> Outcome:
        """The outcome of a question to a model."""
        matching, step = self.matching, question.step
        if matching.enter(step, "model"):
            await matching.give_way(step)
        record = self.history.models.get(step)
        if record is None:
            record = self.history.model(step)
        elif record.hash not in {"", question.hash}:
            asked_before = f"a question to a model with the hash {record.hash[:19]}…"
            raise matching.fail(NondeterminismError(step, asked_before, f"another one: {question.hash[:19]}…"))
        if record.started is not None:
            await self._compare_model(question, record.started)
        if record.ended:
            with matching.guarded(step):
                return await recorded_reply(record, self.journal)
        matching.begin(step, "model")
        if (forked := self.history.forked) is not None and question.model in forked.models:
            question = msgspec.structs.replace(question, model=forked.models[question.model])
        with matching.guarded(step):
            outcome = await self.handler.ask(question, record)
        self.history.forget(step)
        return outcome

    async def value(self, step: str, kind: type[Value]) -> Value:
        """A recorded value of the clock or of chance."""
        matching, name = self.matching, kind.KIND.removesuffix("_recorded")
        if matching.enter(step, name):
            await matching.give_way(step)
        recorded = self.history.values.get(step)
        if recorded is not None:
            return recorded
        matching.begin(step, name)
        with matching.guarded(step):
            return await self.handler.value(step, kind)

    async def wait(self, wait: Wait) -> WaitAnswer:
        """Return what a wait ended with."""
        matching, step = self.matching, wait.step
        if matching.enter(step, wait.type):
            await matching.give_way(step)
        record = self.history.waits.get((step, wait.key)) or self._question_taken(wait)
        if record is None:
            if step in self.history.places:
                raise matching.fail(NondeterminismError(step, effect_name(wait.type), f"to wait for {wait.words}"))
            matching.begin(step, wait.type)
            matching.refuse_limit()
        elif record.waiting.request_hash not in {"", wait.request_hash}:
            asked_before = f"the question {line(record.waiting.reason)!r}"
            raise matching.fail(NondeterminismError(step, asked_before, f"another one: {line(wait.reason)!r}"))
        with matching.guarded(step):
            if record is not None and record.completed is not None:
                return await recorded_answer(record.completed, self.journal)
            return await self.handler.wait(wait, record)

    def _question_taken(self, wait: Wait) -> WaitRecord | None:
        """The question that a retry took over, under the name that it has in the other job."""
        if self.history.forked is None or wait.type != "human":
            return None
        waits = (state for (place, _), state in self.history.waits.items() if place == wait.step)
        return next((state for state in waits if state.completed is not None), None)

    async def poll(self, wait: Wait) -> WaitAnswer | None:
        """Return what a signal that had come already brought; None if none had.

        That none had is not recorded: it follows from what is recorded after this place.
        """
        matching = self.matching
        if (wait.step, wait.key) in self.history.waits or wait.step in self.history.places:
            return await self.wait(wait)
        if matching.enter(wait.step, wait.type):
            await matching.give_way(wait.step)
        if matching.left:
            return None
        with matching.guarded(wait.step):
            return await self.handler.poll(wait)

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> RunError | None:
        """Enter another recipe, or return why it may not begin; `blobs` hold its input if that is long."""
        matching, step = self.matching, started.step
        if matching.enter(step, "child"):
            await matching.give_way(step)
        child = self.history.children.get(step)
        refused = child.refused if child is not None else None
        if child is None:
            matching.begin(step, "child")
            with matching.guarded(step):
                refused = await self.handler.child(started, blobs)
        elif (child.name, child.request_hash) != (started.name, started.request_hash):
            raise matching.fail(NondeterminismError(step, f"the recipe {child.name}", f"the recipe {started.name}"))
        if refused is None:
            return None
        return RunError(refused.message, code=Code.recorded(refused.code, Code.POLICY_DENIED), remedy=refused.remedy)

    async def child_ended(self, step: str, result: object, error: ErrorInfo | None = None) -> None:
        """Record what another recipe came to, unless that is recorded or the pass is over.

        An older Remit recorded no ends of recipes, and none is added to what it began.
        """
        began = self.history.children.get(step)
        older = began is not None and began.input is UNSET and began.input_blob is UNSET
        if older or step in self.history.returned or self.matching.failure is not None:
            return
        with self.matching.guarded(step):
            await self.handler.child_ended(*child_end(step, result, error))

    async def patched(self, name: str) -> bool:
        """Return whether the recipe takes the new way of a change: nothing was recorded after it, the first time.

        The old way is not recorded: it follows from what is recorded after this place, or from the job's end.
        """
        matching, history = self.matching, self.history
        if matching.failure is not None:
            await matching.give_way(name)
        if name in history.patches:
            return True
        if matching.left or history.end is not None or name in self._unpatched:
            self._unpatched.add(name)
            return False
        with matching.guarded(name):
            await self.handler.patch(name)
        history.patches.add(name)
        return True

    async def label(self, labeled: JobLabeled) -> None:
        """Give the job labels or a title, unless that is recorded."""
        matching, step = self.matching, labeled.step
        if matching.enter(step, "label"):
            await matching.give_way(step)
        recorded = self.history.labeled.get(step)
        if recorded is not None:
            if recorded != labeled:
                raise matching.fail(NondeterminismError(step, recorded.words(), labeled.words()))
            return
        matching.begin(step, "label")
        with matching.guarded(step):
            await self.handler.label(labeled)

    async def compensate(self, step: str) -> CompensationCompleted:
        """Undo what the job has done so far."""
        matching = self.matching
        if matching.enter(step, "compensation"):
            await matching.give_way(step)
        done = self.history.compensated.get(step)
        if done is not None:
            return done
        matching.begin(step, "compensation")
        with matching.guarded(step):
            return await self.handler.compensate(step)

    async def _declare(self, step: str, undo: Undo, outcome: Outcome) -> None:
        """Record the call that undoes a step, if it is made from the step's value and not recorded yet."""
        if isinstance(undo, tuple) or not outcome.ok:
            return
        declared = self.history.undos.get(step)
        if declared is None or not declared.tool_name:
            await self.handler.declare(step, checked_undo(undo(outcome.value)))

    async def _compare_model(self, question: ModelQuestion, started: CommandStarted) -> None:
        """Another model than recorded is drift: reported, or refused, as the mismatch policy says."""
        recorded = _producer(started.asked) or f"{started.llm_provider}/{started.llm_model}"
        current = _producer(question.model or self.handler.default_model) or recorded
        if current != recorded and (forked := self.history.forked) is not None and question.model in forked.models:
            current = _producer(forked.models[question.model])
        if current != recorded and (started.step, current) not in self.history.drifts:
            self.history.drifts.add((started.step, current))
            with self.matching.guarded(started.step):
                error = await self.handler.model_differs(started, recorded, current)
            if error is not None:
                raise self.matching.fail(error)

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
        raise self.matching.fail(NondeterminismError(step, words[:400], f"{tool} {preview_of(args)}"))


def _producer(model: str) -> str:
    """The provider and name of a model; the name as it is, if it cannot be asked at all any more."""
    try:
        return parse(model).producer if model else ""
    except UsageError:
        return model


def _digested(args: dict[str, Any], *, encode: bool) -> tuple[str, bytes]:
    """Digest and bytes of arguments; empty for those without a canonical form, which the gateway refuses."""
    try:
        return digest(args), _encode(args) if encode else b""
    except (NotCanonicalError, TypeError):
        return "", b""
