"""Events of calls: what the gateway announced, refused, warned of and settled.

Events of model calls.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from remit.journal.blobs import BlobRef
from remit.journal.kinds.payload import (
    UNSET,
    ErrorInfo,
    OptionalRaw,
    OptionalRef,
    OwnDigest,
    Payload,
    PolicyDigest,
    SharedDigest,
    TimedDigest,
    holding,
)


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts beside a call that rules asked for, as the gate found them."""

    seen: dict[str, int] = msgspec.field(default_factory=dict)
    """The last result of each tool, by its full name: the event in the caller's stream that holds it."""
    taken: dict[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    """Calls and their sum before this one, as a decimal number, by the id of the rule whose limit it is."""
    remembered: tuple[str, ...] = ()
    """Remembered approvals of the tool that held."""


Done = Literal["pure", "success", "side_effect_committed", "compensated"]
Undone = Literal["retryable_failure", "permanent_failure", "compensatable_failure", "uncertain"]
Known = Literal["", "none", "committed", "unknown"]
Sayer = Literal["", "remit", "tool", "person", "client"]


class DecidedCall(Payload, frozen=True, kw_only=True):
    """The facts of a call that the gate decided on: the tool, what it was to do, and what said so."""

    step: str
    tool_version: str = ""
    request_schema_hash: SharedDigest = ""
    args: OptionalRaw = UNSET
    """The arguments, as far as the call came with them."""
    args_blob: OptionalRef = UNSET
    capability_level: int = 0
    risk_level: str = ""
    """The risk as its provider says it: `read_only`, `write` or `unknown`; empty: an older Remit did not record it."""
    provider_id: str = ""
    """The provider of the tool; empty: there is no such tool, and nothing of it is known."""
    alias: str = ""
    """The other name by which rules know the tool."""
    side_effect: Literal["read", "write", "unknown"] = "read"
    principal: str = ""
    rule_id: str = ""
    policy_hash: PolicyDigest = ""
    contract_hash: str = ""
    """Digest of the tool's name and schemas."""
    prompt_hash: str = ""
    """Digest of every text of the tool that a model reads."""
    untrusted: OptionalRaw = UNSET
    """The arguments from untrusted text: a list of [untrusted arguments](untrusted.md#in-the-record)."""
    untrusted_blob: OptionalRef = UNSET
    confirms: bool = False
    """Whether the tool itself demands a confirmation."""
    decided_at: int = 0
    """When policy decided, in microseconds since the Unix epoch, if a rule looked at the time; 0: none did."""
    facts: DecisionFacts | msgspec.UnsetType = UNSET
    """The facts beside the call that rules asked for."""
    policy_kept: bool = False
    """Whether the text of the rules is kept under `policy_hash`."""


class ToolInvocationStarted(DecidedCall, frozen=True, kw_only=True):
    """A call was announced. Without a finished event, whether it happened is unknown (rule 3)."""

    KIND: ClassVar[str] = "tool_invocation_started"
    invocation_id: str
    tool_name: str
    arguments_hash: str = ""
    idempotency_key: str = ""
    request_hash: str = ""
    """Binds what the caller asked for, if a key, an alias or a person's edit made another call of it."""
    repeatable: bool = True
    attempt: int = 1
    confirmation: str = ""
    call_id: str = ""
    """The call in a model's answer that this is; empty: no model asked for it."""
    output_trusted: bool = False
    """Whether what the tool returns is trusted."""
    untrusted_input: bool = False
    """Whether a model gave the call values that no trusted text holds."""
    trace_id: str = ""
    span_id: str = ""
    skills: dict[str, str] = msgspec.field(default_factory=dict)
    """The skills that the call is under, with the digest of each."""
    client: dict[str, str] = msgspec.field(default_factory=dict)
    """The client's own words for its trace and its conversation, by its names for them."""
    repaired: dict[str, int] = msgspec.field(default_factory=dict)
    """The places of the arguments that were repaired as they were read, by [kind](mcp.md#what-cannot-be-read)."""
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    """The version of each secret that the tool was given, as an HMAC."""
    limits: tuple[str, ...] = ()
    """The streams of the limits that it took a part of."""


class ToolInvocationFinished(Payload, frozen=True, kw_only=True):
    """How an announced call ended."""

    KIND: ClassVar[str] = "tool_invocation_finished"
    invocation_id: str
    step: str
    outcome: Literal["success", "failure", "timeout"]
    step_outcome: Done | Undone = "pure"
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    error: ErrorInfo | None = None
    response_schema_hash: SharedDigest = ""
    duration_ms: float = 0.0
    """The time that it took, in milliseconds, to the microsecond."""
    recorded_us: int = msgspec.field(default=0, name="duration_us")
    """The same in microseconds, as Remit recorded it before `duration_ms`."""
    evidence: int = 0
    """The number of items that the evidence_attached event before this one holds."""
    decided_by: str = ""
    """The person who said how an uncertain call ended."""
    effect: Known = ""
    """The known effect, however good the result was; empty: it only reads, or an older Remit made it."""
    effect_by: Sayer = ""
    """The one who says so: `remit`, unsent or unheard; the `tool`, by its answer; a `person`; the `client`."""
    repaired: dict[str, int] = msgspec.field(default_factory=dict)
    """The places of the result that were repaired as it was read, by [kind](mcp.md#what-cannot-be-read)."""
    reported_by: str = ""
    """The client that made the call itself and reports how it ended, such as `claude`; empty: Remit made the call."""
    remarks: tuple[str, ...] = ()
    """Remarks on a report: `arguments_changed`, `joined_by_order`, `background`."""

    @property
    def duration_us(self) -> int:
        """Return how long it took, in microseconds, whichever field says so."""
        return self.recorded_us or round(self.duration_ms * 1_000)


class EvidenceBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes of an item of evidence are kept."""

    raw_pointer: TimedDigest | None = None
    kept_as: OwnDigest = ""
    """In a stream with a subject, instead."""


class EvidenceAttached(Payload, frozen=True, kw_only=True):
    """Evidence a call brought, by digest."""

    KIND: ClassVar[str] = "evidence_attached"
    invocation_id: str
    step: str
    items: Annotated[tuple[dict[str, Any], ...], holding(list[EvidenceBytes])] = ()
    items_blob: OptionalRef = UNSET
    """The same in a stream with a subject."""


class BytesKept(Payload, frozen=True, kw_only=True):
    """Ours: a provider kept bytes beside the record, such as an artifact that its result names by digest."""

    KIND: ClassVar[str] = "bytes_kept"
    invocation_id: str
    step: str
    kept_blob: BlobRef
    until: int | None = None

    @property
    def digest(self) -> str:
        """Return what the bytes lie under."""
        return self.kept_blob.digest


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that a tool wrote for people while it was called: masked, printable and cut."""

    at: int
    """When, in microseconds since the Unix epoch."""
    text: str
    level: Literal["debug", "info", "warning", "error"] = "info"


class CallLogged(Payload, frozen=True, kw_only=True):
    """Ours: lines that a tool wrote beside its call, for people; a replay reads none of them."""

    KIND: ClassVar[str] = "call_logged"
    invocation_id: str
    step: str
    lines: OptionalRaw = UNSET
    """A list of `at`, `text` and `level`."""
    lines_blob: OptionalRef = UNSET
    left_out: int = 0
    """Lines beyond those that a call may write."""


class GateRefused(DecidedCall, frozen=True, kw_only=True):
    """The gateway refused a call before it was announced."""

    KIND: ClassVar[str] = "gate_refused"
    tool_name: str
    code: str
    reason: str = ""
    remedy: str = ""
    stage: str = ""
    arguments_hash: str = ""
    request_hash: str = ""
    """Binds what was asked for, if a key or an alias made another call of it, as in `tool_invocation_started`."""
    confirmation: str = ""
    model_call: bool = False
    """Whether a model was to be asked; `tool_name` is its name then."""
    call_id: str = ""
    """The call in a model's answer that this is; empty: no model asked for it."""
    again_ms: int | None = None
    """The call may be made again after so many milliseconds, as a limit says; None: no limit refused it."""
    client: dict[str, str] = msgspec.field(default_factory=dict)
    """The client's own words for its trace and its conversation, as in `tool_invocation_started`."""


class CallUngoverned(Payload, frozen=True, kw_only=True):
    """Ours: a call that a model wanted and whose result it was told, and that no gate saw."""

    KIND: ClassVar[str] = "call_ungoverned"
    step: str
    """The question whose answer wanted it."""
    call_id: str
    """The call in that answer."""
    tool_name: str
    """The tool, as the model knows it."""
    told_in: str = ""
    """The question that has its result."""


class SchemaGateWarned(Payload, frozen=True, kw_only=True):
    """Ours: a value did not match its schema, and went on because the schema gate only warns."""

    KIND: ClassVar[str] = "schema_gate_warned"
    step: str
    tool_name: str
    boundary: str
    """Where it was checked, such as `call_args` or `call_result`."""
    direction: Literal["ingress", "internal"] = "internal"
    warn_codes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """The mismatches, in words for people."""
    schema_hash: str = ""
    invocation_id: str = ""


class UndoDeclared(Payload, frozen=True, kw_only=True):
    """Ours: the call that undoes a step, in case the job fails or is cancelled."""

    KIND: ClassVar[str] = "undo_declared"
    step: str
    """The step that it undoes."""
    tool_name: str = ""
    """The tool to call; empty: the recipe makes the call from the step's result."""
    args: OptionalRaw = UNSET
    args_blob: OptionalRef = UNSET


class StepCompensated(Payload, frozen=True, kw_only=True):
    """What a step did was undone by another call, or is left as it is."""

    KIND: ClassVar[str] = "step_compensated"
    step: str
    """The step that was undone."""
    undo_step: str
    """The step of the call that undid it."""
    tool_name: str = ""
    """The tool that undid it."""
    outcome: Literal["compensated", "failed", "skipped"] = "compensated"
    error: ErrorInfo | None = None
    decided_by: str = ""


class PromptNames(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt names by digest: the list of tools that is offered, and the form that the answer must have."""

    tools: SharedDigest = ""
    output: SharedDigest = ""


class MessageKept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a prompt, by digest; its body stands here the first time, unless it is a recorded answer."""

    digest: str
    body: OptionalRaw = UNSET
    body_blob: OptionalRef = UNSET


class CommandStarted(Payload, frozen=True, kw_only=True):
    """Ours: a model is about to be asked. Without a command_committed event, the answer did not arrive."""

    KIND: ClassVar[str] = "command_started"
    invocation_id: str
    step: str
    request_hash: str = ""
    """Binds everything the model is asked: messages, tools, limits and settings."""
    idempotency_key: str = ""
    llm_model: str = ""
    llm_provider: str = ""
    llm_url: str = ""
    """Where the server of an `openai-compatible` model listens."""
    asked: str = ""
    """The model that the question named, if this one is asked in its place; empty: it is this one."""
    llm_temperature: float | None = None
    prompt_hash: str = ""
    prompt: Annotated[OptionalRaw, holding(PromptNames)] = UNSET
    prompt_blob: OptionalRef = UNSET
    attempt: int = 1
    principal: str = ""
    rule_id: str = ""
    policy_hash: PolicyDigest = ""
    trace_id: str = ""
    span_id: str = ""
    api: str = ""
    """The wire format and its version."""
    wire_hash: str = ""
    """Digest of the exact bytes that are sent."""
    after: str = ""
    """The conversation, as an earlier event of this stream left it, that `added` continues; empty: from the start."""
    after_job: str = ""
    """The job that recorded `after`; empty: this one."""
    added: tuple[MessageKept, ...] = ()
    """Messages of the prompt that are new since then."""
    left_out: dict[str, str] = msgspec.field(default_factory=dict)
    """Tools that were not offered, for their provider would refuse the whole request, each with the reason."""
    passed: dict[str, str] = msgspec.field(default_factory=dict)
    """Models before it that the process could not ask, each with the reason; a rule says which comes then."""
    confirmation: str = ""
    reserved_tokens: int = 0
    """The tokens that the answer may take at most, counted until it is recorded."""
    reserved_cost: float = 0.0
    """The same in US dollars."""
    budgets: tuple[str, ...] = ()
    """The budgets that it counts for: name, period and share of each, apart by a zero character."""
    skills: dict[str, str] = msgspec.field(default_factory=dict)
    """The skills that the question is under, with the digest of each."""
    policy_kept: bool = False
    """Whether the text of the rules is kept under `policy_hash`."""

    @property
    def name(self) -> str:
        """The model's one name, as settings, prices and sums have it."""
        place = f"{self.llm_url}#{self.llm_model}" if self.llm_url else self.llm_model
        return f"{self.llm_provider}:{place}"


class CommandCommitted(Payload, frozen=True, kw_only=True):
    """A model answered, or the attempt to ask it failed."""

    KIND: ClassVar[str] = "command_committed"
    step: str
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    llm_model: str = ""
    llm_provider: str = ""
    llm_temperature: float | None = None
    prompt_hash: str = ""
    token_count: int = 0
    invocation_id: str = ""
    outcome: Literal["success", "failure", "timeout"] = "success"
    error: ErrorInfo | None = None
    request_hash: str = ""
    prompt: Annotated[OptionalRaw, holding(PromptNames)] = UNSET
    prompt_blob: OptionalRef = UNSET
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""
    duration_ms: float = 0.0
    """The time that it took, in milliseconds, to the microsecond."""
    attempt: int = 1
    span_id: str = ""
    finish_raw: str = ""
    """The reason to finish in the provider's words."""
    cached_tokens: int = 0
    """Input tokens that were read from a cache."""
    cache_written_tokens: int = 0
    """Input tokens that were written to a cache."""
    cache_written_hour_tokens: int = 0
    """Those of them that it keeps for an hour."""
    reasoning_tokens: int = 0
    """Output tokens that were spent on reasoning."""
    usage: dict[str, Any] | None = None
    """Tokens in the provider's words."""
    cost: float | None = None
    """US dollars, estimated from prices; None: no price is known."""
    price_table: str = ""
    """Which prices: `genai-prices/` and the digest of its data, or `settings`."""
    first_token_ms: float | None = None
    """Milliseconds until the first piece of the answer."""
    response_id: str = ""
    request_id: str = ""
    uncertain: bool = False
    """Whether the answer may have been made and paid for without arriving: it counts as reserved."""
    again_ms: int | None = None
    """The attempt is to be made again after so many milliseconds, 0: its worker ended; None: this is the end."""
    next_model: str = ""
    """The model that is asked then, at once, for a rule says so of this fault; empty: the same."""

    @property
    def lost(self) -> bool:
        """Return whether the attempt did not fail, but ended with its worker."""
        return self.again_ms == 0 and not self.next_model
