"""The facts that questions are answered from, folded from events: sums of calls and answers, and acts one by one. Pure.

An act is what people are asked about later: a refusal, an answer of a person, an approval that was remembered or taken
back, a decision about an unknown outcome, a request to stop, an erasure, a look at an output. An act is kept as the
place of its event, and is told from that.

An act as it is told: what its event says, in the same fields for every kind of act.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

from remit.journal import kinds as k
from remit.journal.effects import effect_of, recorded
from remit.journal.event import Event
from remit.parts.audit.kinds import OutputRead
from remit.record.step import repairs
from remit.redact import line

What = Literal[
    "called",
    "decided",
    "refused",
    "answered",
    "remembered",
    "revoked",
    "resolved",
    "stopped",
    "erased",
    "uncertain",
    "ungoverned",
    "read",
]
"""`called` and `decided`: by a tool, a model; told of one job alone. `resolved`: a person said how a call ended whose
outcome is unknown; `uncertain`: none has; `ungoverned`: a call of an agent that no gate saw; `read`: someone got what
is recorded."""
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    k.JobCreated.KIND: ("principal", "execution_version"),
    k.SessionOpened.KIND: ("client",),
    k.ToolInvocationStarted.KIND: (
        "principal", "tool_version", "request_schema_hash", "risk_level", "call_id", "policy_hash", "policy_kept",
        "confirmation", "output_trusted", "untrusted_input", "span_id",
    ),
    k.GateRefused.KIND: ("risk_level", "policy_kept"),
    k.CommandStarted.KIND: ("principal", "prompt_hash"),
    k.CommandCommitted.KIND: ("finish_raw", "response_id"),
    k.ConfirmationDecided.KIND: ("digest", "proof", "signature"),
}  # fmt: skip
"""The fields of which it is counted how many events have them."""
S = TypeVar("S", bound="RecordSpan")


class RecordSpan(msgspec.Struct, kw_only=True, omit_defaults=True):
    """When something was recorded, in microseconds since the Unix epoch."""

    first_at: int = 0
    last_at: int = 0

    def note(self, first: int, last: int) -> None:
        """Let it cover another stretch of time."""
        self.first_at = min(self.first_at or first, first)
        self.last_at = max(self.last_at, last)


class ToolSum(RecordSpan, kw_only=True, omit_defaults=True):
    """Calls of a tool in one version, for one principal."""

    tool: str
    provider: str = ""
    version: str = ""
    request_schema_hash: str = ""
    capability_level: int = 0
    side_effect: str = "read"
    principal: str = ""
    calls: int = 0
    """Announced calls, each attempt for itself."""
    ok: int = 0
    failed: int = 0


class ModelSum(RecordSpan, kw_only=True, omit_defaults=True):
    """Answers of a model to one name, for one principal."""

    asked: str
    """As it was asked, `provider:model`."""
    answered: str = ""
    """The model that answered, `provider/model`; empty: none did."""
    principal: str = ""
    answers: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    unpriced: int = 0
    """Requests whose price is not known."""


_COUNTED: Final = ("calls", "ok", "failed", "answers", "tokens", "cost", "unpriced")


class Act(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The place of an act, and what it is looked for by."""

    what: What
    position: int
    at: int
    name: str
    """The tool or model; of a read, the operation."""
    who: str
    """The principal, or the person who answered."""
    note: str = ""
    """The code of a refusal, the decision of an answer, or the job that a read is about."""


class OpenCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call that was announced, and whose end is not recorded, or not known."""

    position: int
    at: int
    stream: str
    step: str
    key: str
    tool: str
    principal: str
    has_effect: bool
    """Whether it may have changed something."""
    doubt: bool = False
    """Whether it was recorded that the outcome is unknown."""


class OpenQuestion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A question to a model, or to a person."""

    position: int
    name: str
    """The model, or the tool that a person is asked about."""
    principal: str


class FactsState(msgspec.Struct, array_like=True):
    """What is known of the events before: a fold goes on from there."""

    calls: dict[str, OpenCall] = msgspec.field(default_factory=dict)
    questions: dict[str, OpenQuestion] = msgspec.field(default_factory=dict)
    """By invocation of a model; by stream, of a person."""
    copies: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By stream: the last event that a retry took over from another job, and the position."""

    def forget(self, before: int) -> None:
        """Leave out what began before a position and will not go on; calls that may have an effect stay."""
        self.calls = {name: call for name, call in self.calls.items() if call.has_effect or call.position >= before}
        self.questions = {name: call for name, call in self.questions.items() if call.position >= before}
        self.copies = {name: call for name, call in self.copies.items() if call[1] >= before}


class Counts(msgspec.Struct):
    """What a fold found."""

    tools: dict[str, ToolSum] = msgspec.field(default_factory=dict)
    """Sums of the same by one key."""
    models: dict[str, ModelSum] = msgspec.field(default_factory=dict)
    acts: list[Act] = msgspec.field(default_factory=list)
    """In the order in which they were recorded."""
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """Events of each kind."""
    repeats: dict[str, int] = msgspec.field(default_factory=dict)
    """Of these, the events that say again what another one says: who asks waits, or a retry took them over."""
    fields: dict[str, int] = msgspec.field(default_factory=dict)
    """Events that have a field, by `kind.field` (FIELDS); without repeats."""

    def add(self, other: Counts) -> None:
        """Add what another fold found later."""
        _add(self.tools, other.tools)
        _add(self.models, other.models)
        self.acts += other.acts
        for own, more in ((self.kinds, other.kinds), (self.repeats, other.repeats), (self.fields, other.fields)):
            for name, count in more.items():
                own[name] = own.get(name, 0) + count

    @property
    def acts_of(self) -> dict[str, int]:
        """The number of events of each kind, without repeats."""
        return {kind: number - self.repeats.get(kind, 0) for kind, number in self.kinds.items()}


def _add(own: dict[str, S], others: dict[str, S]) -> None:
    for key, other in others.items():
        mine = own.get(key)
        if mine is None:
            own[key] = msgspec.structs.replace(other)
            continue
        for name in mine.__struct_fields__:
            if name in _COUNTED:
                setattr(mine, name, getattr(mine, name) + getattr(other, name))
        if other.last_at:
            mine.note(other.first_at, other.last_at)


_ACTS: Final[dict[str, tuple[What, str, str, str]]] = {
    k.GateRefused.KIND: ("refused", "tool_name", "principal", "code"),
    k.CallUngoverned.KIND: ("ungoverned", "tool_name", "", "call_id"),
    k.ApprovalRevoked.KIND: ("revoked", "", "by", ""),
    k.CancelRequested.KIND: ("stopped", "", "by", ""),
    k.SubjectErased.KIND: ("erased", "", "by", ""),
}
"""Events that are an act by themselves: the fields that say its name, who did it, and the note; empty: none does."""


class AuditFacts:
    """A fold over events.

    It goes on from `state`, and counts what was recorded from `since` (µs) to before `until`. With `each`, calls and
    answers of models are acts too, and what a retry took over counts again.
    """

    def __init__(self, state: FactsState, since: int = 0, until: int | None = None, *, each: bool = False) -> None:
        self.state = state
        self.counts = Counts()
        self._since, self._until, self._each = since, until, each

    def take(self, position: int, event: Event) -> None:
        """Take an event in."""
        kind, counts = event.kind, self.counts
        is_counted = event.at >= self._since and (self._until is None or event.at < self._until)
        if is_counted:
            counts.kinds[kind] = counts.kinds.get(kind, 0) + 1
        copy = self.state.copies.get(event.stream) if self.state.copies else None
        if copy is not None and event.seq <= copy[0]:
            counts.repeats[kind] = counts.repeats.get(kind, 0) + is_counted
            return
        reader = self._readers.get(kind)
        if reader is None and kind not in FIELDS:
            return
        payload = k.decode(kind, event.data)
        if reader is not None:
            reader(self, position, event, payload, counts if is_counted else Counts())
        if is_counted:
            for name in FIELDS.get(kind, ()):
                if getattr(payload, name):
                    field = f"{kind}.{name}"
                    counts.fields[field] = counts.fields.get(field, 0) + 1

    # --- reading

    def _fork(self, position: int, event: Event, payload: k.JobForked, _counts: Counts) -> None:
        if payload.taken and not payload.shared and not self._each:
            self.state.copies[event.stream] = event.seq + payload.taken, position

    def _start(self, position: int, event: Event, payload: k.ToolInvocationStarted, counts: Counts) -> None:
        name, principal = payload.tool_name, payload.principal
        schema, level = payload.request_schema_hash, payload.capability_level
        key = _key(name, payload.provider_id, payload.tool_version, schema, level, payload.side_effect, principal)
        if payload.attempt > 1:  # the outcome of the earlier one was found out, or decided
            earlier = (event.stream, payload.step)
            for known in [name for name, call in self.state.calls.items() if (call.stream, call.step) == earlier]:
                del self.state.calls[known]
        self.state.calls[payload.invocation_id] = OpenCall(
            position, event.at, event.stream, payload.step, key, name, principal, payload.side_effect != "read"
        )
        tool = _tool(counts, key)
        tool.calls += 1
        tool.note(event.at, event.at)
        if self._each:
            counts.acts.append(Act("called", position, event.at, name, principal))

    def _finish(self, position: int, event: Event, payload: k.ToolInvocationFinished, counts: Counts) -> None:
        call = self.state.calls.pop(payload.invocation_id, None)
        if call is None:
            return
        if payload.step_outcome == "uncertain":
            self.state.calls[payload.invocation_id] = msgspec.structs.replace(call, doubt=True)
            return
        tool = _tool(counts, call.key)
        tool.ok += payload.outcome == "success"
        tool.failed += payload.outcome != "success"
        tool.note(event.at, event.at)
        if payload.decided_by:
            counts.acts.append(Act("resolved", position, event.at, call.tool, payload.decided_by, payload.outcome))

    def _ask_model(self, position: int, _event: Event, payload: k.CommandStarted, _counts: Counts) -> None:
        self.state.questions[payload.invocation_id] = OpenQuestion(position, payload.name, payload.principal)

    def _answer(self, position: int, event: Event, payload: k.CommandCommitted, counts: Counts) -> None:
        question = self.state.questions.pop(payload.invocation_id, None)
        answered = f"{payload.llm_provider}/{payload.llm_model}" if payload.outcome == "success" else ""
        name, principal = (
            (question.name, question.principal) if question is not None else (answered.replace("/", ":", 1), "")
        )
        key = _key(name, answered, principal)
        model = counts.models.get(key)
        if model is None:
            model = counts.models[key] = ModelSum(asked=name, answered=answered, principal=principal)
        model.answers += payload.outcome == "success"
        model.failed += payload.outcome != "success"
        model.tokens += payload.token_count
        model.cost += payload.cost or 0.0
        model.unpriced += payload.uncertain or (payload.cost is None and payload.token_count > 0)
        model.note(event.at, event.at)
        if self._each:
            counts.acts.append(Act("decided", position, event.at, name, principal))

    def _act(self, position: int, event: Event, payload: Any, counts: Counts) -> None:
        what, *fields = _ACTS[event.kind]
        counts.acts.append(Act(what, position, event.at, *(getattr(payload, field, "") for field in fields)))

    def _ask(self, position: int, event: Event, payload: k.ConfirmationRequested, counts: Counts) -> None:
        if event.stream.endswith(f"/{payload.confirmation}"):
            self.state.questions[event.stream] = OpenQuestion(position, payload.tool_name, payload.principal)
        else:  # the caller's own stream says that it waits
            counts.repeats[event.kind] = counts.repeats.get(event.kind, 0) + 1

    def _decide(self, position: int, event: Event, payload: k.ConfirmationDecided, counts: Counts) -> None:
        question = self.state.questions.get(event.stream)
        name = question.name if question is not None else ""
        counts.acts.append(Act("answered", position, event.at, name, payload.by, payload.decision))

    def _use(self, _position: int, event: Event, _payload: k.ConfirmationUsed, _counts: Counts) -> None:
        self.state.questions.pop(event.stream, None)

    def _remember(self, position: int, event: Event, payload: k.ApprovalRemembered, counts: Counts) -> None:
        name = str(payload.rule.get("tool", ""))
        counts.acts.append(Act("remembered", position, event.at, name, payload.by))

    def _read(self, position: int, event: Event, payload: OutputRead, counts: Counts) -> None:
        about = payload.names.get("job", "") or payload.names.get("session", "")
        counts.acts.append(Act("read", position, event.at, payload.operation, payload.principal, about))

    _readers: ClassVar[dict[str, Callable[[AuditFacts, int, Event, Any, Counts], None]]] = {
        k.JobForked.KIND: _fork,
        k.ToolInvocationStarted.KIND: _start,
        k.ToolInvocationFinished.KIND: _finish,
        k.CommandStarted.KIND: _ask_model,
        k.CommandCommitted.KIND: _answer,
        k.ConfirmationRequested.KIND: _ask,
        k.ConfirmationDecided.KIND: _decide,
        k.ConfirmationUsed.KIND: _use,
        k.ApprovalRemembered.KIND: _remember,
        OutputRead.KIND: _read,
        **dict.fromkeys(_ACTS, _act),
    }


_TOOL: Final = ("tool", "provider", "version", "request_schema_hash", "capability_level", "side_effect", "principal")
"""The subject of a sum of calls, in the order of its key."""


def _key(*parts: object) -> str:
    return msgspec.json.encode(parts).decode()


def _tool(counts: Counts, key: str) -> ToolSum:
    tool = counts.tools.get(key)
    if tool is None:
        fields = zip(_TOOL, msgspec.json.decode(key), strict=True)
        tool = counts.tools[key] = ToolSum(**dict(fields))
    return tool


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An act: who did, allowed, refused or decided what, on what, and why."""

    what: What
    at: int
    """Microseconds since the Unix epoch."""
    position: int
    """Its place among all, by which pages are told apart; of one job, among the events of that job."""
    stream: str
    seq: int
    step: str = ""
    name: str = ""
    """The tool or model; of a read, the operation."""
    who: str = ""
    """The principal that asked for it, or the person who decided."""
    outcome: str = ""
    """Of a call `ok`, `failed`, `running` or `unknown`; of an answer what was decided."""
    effect: k.Known = ""
    """The known effect of a call, however good its result was; empty: it only reads, or runs."""
    effect_by: k.Sayer = ""
    """The one who says so: `remit`, the `tool` or a `person`."""
    repaired: str = ""
    """The repairs of a call's arguments and its result as they were read."""
    code: str = ""
    reason: str = ""
    rule_id: str = ""
    policy_hash: str = ""
    call_id: str = ""
    """The call in a model's answer."""
    confirmation: str = ""
    """The question that a person answered."""
    digest: str = ""
    """The digest that the person had in front of them."""
    asked_digest: str = ""
    """The digest of what is asked about; the same, unless the answer does not count."""
    proof: str = ""
    """The proof of who the person is: `token`, `signature` and so on; empty: a claim."""
    signed: bool = False
    """Whether the answer carries a signature."""
    requester: str = ""
    """The principal whose call a person was asked about."""
    provider: str = ""
    version: str = ""
    request_schema_hash: str = ""
    response_schema_hash: str = ""
    idempotency_key: str = ""
    answered: str = ""
    """The model that answered, `provider/model`."""
    temperature: float | None = None
    prompt_hash: str = ""
    tokens: int = 0
    cost: float | None = None
    """US dollars; null: no price is known."""
    face: str = ""
    """The way by which a reader got it: `http`, `page` or `command`."""
    names: dict[str, str] = {}
    """The names of what was read, such as of a `job`."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that other events tell of an act."""

    question: k.ConfirmationRequested | None = None
    """The question that was answered."""
    end: k.ToolInvocationFinished | None = None
    """The end of the call."""
    is_running: bool = False


_NOTHING: Final = Context()
_FIELDS: Final = {
    "step": "step", "code": "code", "reason": "reason", "rule_id": "rule_id", "policy_hash": "policy_hash",
    "confirmation": "confirmation", "digest": "digest", "proof": "proof", "provider": "provider_id",
    "version": "tool_version", "request_schema_hash": "request_schema_hash",
    "response_schema_hash": "response_schema_hash", "idempotency_key": "idempotency_key",
    "temperature": "llm_temperature", "prompt_hash": "prompt_hash", "tokens": "token_count", "cost": "cost",
    "call_id": "call_id", "face": "face", "names": "names", "outcome": "decision",
}  # fmt: skip
"""By field of an entry that of the payload which says it; an event that lacks one says nothing of it."""
_TEXTS: Final = ("name", "who", "reason", "version", "requester")
"""Fields that others wrote: secrets in them are masked."""


def told(act: Act, event: Event, context: Context = _NOTHING) -> Entry:
    """Tell an act from its event, and from those that say more of it."""
    payload: Any = k.decode(event.kind, event.data)
    fields: dict[str, Any] = {"name": act.name, "who": act.who, **_said(payload)}
    match payload:
        case k.ToolInvocationStarted():
            fields |= _ended(context.end, is_running=context.is_running)
            if context.end is not None or not context.is_running:
                fields |= effect_of(payload, context.end).members
            fields["repaired"] = repairs(payload, context.end)
        case k.ToolInvocationFinished() | k.CommandCommitted():
            fields |= _ended(payload, is_running=False)
            if isinstance(payload, k.CommandCommitted) and payload.outcome == "success":
                fields["answered"] = f"{payload.llm_provider}/{payload.llm_model}"
            if isinstance(payload, k.ToolInvocationFinished):
                fields |= recorded(payload).members
        case k.ConfirmationDecided():
            fields |= _asked(context.question) | _said(payload) | {"signed": bool(payload.signature)}
        case k.ApprovalRemembered(answers=(*_, answer)):
            fields |= _said(answer) | {"signed": bool(answer.signature), "outcome": ""}
        case _:
            pass
    texts = {name: line(str(fields[name])) for name in _TEXTS if fields.get(name)}
    return Entry(
        what=act.what, at=event.at, position=act.position, stream=event.stream, seq=event.seq, **{**fields, **texts}
    )


def _said(payload: Any) -> dict[str, Any]:
    pairs = ((name, getattr(payload, field, None)) for name, field in _FIELDS.items())
    return {name: value for name, value in pairs if value is not None and value != ""}


def _asked(question: k.ConfirmationRequested | None) -> dict[str, Any]:
    if question is None:
        return {}
    about = {"name": question.tool_name or question.question, "requester": question.principal}
    return _said(question) | about | {"asked_digest": question.digest}


def _ended(end: k.ToolInvocationFinished | k.CommandCommitted | None, *, is_running: bool) -> dict[str, Any]:
    if end is None or getattr(end, "step_outcome", "") == "uncertain":
        return {"outcome": "running" if is_running else "unknown"}
    error = {"code": end.error.code, "reason": end.error.message} if end.error is not None else {}
    schema = {"response_schema_hash": getattr(end, "response_schema_hash", "")}
    return {"outcome": "ok" if end.outcome == "success" else "failed", **error, **schema}
