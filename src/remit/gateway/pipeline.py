"""The gateway: the stages in their order, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.gateway.call import Call, GateRequest, LogContext, Proceed, Progress, Stage, log_context, no_progress
from remit.gateway.context import context_again
from remit.gateway.model_request import ModelAttempt, ModelRequest
from remit.gateway.outcome import Outcome
from remit.gateway.result import ResultCheck, StepOutcome, events_of, remedy_of, words
from remit.gateway.services import Services
from remit.gateway.stages.announce import Announce, AnnounceModel
from remit.gateway.stages.authorize import Authorize
from remit.gateway.stages.check_budget import CheckBudget, Reserve
from remit.gateway.stages.check_origins import CheckOrigins
from remit.gateway.stages.confirm import Confirm, LoadConfirmation
from remit.gateway.stages.invoke import Invoke
from remit.gateway.stages.record import RecordOutcome, RecordRefusal, RecordReply
from remit.gateway.stages.resolve import Ready, Resolve, ResolveModel
from remit.gateway.stages.take_limits import Queue, TakeLimits, TakeTurn
from remit.gateway.stages.take_secrets import TakeSecrets
from remit.gateway.stages.validate_arguments import ValidateArguments
from remit.journal.effects import COMMITTED, READS
from remit.large import LARGE, is_large
from remit.models.reply import Watch, unwatched
from remit.redact import line
from remit.tools.catalog import ResolveError
from remit.tools.provider import Reconciles, supports

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.kinds import ToolInvocationStarted
    from remit.journal.writer import StreamWriter
    from remit.metrics import Registry
    from remit.tools.catalog import Tool
    from remit.tools.peer import Peer


STAGES: Final[tuple[Callable[[Services], Stage], ...]] = (
    RecordRefusal,  # journals what the stages below refuse
    Resolve,  # finds the tool behind the name
    LoadConfirmation,  # brings back a confirmation the call waits for, with the arguments a person may have edited
    Authorize,  # policy: allow, ask or deny
    Ready,  # are the tool's dependencies there?
    ValidateArguments,  # arguments against the tool's input schema
    CheckOrigins,  # who named what an agent's call reaches: someone trusted, or text from outside?
    CheckBudget,  # is there anything left of what the job, the call and the tool may use?
    Confirm,  # asks a person, or checks what the person approved
    TakeTurn,  # waits for its turn in the limits of the settings, over all processes
    Queue,  # waits for a slot, if the tool runs only so often at once
    TakeSecrets,  # reads the secrets that the tool declares
    TakeLimits,  # counts it against the limits that rules set
    Announce,  # journals the intent, durably before any side effect
    RecordOutcome,  # on the way back: result against the output schema, evidence, the outcome event
    Invoke,  # calls the provider, within the deadline
)
"""The stages of a call, in this order."""
MODEL_STAGES: Final[tuple[Callable[[Services], Stage], ...]] = (
    RecordRefusal,  # journals what the stages below refuse
    ResolveModel,  # finds the model, and writes the request
    LoadConfirmation,  # brings back a confirmation that the call waits for
    Authorize,  # policy, by provider, model and caller
    Confirm,  # asks a person, if policy wants that
    TakeTurn,  # waits for its turn in the limits of the settings, over all processes
    Reserve,  # is there budget for the most that the answer may take?
    TakeLimits,  # counts it against the limits that rules set
    AnnounceModel,  # journals the intent and what is new in the prompt
    RecordReply,  # on the way back: the answer, what it took and what it cost
    Invoke,  # sends the request, once
)
"""The stages of a model call, in this order."""


class Gateway:
    """The one door to every tool (rule 1)."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._enter = _compose([make(services) for make in STAGES])
        self._ask = _compose([make(services) for make in MODEL_STAGES])
        self._reconciler = Reconciler(services)
        self._meter = Meter(services.metrics)

    def call(
        self, request: GateRequest, writer: StreamWriter, progress: Progress = no_progress, peer: Peer | None = None
    ) -> Coroutine[Any, Any, Outcome]:
        """Let one call through the stages; it is recorded in the stream of `writer`.

        The tool may ask `peer` back while it runs.

        Never raises for what the caller can cause (rule 5). Raises JournalError where nothing can be recorded any more,
        and passes cancellation on: the call then stands announced without an outcome.
        """
        if len(request.encoded) > LARGE if request.encoded else is_large(request.args):
            return self._large(request, writer, progress, peer)
        return self._pass(Call(request, self.services.journal, writer, progress, peer), self._enter)

    async def _large(
        self, request: GateRequest, writer: StreamWriter, progress: Progress, peer: Peer | None
    ) -> Outcome:
        """A call whose arguments are copied and hashed in a thread, so that they hold no one else up."""
        call = await asyncio.to_thread(_copied, request, self.services.journal, writer, progress, peer)
        return await self._pass(call, self._enter)

    async def ask(self, request: ModelRequest, writer: StreamWriter, watch: Watch = unwatched) -> Outcome:
        """Let one model call through its stages, as `call` does; the value of an ok outcome is an `Answered`.

        Pieces of the answer go to `watch` as they come. Asks once: `again_ms` says that another attempt is to be made.
        """
        gate_request = GateRequest(
            tool=request.model or self.services.default_model,
            args={},
            step=request.step,
            principal=request.principal,
            caller=request.caller,
            recipe=request.recipe,
            attempt=request.attempt,
            confirmation=request.confirmation,
            asks=request.asks,
            overlays=request.overlays,
            job=request.job,
            line=request.line,
        )
        call = Call(gate_request, self.services.journal, writer, no_progress)
        call.asked_hash = request.hash
        with (
            self.services.tails.open(writer.stream, request.step) if watch is unwatched else nullcontext(watch) as tail
        ):
            call.asking = ModelAttempt(request, tail)
            return await self._pass(call, self._ask)

    async def _pass(self, call: Call, enter: Proceed) -> Outcome:
        call.ask = self.ask
        overlays = call.request.overlays
        call.policy = self.services.policy.under(overlays) if overlays else self.services.policy
        self._meter.running += 1
        place = LogContext(call.writer.stream, call.request.step, call.request.tool)
        token = log_context.set(place)
        try:
            outcome = await enter(call)
        except BaseException as error:
            self._meter.broken(call, error)
            raise
        finally:
            log_context.reset(token)
            place.open = False
            self._meter.running -= 1
        self._meter.end(call, outcome)
        return outcome

    async def reconcile(self, started: ToolInvocationStarted, writer: StreamWriter) -> Verdict:
        """Ask the provider for the outcome of a call whose end was not recorded, and record the answer (rule 3)."""
        return await self._reconciler.ask(started, writer)


def _copied(
    request: GateRequest, journal: Journal, writer: StreamWriter, progress: Progress, peer: Peer | None
) -> Call:
    """The call, in a thread; with arguments that their owner changed between the hash and the copy it is refused."""
    call = Call(request, journal, writer, progress, peer)
    if call.arguments_hash and digest(call.args) != call.arguments_hash:
        call.arguments_hash = ""
    return call


def _compose(stages: list[Stage]) -> Proceed:
    """Bind each stage to the next: a call goes from stage to stage, and nothing of ours stands between."""
    enter: Proceed = _end
    for stage in reversed(stages):
        enter = partial(stage.__call__, proceed=enter)
    return enter


async def _end(call: Call) -> Outcome:
    msg = f"no stage answered the call of {call.request.tool}"
    raise AssertionError(msg)


OK: Final = "ok"
"""The label of a call that did what was asked, in place of a code."""
UNKNOWN: Final = "unknown"
"""The label of a tool that no provider offers: its name is the caller's, and never becomes one."""


_Cells = tuple[list[float], Callable[[float], None]]
"""The number of calls, and what takes their durations."""


class Meter:
    """Counts calls by tool, provider and code, and how long they took at their providers."""

    def __init__(self, metrics: Registry) -> None:
        self._calls = metrics.counter(
            "tool_calls_total", "Calls that left the gateway, with their code or ok.", "tool", "provider", "code"
        )
        self._seconds = metrics.histogram(
            "tool_call_seconds", "Seconds that a call took at its provider.", "tool", "provider"
        )
        self.running = 0
        """Calls that are in the gateway; it adds them itself."""
        metrics.gauge("tool_calls_running", "Calls that are in the gateway now.", lambda: self.running)

        self._cells: dict[tuple[str, str, Code | None], _Cells] = {}
        """The counters used before; as many as there are tools and codes."""

    def end(self, call: Call, outcome: Outcome) -> None:
        """A call was answered."""
        try:
            meta = call.tool.meta
            key = meta.name, meta.provider_id, outcome.code
        except AttributeError:  # a refused call may have come no further than its name
            key = UNKNOWN, UNKNOWN, outcome.code
        calls, seconds = self._cells.get(key) or self._new(*key)
        calls[0] += 1
        if outcome.duration_us:
            seconds(outcome.duration_us / 1_000_000)

    def _new(self, tool: str, provider: str, code: Code | None) -> _Cells:
        calls = self._calls.cell(tool, provider, OK if code is None else code.name)
        cells = self._cells[tool, provider, code] = calls, self._seconds.taker(tool, provider)
        return cells

    def broken(self, call: Call, error: BaseException) -> None:
        """A call was cancelled by its caller, or could not be recorded."""
        code = Code.CALL_CANCELLED if isinstance(error, asyncio.CancelledError) else getattr(error, "code", None)
        self._calls.add(*_labels(call), code.name if isinstance(code, Code) else Code.UNHANDLED_EXCEPTION.name)


def _labels(call: Call) -> tuple[str, str]:
    try:
        meta = call.tool.meta
    except AttributeError:  # a refused call may have come no further than its name
        return UNKNOWN, UNKNOWN
    return meta.name, meta.provider_id


_log: Final = logging.getLogger("remit.gateway")

Verdict = Outcome | Literal["never", "unknown"]
"""The recorded outcome; or that it certainly did not happen; or that it is unknown."""


class Reconciler:
    """Asks providers."""

    def __init__(self, services: Services) -> None:
        self._catalog = services.catalog
        self._journal = services.journal
        self._results = ResultCheck(services.limits, services.journal.clock, services.schema_gate)

    async def ask(self, started: ToolInvocationStarted, writer: StreamWriter) -> Verdict:
        """Return what the provider knows of the call; an outcome is recorded."""
        tool = await self._tool(started)
        if tool is None or not supports(tool.provider, Reconciles):
            return "unknown"
        encoded = await self._journal.value(started.args, started.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        timeout = tool.meta.timeout_ms / 1000
        context = context_again(started, writer.stream, timeout_s=timeout, now=self._journal.clock.now())
        try:
            async with asyncio.timeout(timeout):
                verdict = await tool.provider.reconcile(started.tool_name, args, context)
        except Exception as error:  # noqa: BLE001 - whatever it raises, it does not tell
            _log.info("%s cannot tell the outcome of %s: %s", tool.meta.name, started.invocation_id, line(words(error)))
            return "unknown"
        return "never" if verdict is None else await self._record(started, writer, tool, verdict)

    async def _tool(self, started: ToolInvocationStarted) -> Tool | None:
        """The tool that was called, if its provider still offers it: what another one says proves nothing."""
        try:
            tool, _ = await self._catalog.resolve(started.tool_name, {})
        except ResolveError:
            return None
        same = tool.meta.name == started.tool_name and tool.meta.provider_id == started.provider_id
        return tool if same else None

    async def _record(
        self, started: ToolInvocationStarted, writer: StreamWriter, tool: Tool, result: object
    ) -> Outcome:
        checked = self._results.check(tool, result)
        outcome = checked.failure or Outcome(status="ok", value=checked.value, evidence=checked.evidence.items)
        effect = COMMITTED if started.side_effect != "read" else READS
        outcome = msgspec.structs.replace(
            outcome, invocation_id=started.invocation_id, effect=effect, remedy=remedy_of(outcome, effect)
        )
        happened: StepOutcome = "side_effect_committed" if effect == COMMITTED else "pure"
        events, blobs = events_of(
            outcome,
            checked,
            invocation_id=started.invocation_id,
            step=started.step,
            step_outcome=happened if outcome.ok or effect == COMMITTED else "permanent_failure",
            tool=tool,
            by=tool.meta.provider_id,
        )
        await self._journal.append(writer, *events, synced=False, blobs=blobs)
        return outcome
