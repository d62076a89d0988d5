"""A call on its way through the gateway."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from remit.canonical import digest, sha256
from remit.codes import Code
from remit.errors import NotCanonicalError
from remit.gateway.conversation import Conversation, Provenance
from remit.gateway.outcome import Outcome, refused
from remit.gateway.turns import TurnLine
from remit.journal.kinds import UNSET
from remit.large import decode
from remit.tools.budget import ToolBudget
from remit.tools.provider import JobFacts

if TYPE_CHECKING:
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.confirmations import Confirmations
    from remit.gateway.model_request import ModelAttempt, ModelRequest
    from remit.gateway.schema_gate import Misfit
    from remit.gateway.secrets import TakenSecrets
    from remit.gateway.takings import LimitPart
    from remit.journal.journal import Journal
    from remit.journal.kinds import UntrustedArgument
    from remit.journal.kinds.calls import DecisionFacts
    from remit.journal.writer import StreamWriter
    from remit.models.reply import Watch
    from remit.policy.decision import CallerKind, Decision, Query
    from remit.policy.overlay import Overlay
    from remit.policy.rules import Policy
    from remit.tools.catalog import Tool
    from remit.tools.peer import Peer

Progress = Callable[[float | None, float | None, str], None]
_encode: Final = msgspec.json.Encoder().encode
_LONGEST_MS: Final = 10 * 365 * 86_400_000
_MOVING_MS: Final = 3_600_000


def no_progress(done: float | None, total: float | None, message: str) -> None:
    """Drop a progress report without a listener."""


class LogContext:
    """Place that running code works for: log lines name it for as long as it is `open`.

    Tasks that begin there and outlive it, such as connections, have none afterwards.
    """

    __slots__ = ("open", "step", "stream", "tool")

    def __init__(self, stream: str, step: str = "", tool: str = "") -> None:
        self.stream, self.step, self.tool = stream, step, tool
        self.open = True


log_context: Final[ContextVar[LogContext | None]] = ContextVar("remit_log_context", default=None)
"""The place that the running code works for; None: none."""


class EarlierAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of an attempt that is made again."""

    tool_version: str
    schema: str
    """Digest of the input schema that its tool had."""
    idempotency_key: str
    args: dict[str, Any]
    """Arguments as sent."""


class GateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for."""

    tool: str
    """Full name, key, or the name as models see it."""
    args: dict[str, Any]
    step: str
    """Place of the call in the caller's stream."""
    principal: str
    caller: CallerKind = "session"
    recipe: str = ""
    """The recipe that the calling job runs."""
    within: str = ""
    """The session's stream, if the call is recorded in another: approvals that hold for the session cover it."""
    timeout_s: float | None = None
    """Seconds the call may take, where less than the tool's own."""
    attempt: int = 1
    repeats: str = ""
    """The provider an earlier attempt went to that may have happened: no other may repeat it, nor may it be refused."""
    line: TurnLine | None = None
    """Where the caller stands in line if a limit refuses the call for now; None: it does not come again by itself."""
    undoable: bool = False
    """True if the caller can undo what the call did."""
    tries_again: bool = False
    """True if the caller makes as many attempts as the tool allows."""
    confirmation: str | None = None
    """The confirmation an earlier, pending outcome of this call named."""
    asks: bool = True
    """True: ask a person if policy wants that. False: answer the call with `pending`, and record nothing."""
    leaves: bool = False
    """True if the result leaves the process before anything else is made durable."""
    overlays: tuple[Overlay, ...] = ()
    """Rules added to the policy for this call; it can only make it stricter."""
    budget: ToolBudget | None = None
    """The budget of the call, if less than the tool's own budget."""
    conversation: Conversation | None = None
    """The knowledge of the model that wants the call; None: no model wants it, but a program or a person."""
    provenance: Provenance | None = None
    """The provenance that the stream records of its calls; grows with them."""
    job: JobFacts | None = None
    """The job that calls, as its tools may know it."""
    trace_id: str = ""
    """The W3C trace that the caller names; empty: that of the stream."""
    client: dict[str, str] = {}
    """The client's own words for its trace and its conversation, by its names for them."""
    repaired: dict[str, int] = {}
    """The repairs of the arguments in the client's message, by kind."""
    hash: str = ""
    """Digest of `args`, as they are at this moment, where the caller already has it."""
    encoded: bytes = b""
    """`args` as JSON, where the caller has that and `hash`: the call is made of it then."""
    skills: dict[str, str] = {}
    """The skills that the call is under, with the digest of each."""
    sandbox: tuple[dict[str, Any], ...] = ()
    """Layers by which these make the sandbox stricter."""
    barred: Outcome | None = None
    """The refusal of the caller itself, such as an agent's limits; policy is asked first, and nothing comes after."""
    earlier: EarlierAttempt | None = None
    """The attempt before this one, if it is repeated as it was recorded, in the form that today's tool takes."""


class Call:
    """The request and what the stages found out so far; each field is set by the stage named beside it.

    The arguments are copied as the call comes in: the caller may change them while a person decides, and a tool may
    change what it is given; what is checked, approved, recorded and sent is the same all the same (rule 7).
    """

    __slots__ = (
        "admitted",
        "again",
        "args",
        "arguments_hash",
        "ask",
        "asked_hash",
        "asking",
        "confirmation",
        "counted",
        "decided_at",
        "decision",
        "duration_us",
        "encoded",
        "facts",
        "idempotency_key",
        "invocation_id",
        "journal",
        "kept_key",
        "misfit",
        "outrun",
        "parts",
        "peer",
        "policy",
        "progress",
        "query",
        "request",
        "result",
        "rule_id",
        "secrets",
        "span_id",
        "stage",
        "tainted",
        "tool",
        "turned",
        "untrusted",
        "untrusted_input",
        "wall_ms",
        "writer",
    )

    request: GateRequest
    journal: Journal
    writer: StreamWriter  # of the caller's stream
    progress: Progress
    peer: Peer | None
    policy: Policy  # what holds for this call, set as it comes in
    asking: ModelAttempt | None  # what a model is asked, if this is a model call
    stage: str  # the stage the call came to last, set by each
    asked_hash: str  # digest of the arguments that were asked for; empty where they have no canonical form
    args: dict[str, Any]  # what will be sent; also set by resolve and load_confirmation
    encoded: bytes  # args as JSON
    arguments_hash: str  # digest of args
    tool: Tool  # resolve
    confirmation: Confirmation | None  # load_confirmation, confirm
    kept_key: str  # resolve: the idempotency key of the attempt that is repeated as it was recorded; else empty
    query: Query  # authorize
    facts: DecisionFacts | msgspec.UnsetType  # authorize: the facts beside the call that rules asked for
    decided_at: int  # authorize: when policy decided, if that may count; else 0
    parts: tuple[LimitPart, ...]  # authorize: what it takes of limits that rules set
    again: Proceed  # authorize: policy decides on a call, and the stages after it follow, again
    turned: bool  # take_turn: it has its turn in every limit of the settings
    secrets: TakenSecrets | None  # take_secrets: those that the tool declares
    admitted: bool  # queue: it waited for its slot, and has it
    outrun: bool  # take_limits, announce: what policy decided by has changed, so that it has to decide again
    decision: Decision  # authorize, check_origins
    rule_id: str  # resolve, authorize, check_origins
    tainted: bool  # check_origins: whether the model that wants it has read untrusted text
    untrusted: tuple[UntrustedArgument, ...]  # check_origins: arguments that no trusted text holds
    untrusted_input: bool  # check_origins: whether values went in that no trusted text holds
    counted: bool  # check_budget: it is counted among the calls of its stream
    wall_ms: int | None  # check_budget: how long it may take, if a budget says so
    invocation_id: str  # announce; empty before
    span_id: str  # announce
    idempotency_key: str  # announce: names the intent, the same for every attempt
    ask: Callable[[ModelRequest, StreamWriter, Watch], Awaitable[Outcome]]  # asks a model within it, set as it comes in
    misfit: Misfit | None  # validate_arguments: what does not fit and may pass
    duration_us: int  # invoke
    result: object  # invoke: what the provider gave, not yet checked

    def __init__(
        self, request: GateRequest, journal: Journal, writer: StreamWriter, progress: Progress, peer: Peer | None = None
    ) -> None:
        self.request = request
        self.journal = journal
        self.writer = writer
        self.progress = progress
        self.peer = peer
        self.asking = None
        self.stage = ""
        self.confirmation = None
        self.misfit = None
        self.rule_id = ""
        self.parts = ()
        self.secrets = None
        self.facts = UNSET
        self.decided_at = 0
        self.turned = False
        self.admitted = False
        self.outrun = False
        self.tainted = False
        self.untrusted = ()
        self.untrusted_input = False
        self.counted = False
        self.kept_key = ""
        self.wall_ms = None
        self.invocation_id = ""
        if request.encoded and request.hash:
            self.args, self.encoded, self.arguments_hash = decode(request.encoded), request.encoded, request.hash
        else:
            self.take(request.args, request.hash)
        self.asked_hash = self.arguments_hash

    def take(self, args: dict[str, Any], arguments_hash: str = "") -> None:
        """Send a copy of these arguments; without a hash where they have no canonical form, which admit refuses."""
        try:
            self.arguments_hash = arguments_hash or digest(args)
            self.encoded = _encode(args)
            self.args = decode(self.encoded)
        except (NotCanonicalError, TypeError, ValueError, OverflowError, RecursionError, RuntimeError):
            self.args, self.encoded, self.arguments_hash = args, b"", ""

    @property
    def timeout_s(self) -> float:
        """Seconds that it may take: the tool's own, or less where a budget or the caller asks for less (rule 8)."""
        return self._seconds(self.tool.meta.timeout_ms)

    @property
    def longest_s(self) -> float:
        """Seconds that it may take while its tool reports that it is at work: an hour at least, same limits."""
        return self._seconds(max(self.tool.meta.timeout_ms, _MOVING_MS))

    def _seconds(self, most_ms: int) -> float:
        limit = min(most_ms, self.wall_ms or _LONGEST_MS, _LONGEST_MS) / 1000
        timeout_s = self.request.timeout_s
        return limit if timeout_s is None else min(limit, timeout_s)

    def decide_again(self) -> Awaitable[Outcome]:
        """Have policy decide again, and the stages after it follow."""
        return self.again(self)  # the call does not hold itself: each would wait for the collector of garbage

    @property
    def request_hash(self) -> str:
        """Binds what was asked for, where a key, an alias or a person's edit made something else of it; else empty."""
        if self.arguments_hash == self.asked_hash and self.tool.meta.name == self.request.tool:
            return ""
        return asked(self.request.tool, self.asked_hash)


def outrun(call: Call, confirmations: Confirmations, reason: str) -> Outcome:
    """Send a call back to policy: what it was refused with counts only if that happens too often."""
    call.outrun = True
    if call.confirmation is not None:
        confirmations.unclaim(call.confirmation)
    return refused(Code.POLICY_DENIED, f"{call.tool.meta.name}: {reason}", "Try again later.")


def idempotency_key(call: Call) -> str:
    """Return the key of a call. An attempt that repeats recorded arguments keeps theirs: it is the same intent."""
    return call.kept_key or key_of(call.writer.stream, call.request.step, call.tool.meta.name, call.arguments_hash)


def key_of(stream: str, step: str, tool: str, arguments_hash: str) -> str:
    """SHA-256 over stream, step, tool and arguments; not the attempt (contract: versioning, "Identity")."""
    return hashlib.sha256(f"{stream}\0{step}\0{tool}\0{arguments_hash}".encode()).hexdigest()


def asked(tool: str, arguments_hash: str) -> str:
    """Digest of a request: the name as it was given, and the arguments as they were given."""
    return sha256(f"{tool}\0{arguments_hash}".encode("utf-8", "surrogatepass"))


Proceed = Callable[[Call], Awaitable[Outcome]]
"""The rest of the pipeline."""


class Stage(Protocol):
    """One check or act on a call: answer it, or let it proceed and look at its outcome."""

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Never raises for anything a caller can cause (rule 5)."""
        ...
