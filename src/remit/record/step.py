"""The story of one step: its attempts, versions, waits, questions and what it left behind.

Changes that a call made outside the job: whether it happened, and the state before and after, as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from remit.jobs.state import DOUBT, CallRecord, ModelRecord, stuck_by
from remit.journal.blobs import BlobRef
from remit.journal.effects import Effect, effect_of
from remit.journal.kinds import (
    CallLogged,
    LogLine,
    OptionalRaw,
    OptionalRef,
    Sayer,
    StepCompensated,
    TimerFired,
    ToolInvocationFinished,
    UntrustedArgument,
    WaitCompleted,
)
from remit.journal.kinds import ToolInvocationStarted as Started
from remit.models.message import Refusal, decode
from remit.redact import line, mask, preview, preview_of

_BEFORE: Final = "before"
_UNSAID: Final = "not recorded"
_DIFF: Final = 4_000
"""Characters of a change that are shown."""


class StateDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step changed outside the job."""

    side_effect: str
    """`read`, `write` or `unknown`, as the tool declares it."""
    effect: Literal["none", "committed", "undone", "unknown"]
    idempotency_key: str
    effect_by: Sayer = ""
    """The one who says so: `remit`, which did not send it or heard nothing; the `tool`, by its answer; a `person`."""
    before: str = ""
    """The state before, as far as the result says so: JSON on one line, with secrets masked, and cut."""
    after: str = ""
    """The same, afterwards."""
    diff: str = ""
    """The lines that went and came, as far as the result says so: masked and cut."""
    kept: BlobRef | None = None
    """The result, where it is too long for its event and was not read."""

    @property
    def kind(self) -> str:
        """Return the effect that the tool declares, for people."""
        return "may write" if self.side_effect == "unknown" else self.side_effect

    @property
    def words(self) -> str:
        """Return effect and who says so, for people."""
        if self.effect == "undone":
            return "it happened, and was undone"
        return Effect(self.effect, self.effect_by).words

    def told_by(self, recorded: bytes) -> StateDiff:
        """Return it with what a result says: `diff`, `before` and `after`, `NAME_before` and `NAME_after` or `NAME`."""
        try:
            result = msgspec.json.decode(recorded)
        except msgspec.DecodeError:  # it was changed since, as `remit verify` says: it tells nothing
            result = None
        before, after = _states(result) if isinstance(result, dict) else ({}, {})
        diff = result.get("diff") if isinstance(result, dict) else ""
        return msgspec.structs.replace(
            self,
            kept=None,
            before=preview_of(before) if before else "",
            after=preview_of(after) if before else "",
            diff=mask(diff)[:_DIFF] if isinstance(diff, str) else "",
        )


def state_diff(
    started: Started, finished: ToolInvocationFinished | None, undone: StepCompensated | None
) -> StateDiff | None:
    """Return what a call changed; None for one that only reads."""
    effect = effect_of(started, finished)
    if not effect.known:
        return None
    diff = StateDiff(
        side_effect=started.side_effect,
        effect="undone" if undone is not None and undone.outcome == "compensated" else effect.known,
        effect_by=effect.by,
        idempotency_key=started.idempotency_key,
    )
    return _with_result(diff, finished.result, finished.result_blob) if finished is not None else diff


def _with_result(diff: StateDiff, inline: OptionalRaw, ref: OptionalRef) -> StateDiff:
    if isinstance(inline, msgspec.Raw):
        return diff.told_by(bytes(inline))
    return msgspec.structs.replace(diff, kept=ref) if isinstance(ref, BlobRef) else diff


def repairs(started: Started, finished: ToolInvocationFinished | None) -> str:
    """Return what was repaired in a call's arguments and result, for people; empty: nothing was."""
    from remit.jsonrpc.message import REPAIRS  # noqa: PLC0415 - few steps had anything repaired

    parts = (("arguments", started.repaired), ("result", finished.repaired if finished is not None else {}))
    return "; ".join(
        f"{part}: {REPAIRS.get(kind, line(kind))}{f' ({number} times)' if number > 1 else ''}"
        for part, kinds in parts
        for kind, number in kinds.items()
    )


def _states(result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state before and after, by the same names."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for member, value in result.items():
        name = member.removesuffix(_BEFORE)
        if member == _BEFORE:
            before["state"], after["state"] = value, result.get("after", _UNSAID)
        elif member != name and name.endswith("_"):
            name = name.removesuffix("_")
            before[name], after[name] = value, result.get(f"{name}_after", result.get(name, _UNSAID))
    return before, after


Preview = Callable[[OptionalRaw, OptionalRef], str]
"""Shows a recorded value on one line."""
StepState = Literal["ok", "failed", "blocked", "running", "unknown", "waiting"]
_VERDICTS: Final = {
    "allowed": "{by} allowed it",
    "approved": "approved by {by}",
    "asked": "a person is asked",
    "denied": "denied by {by}",
    "expired": "no one answered in time",
}


class ToolInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool ran, in which version (contract: versioning, "Trace")."""

    tool: str
    provider: str
    version: str
    request_schema_hash: str
    response_schema_hash: str = ""


class LlmInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """Which model answered, or was asked, and what it took (contract: versioning, "Trace")."""

    model: str
    provider: str
    temperature: float | None
    prompt_hash: str
    token_count: int
    """Of the last attempt, as everything below."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that were read from a cache."""
    reasoning_tokens: int = 0
    """Output tokens that were spent on reasoning."""
    cost: float | None = None
    """US dollars, estimated from prices; null: no price is known."""
    finish_reason: str = ""
    finish_raw: str = ""
    """The same in the provider's words."""
    first_token_ms: float | None = None
    """Milliseconds until the first piece of the answer."""

    @property
    def words(self) -> str:
        """Return what it took: tokens, estimated cost, and why the answer ended."""
        cost = f"${self.cost:.6f}".rstrip("0").rstrip(".") if self.cost is not None else ""
        cached = f" ({self.cached_tokens:,} cached)" if self.cached_tokens else ""
        took = f"{self.input_tokens:,} tokens in{cached}, {self.output_tokens:,} out"
        return ", ".join(filter(None, (took, cost, self.finish_raw or self.finish_reason)))


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One announced call of a tool or question to a model, and its outcome."""

    number: int
    started_at: int
    """Microseconds since the Unix epoch, as every instant here."""
    ended_at: int | None = None
    duration_us: int = 0
    outcome: str = ""
    """`success`, `failure`, `timeout`; empty: its end was not recorded."""
    code: str = ""
    message: str = ""
    cause: str = ""
    """The provider's own code."""
    decided_by: str = ""
    """The person who resolved it, where it was not recorded."""
    reported_by: str = ""
    """The client that made the call itself and reported its end."""
    remarks: tuple[str, ...] = ()
    """Remarks on its report."""
    again_ms: int | None = None
    """Milliseconds until a model was asked again; null: this was the last attempt, or it is a tool's."""
    next_model: str = ""
    """The model that was asked next in the place of this one."""
    model: str = ""
    """The model that was asked in the place of another; empty: the one of the first attempt."""
    passed: tuple[str, ...] = ()
    """Reasons why models before it could not be asked."""

    @property
    def by(self) -> str:
        """Return which model was asked in the place of another, with the reasons; empty: the first one, or a tool."""
        reasons = f" ({'; '.join(self.passed)})" if self.passed else ""
        return f" by {self.model}{reasons}" if self.model else ""


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer, or the end of the time to give one."""

    decision: str
    by: str
    at: int
    digest: str = ""
    """The digest that they had in front of them."""
    reason: str = ""
    replaced_by: str = ""
    channel: str = ""
    """The channel on which it came, such as `slack`; empty: a face of Remit."""
    account: str = ""
    """The person's account there."""
    shown: str = ""
    """Digest of what the message there showed."""
    instead_of: str = ""
    """The absent person for whom they decided."""


class PutOff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer of a client that decided nothing."""

    client: str
    """The program, as it names itself."""
    answer: str
    """`decline` or `cancel`."""
    at: int
    after_ms: int
    """Milliseconds from the question to the answer."""
    by_program: bool = False
    """Whether the program declined by itself."""

    @property
    def words(self) -> str:
        """Return what it did, in words."""
        did = "declined by itself" if self.by_program else "closed it"
        return f"{self.client or 'the client'} {did} after {self.after_ms} ms: it stayed open"


class Continued(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that was made again in another session, and ran there."""

    session: str
    asked_in: str
    """The session it was first made in."""
    at: int


class Untrusted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments of a call from untrusted text, and what was decided (docs/untrusted.md)."""

    arguments: tuple[UntrustedArgument, ...] = ()
    decided: Literal["", "allowed", "approved", "asked", "denied", "expired"] = ""
    """Empty: the call was refused for another reason."""
    by: str = ""
    """The people, or the rule."""
    kept: BlobRef | None = None
    """The remains of arguments that were too long for their event and cannot be read: place and preview."""

    @property
    def verdict(self) -> str:
        """Return what was decided, in words; empty if nothing was."""
        return _VERDICTS[self.decided].format(by=self.by or "nobody") if self.decided else ""


class QuestionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to people and every answer."""

    confirmation: str
    asked_at: int
    digest: str
    question: str = ""
    rule_id: str = ""
    approvals: int = 1
    expires_at: int | None = None
    edited_from: str = ""
    untrusted: Untrusted | None = None
    """The part of the question about untrusted arguments."""
    decisions: tuple[Decided, ...] = ()
    put_off: tuple[PutOff, ...] = ()
    """The answers of clients that decided nothing."""
    used_at: int | None = None
    """When the approval was spent on its call."""


class Waited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wait for something outside the job."""

    type: str
    key: str
    since: int
    until: int | None = None
    due_at: int | None = None
    reason: str = ""
    by: str = ""
    timed_out: bool = False
    answer: str = ""
    """The answer, on one line."""
    decision: str = ""
    """The decision of a person about an attempt whose outcome was unknown: `done`, `retry` or `fail`."""
    because: str = ""
    """The reason that they gave."""

    @property
    def stuck(self) -> bool:
        """Return whether the code at hand could not go on, so that no step waits."""
        return self.type == "human" and self.key.startswith(stuck_by(""))

    def over(self, payload: WaitCompleted | TimerFired, at: int) -> Waited:
        """The wait as it ended."""
        if isinstance(payload, TimerFired):
            return msgspec.structs.replace(self, until=at)
        ended = msgspec.structs.replace(
            self,
            until=at,
            by=payload.by,
            timed_out=payload.timed_out,
            answer=shown(payload.payload, payload.payload_blob),
        )
        if not self.key.startswith(DOUBT) or not isinstance(payload.payload, msgspec.Raw):
            return ended
        try:
            decided = msgspec.json.decode(payload.payload, type=_Resolution)
        except msgspec.DecodeError:  # no decision that Remit wrote
            return ended
        return msgspec.structs.replace(ended, decision=decided.decision, because=decided.reason)


class _Resolution(msgspec.Struct, frozen=True):
    """The part of a decision about an unknown outcome that the story tells."""

    decision: str = ""
    reason: str = ""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is not the recorded one, as found when the job was resumed."""

    subject: str
    """`execution`, `planner`, `recipe`, `registry`, a tool's name, or `model`."""
    recorded: str
    current: str
    at: int
    about: str = ""
    """The part of a tool that changed: `version`, `provider`, `arguments` or `result` (their schema); empty for others.
    """
    step: str = ""
    """The step that asked the model; empty for others."""

    @property
    def words(self) -> str:
        """Return what changed."""
        what = {"arguments": "schema of the arguments", "result": "schema of the result"}.get(self.about, self.about)
        where = f" of step {self.step}" if self.step else ""
        return f"{self.subject}{where}{', ' if what else ''}{what}"


class CallLines(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines that a tool logged while it was called."""

    lines: tuple[LogLine, ...] = ()
    left_out: int = 0
    """Lines beyond those that a call may write."""
    kept: tuple[BlobRef, ...] = ()
    """More lines, which stand beside their events and were not read."""


def log_of(events: Sequence[CallLogged]) -> CallLines | None:
    """Return what a tool logged, as far as it stands in the events; None: nothing."""
    if not events:
        return None
    recorded = [bytes(event.lines) for event in events if isinstance(event.lines, msgspec.Raw)]
    return CallLines(
        lines=tuple(each for data in recorded for each in lines_of(data)),
        left_out=sum(event.left_out for event in events),
        kept=tuple(event.lines_blob for event in events if isinstance(event.lines_blob, BlobRef)),
    )


def lines_of(recorded: bytes) -> tuple[LogLine, ...]:
    """Return recorded lines; none of bytes that were changed since, as `remit verify` says."""
    try:
        return msgspec.json.decode(recorded, type=tuple[LogLine, ...])
    except msgspec.DecodeError:
        return ()


class StepNarrative(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step, whole."""

    step: str
    name: str
    """`tool.<name>`, `model.<provider>:<model>`, `wait.<type>`, `recipe.<name>`, `compensate`, `time`, `random` or
    `uuid`; in a session also `relayed.<method>`."""
    state: StepState
    started_at: int
    """When it began; where it was taken from another job, when it began there."""
    ended_at: int | None = None
    taken_from: str = ""
    """The job that recorded it, where a retry took it over; empty: this one."""
    args_preview: str = ""
    result_preview: str = ""
    code: str = ""
    reason: str = ""
    remedy: str = ""
    principal: str = ""
    """The principal that asked for the call."""
    rule_id: str = ""
    """The rule that decided on the call."""
    policy_hash: str = ""
    """Digest of the rules it was decided by."""
    capability_level: str = ""
    risk_level: str = ""
    """The risk as the tool's provider says it: `read_only`, `write` or `unknown`."""
    approval: str = ""
    """The confirmation that the call ran on."""
    confirmation: str = ""
    """The question that it waits for, or ran on, or was refused after."""
    undone: str = ""
    """`compensated` if another call undid it; `failed` or `skipped` if it was to be undone and stays as it is."""
    tool_invocation: ToolInvocation | None = None
    llm_invocation: LlmInvocation | None = None
    attempts: tuple[Attempt, ...] = ()
    waits: tuple[Waited, ...] = ()
    confirmations: tuple[QuestionRecord, ...] = ()
    untrusted: Untrusted | None = None
    """The arguments from untrusted text, and what was decided."""
    evidence: tuple[dict[str, Any], ...] = ()
    state_diff: StateDiff | None = None
    repaired: str = ""
    """The repairs of its arguments and its result as they were read."""
    drifts: tuple[Drift, ...] = ()
    """Versions of the tool or model that are not the recorded ones, as found when the job was resumed."""
    continued: tuple[Continued, ...] = ()
    """The sessions in which the call was made again once it was decided."""
    ungoverned: tuple[str, ...] = ()
    """Calls that a model wanted here and that ran ungoverned, as tool and identifier."""
    log: CallLines | None = None
    """The log of its tool; null: it logged nothing."""

    @property
    def attempt(self) -> int:
        """The number of its newest attempt."""
        return self.attempts[-1].number if self.attempts else 1

    @property
    def duration_us(self) -> int:
        """Return how long its newest attempt took, in microseconds; 0: it made none that ended."""
        return self.attempts[-1].duration_us if self.attempts else 0


def call_state(record: CallRecord, *, waiting: bool, ended: bool) -> StepState:
    """Return the state of a call; `waiting`: its step waits for something, `ended`: its job has ended."""
    finished = record.finished
    if record.refused is not None:
        return "blocked"
    if record.started is None:
        return "waiting"
    if record.unknown and (finished is not None or ended or waiting):
        return "unknown"
    if waiting and not record.ended:
        return "waiting"
    if finished is None:
        return "running"
    return "failed" if finished.error else "ok"


def model_state(record: ModelRecord, *, waiting: bool, ended: bool) -> StepState:
    """Return the state of a question; `waiting`: for a person or its next attempt, `ended`: its job has ended."""
    if record.refused is not None:
        return "blocked"
    if record.committed is not None and record.ended:
        return "failed" if record.committed.error else "ok"
    if ended and record.started is not None:
        return "unknown"
    return "waiting" if waiting else "running"


def joined(*parts: str) -> str:
    """Join the parts that are not empty."""
    return " ".join(part for part in parts if part)


def shown(inline: OptionalRaw, ref: OptionalRef) -> str:
    """A recorded value on one line, wherever it is kept; empty where none was recorded."""
    if isinstance(ref, BlobRef):
        return ref.preview
    return preview(bytes(inline)) if isinstance(inline, msgspec.Raw) else ""


def said(inline: OptionalRaw, ref: OptionalRef) -> str:
    """A model's answer on one line: its text, then the calls that it wants."""
    try:
        message = decode(bytes(inline)) if isinstance(inline, msgspec.Raw) else None
    except msgspec.DecodeError:
        message = None
    if message is None:  # too long for its event, or none
        return shown(inline, ref)
    calls = [f"{call.name.replace('__', '.')} {call.arguments}" for call in message.calls]
    wants = f"calls {', '.join(calls)}" if calls else ""
    refusal = "".join(block.text for block in message.blocks if isinstance(block, Refusal))
    return line(" ".join(filter(None, (message.text or refusal, wants))))
