"""The gateway: the stages in their order, and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from remit.canonical import digest
from remit.gateway.asking import Asking, ModelRequest
from remit.gateway.call import Call, Proceed, Progress, Request, Stage, no_progress
from remit.gateway.meter import Meter
from remit.gateway.reconcile import Reconciler, Verdict
from remit.gateway.services import Services
from remit.gateway.stages.announce import Announce
from remit.gateway.stages.announce_model import AnnounceModel
from remit.gateway.stages.authorize import Authorize
from remit.gateway.stages.check_budget import CheckBudget
from remit.gateway.stages.check_origins import CheckOrigins
from remit.gateway.stages.confirm import Confirm
from remit.gateway.stages.invoke import Invoke
from remit.gateway.stages.load_confirmation import LoadConfirmation
from remit.gateway.stages.queue import Queue
from remit.gateway.stages.ready import Ready
from remit.gateway.stages.record_outcome import RecordOutcome
from remit.gateway.stages.record_refusal import RecordRefusal
from remit.gateway.stages.record_reply import RecordReply
from remit.gateway.stages.reserve import Reserve
from remit.gateway.stages.resolve import Resolve
from remit.gateway.stages.resolve_model import ResolveModel
from remit.gateway.stages.take_limits import TakeLimits
from remit.gateway.stages.validate_arguments import ValidateArguments
from remit.large import is_large
from remit.models.reply import Watch, unwatched

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.journal.journal import Journal
    from remit.journal.kinds import ToolInvocationStarted
    from remit.journal.writer import StreamWriter
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
    Queue,  # waits for a slot, if the tool runs only so often at once
    TakeLimits,  # counts it against the limits that rules set
    Announce,  # journals the intent, durably before any side effect
    RecordOutcome,  # on the way back: result against the output schema, evidence, the outcome event
    Invoke,  # calls the provider, within the deadline
)
"""What a call passes, in this order."""
MODEL_STAGES: Final[tuple[Callable[[Services], Stage], ...]] = (
    RecordRefusal,  # journals what the stages below refuse
    ResolveModel,  # finds the model, and writes the request
    LoadConfirmation,  # brings back a confirmation that the call waits for
    Authorize,  # policy, by provider, model and caller
    Confirm,  # asks a person, if policy wants that
    Reserve,  # is there budget for the most that the answer may take?
    TakeLimits,  # counts it against the limits that rules set
    AnnounceModel,  # journals the intent and what is new in the prompt
    RecordReply,  # on the way back: the answer, what it took and what it cost
    Invoke,  # sends the request, once
)
"""What a model call passes, in this order."""


_WORD: Final = re.compile(r"(?<=[a-z])([A-Z])")


class Gateway:
    """The one door to every tool (rule 1)."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._enter = _compose([make(services) for make in STAGES])
        self._ask = _compose([make(services) for make in MODEL_STAGES])
        self._reconciler = Reconciler(services)
        self._meter = Meter(services.metrics)

    def call(
        self, request: Request, writer: StreamWriter, progress: Progress = no_progress, peer: Peer | None = None
    ) -> Coroutine[Any, Any, Outcome]:
        """Let one call through the stages; it is recorded in the stream of `writer`.

        The tool may ask `peer` back while it runs.

        Never raises for what the caller can cause (rule 5). Raises JournalError where nothing can be recorded any more,
        and passes cancellation on: the call then stands announced without an outcome.
        """
        if is_large(request.args):
            return self._large(request, writer, progress, peer)
        return self._pass(Call(request, self.services.journal, writer, progress, peer), self._enter)

    async def _large(self, request: Request, writer: StreamWriter, progress: Progress, peer: Peer | None) -> Outcome:
        """A call whose arguments are copied and hashed in a thread, so that they hold no one else up."""
        call = await asyncio.to_thread(_copied, request, self.services.journal, writer, progress, peer)
        return await self._pass(call, self._enter)

    async def ask(self, request: ModelRequest, writer: StreamWriter, watch: Watch = unwatched) -> Outcome:
        """Let one model call through its stages, as `call` does; the value of an ok outcome is an `Answered`.

        Pieces of the answer go to `watch` as they come. Asks once: `again_ms` says that another attempt is to be made.
        """
        seen = Request(
            tool=request.model or self.services.default_model,
            args={},
            step=request.step,
            principal=request.principal,
            caller=request.caller,
            recipe=request.recipe,
            attempt=request.attempt,
            confirmation=request.confirmation,
            overlays=request.overlays,
        )
        call = Call(seen, self.services.journal, writer, no_progress)
        call.asking, call.asked_hash = Asking(request, watch), request.hash
        return await self._pass(call, self._ask)

    async def _pass(self, call: Call, enter: Proceed) -> Outcome:
        overlays = call.request.overlays
        call.policy = self.services.policy.under(overlays) if overlays else self.services.policy
        self._meter.running += 1
        try:
            outcome = await enter(call)
        except BaseException as error:
            self._meter.broken(call, error)
            raise
        finally:
            self._meter.running -= 1
        self._meter.end(call, outcome)
        return outcome

    async def reconcile(self, started: ToolInvocationStarted, writer: StreamWriter) -> Verdict:
        """Ask the provider for the outcome of a call whose end was not recorded, and record the answer (rule 3)."""
        return await self._reconciler.ask(started, writer)


def _copied(request: Request, journal: Journal, writer: StreamWriter, progress: Progress, peer: Peer | None) -> Call:
    """The call, in a thread; with arguments that their owner changed between the hash and the copy it is refused."""
    call = Call(request, journal, writer, progress, peer)
    if call.arguments_hash and digest(call.args) != call.arguments_hash:
        call.arguments_hash = ""
    return call


def name_of(stage: Callable[..., Stage]) -> str:
    """The name of a stage as refusals record it: `validate_arguments` for ValidateArguments."""
    return _WORD.sub(r"_\1", stage.__name__).lower()


def _compose(stages: list[Stage]) -> Proceed:
    enter: Proceed = _end
    for stage in reversed(stages):
        enter = _bind(stage, name_of(type(stage)), enter)
    return enter


def _bind(stage: Stage, name: str, proceed: Proceed) -> Proceed:
    def enter(call: Call):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the stage's own coroutine, without one more around it
        call.stage = name
        return stage(call, proceed)

    return enter


async def _end(call: Call) -> Outcome:
    msg = f"no stage answered the call of {call.request.tool}"
    raise AssertionError(msg)
