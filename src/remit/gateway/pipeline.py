"""The gateway: the stages in their order, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from remit.gateway.call import Call, Proceed, Progress, Request, Stage, no_progress
from remit.gateway.reconcile import Reconciler, Verdict
from remit.gateway.services import Services
from remit.gateway.stages.admit import Admit
from remit.gateway.stages.allow import Allow
from remit.gateway.stages.announce import Announce
from remit.gateway.stages.confirm import Confirm
from remit.gateway.stages.invoke import Invoke
from remit.gateway.stages.ready import Ready
from remit.gateway.stages.recall import Recall
from remit.gateway.stages.refuse import Refuse
from remit.gateway.stages.resolve import Resolve
from remit.gateway.stages.settle import Settle

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.journal.kinds import ToolInvocationStarted
    from remit.journal.writer import StreamWriter
    from remit.tools.peer import Peer


STAGES: Final[tuple[Callable[[Services], Stage], ...]] = (
    Refuse,  # journals what the stages below refuse
    Resolve,  # finds the tool behind the name
    Recall,  # brings back a confirmation the call waits for, with the arguments a person may have edited
    Allow,  # policy: allow, ask or deny
    Ready,  # are the tool's dependencies there?
    Admit,  # arguments against the tool's input schema
    Confirm,  # asks a person, or checks what the person approved
    Announce,  # journals the intent, durably before any side effect
    Settle,  # on the way back: result against the output schema, evidence, the outcome event
    Invoke,  # calls the provider, within the deadline
)
"""What a call passes, in this order."""


class Gateway:
    """The one door to every tool (rule 1)."""

    def __init__(self, services: Services) -> None:
        """Build the pipeline once."""
        self.services = services
        self._enter = _compose([make(services) for make in STAGES])
        self._reconciler = Reconciler(services)

    async def call(
        self, request: Request, writer: StreamWriter, progress: Progress = no_progress, peer: Peer | None = None
    ) -> Outcome:
        """Let one call through the stages; it is recorded in the stream of `writer`.

        The tool may ask `peer` back while it runs.

        Never raises for what the caller can cause (rule 5). Raises JournalError where nothing can be recorded any more,
        and passes cancellation on: the call then stands announced without an outcome.
        """
        return await self._enter(Call(request, self.services.journal, writer, progress, peer))

    async def reconcile(self, started: ToolInvocationStarted, writer: StreamWriter) -> Verdict:
        """Ask the provider what came of an announced call nobody saw the end of, and record what it knows (rule 3)."""
        return await self._reconciler.ask(started, writer)


def _compose(stages: list[Stage]) -> Proceed:
    enter: Proceed = _end
    for stage in reversed(stages):
        enter = _bind(stage, type(stage).__name__.lower(), enter)
    return enter


def _bind(stage: Stage, name: str, proceed: Proceed) -> Proceed:
    def enter(call: Call):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the stage's own coroutine, without one more around it
        call.stage = name
        return stage(call, proceed)

    return enter


async def _end(call: Call) -> Outcome:
    msg = f"no stage answered the call of {call.request.tool}"
    raise AssertionError(msg)
