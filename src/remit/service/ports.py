"""The ports of the service: what holds for it in this process, and for one that is reached over HTTP.

Two adapters pass one contract suite (remit.testing.service): `remit.service.service.Service` over a journal, and
`remit.client.service.RemoteService` over a server. Each method raises what the noun of the same name raises; the
remote ones raise ServerError as well. `by` names another person than the one who asks: a server refuses that, since it
knows people by their tokens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from remit.gateway.proof import ProofKind
from remit.jobs.plans.plan import Plan
from remit.jobs.replay import ReplayReport
from remit.journal.event import Event
from remit.models.tail import Piece
from remit.policy.decision import CallerKind
from remit.policy.explain import Explanation
from remit.policy.remembered import Remembered, Scope
from remit.service.jobs import Options
from remit.service.many import Replayed
from remit.service.mcp_port import ServersPort
from remit.service.recipes import RecipeView
from remit.service.retrying import Retried
from remit.service.search import Found, JobSearch
from remit.service.tickets import Tickets
from remit.service.views import (
    ArtifactRow,
    ConfirmationView,
    JobRow,
    JobView,
    SessionRow,
    StepView,
    ToolView,
    VerifyReport,
)
from remit.service.workers import WorkerView
from remit.tools.provider import Preview
from remit.trace.narrative import Narrative


class JobsPort(Protocol):
    """Jobs."""

    async def find(self, reference: str) -> str:
        """A job by identifier, by an ending of it that fits only one, or `last`; or a session by identifier."""
        ...

    async def rows(
        self,
        states: tuple[str, ...] = (),
        *,
        labels: dict[str, str] | None = None,
        limit: int = 20,
        before: str | None = None,
        since: int = 0,
    ) -> list[JobRow]:
        """Jobs created at `since` (µs) or later, newest first; `before` continues after a job of an earlier page."""
        ...

    async def search(self, wanted: JobSearch) -> Found:
        """A page of the newest jobs that are wanted, and where to go on."""
        ...

    async def row(self, job: str) -> JobRow:
        """A job's row."""
        ...

    async def view(self, job: str) -> JobView:
        """One job, whole."""
        ...

    async def result(self, job: str) -> Any:
        """What a completed job returned; None for any other."""
        ...

    async def replay(self, job: str, *, anyway: bool = False) -> ReplayReport:
        """Run a job's recipe again on its record alone; `anyway`: also where the mismatch policy refuses that."""
        ...

    def replays(
        self,
        states: tuple[str, ...] = (),
        *,
        since: int = 0,
        labels: Mapping[str, str] | None = None,
        anyway: bool = False,
    ) -> AsyncIterator[Replayed]:
        """Replay every job in these states that was created at `since` (µs) or later, newest first."""
        ...

    async def start_named(self, name: str, given: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job by the recipe's name; its identifier. It is durable when this returns."""
        ...

    async def start_plan(self, plan: Plan, given: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job that carries out a task graph; its identifier."""
        ...

    async def retry(self, job: str, step: str = "", *, repeat: bool = False, by: str = "", reason: str = "") -> Retried:
        """Create a job that takes over what a failed or cancelled one recorded, and goes on where that one failed."""
        ...

    async def signal(self, job: str, name: str, payload: Any = None, *, by: str = "", key: str = "") -> None:
        """Send a signal to a job that has not ended; under the same `key`, once."""
        ...

    async def cancel(self, job: str, *, by: str = "", reason: str = "") -> None:
        """Ask a job to stop."""
        ...

    async def resume(self, job: str) -> None:
        """Make a job due now, whatever it waits for."""
        ...


class StepsPort(Protocol):
    """Steps of jobs."""

    async def view(self, job: str, step: str) -> StepView:
        """One step, whole."""
        ...

    async def decide(
        self,
        job: str,
        step: str,
        decision: Literal["done", "retry", "fail"],
        value: Any = None,
        *,
        attempt: int | None = None,
        by: str = "",
        reason: str = "",
        replace: bool = False,
    ) -> None:
        """Resolve a step whose outcome is unknown; the first decision on an attempt counts.

        `replace` corrects it, as long as no worker has continued it.
        """
        ...


class ArtifactsPort(Protocol):
    """What jobs left."""

    async def rows(self, job: str) -> list[ArtifactRow]:
        """The files that a job's or session's steps left, and what they wrote."""
        ...

    async def read(self, job: str, digest: str) -> bytes:
        """The bytes of one of them."""
        ...


class StreamsPort(Protocol):
    """What is recorded of jobs and sessions."""

    def name(self, identifier: str) -> str:
        """The stream of a job or session."""
        ...

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        """The events of a job's or session's stream."""
        ...

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """The same, then each new event until the stream is closed."""
        ...

    def said(self, identifier: str) -> AsyncIterator[Piece]:
        """What models say to a job or session while they say it, piece by piece; it is not recorded yet.

        Only the process that works on the job hears it.
        """
        ...

    async def narrative(self, identifier: str) -> Narrative:
        """The story of a job or session, with who allowed what."""
        ...

    async def verify(self, identifier: str | None = None) -> VerifyReport:
        """Check the chains of a job or session. None, for the whole journal, works on a journal here alone."""
        ...


class SessionsPort(Protocol):
    """Sessions of calls from outside jobs."""

    async def rows(self, *, limit: int = 20) -> list[SessionRow]:
        """Sessions, newest first."""
        ...


class ConfirmationsPort(Protocol):
    """Questions to people."""

    async def pending(self, job: str | None = None) -> list[ConfirmationView]:
        """Open questions, oldest first; not those of jobs that have ended."""
        ...

    async def view(self, reference: str) -> ConfirmationView:
        """One question, by its identifier or by an ending of it that fits only one open question."""
        ...

    async def preview(self, reference: str) -> Preview | None:
        """What the call would change as things are now; None if its tool cannot say."""
        ...

    async def decide(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",
        sign: Path | None = None,
    ) -> ConfirmationView:
        """Approve or deny a call. `digest` is the one that was shown; without it, the newest is taken as seen.

        `proof` says how the answer was given, and `sign` names an SSH key to sign it with; a server takes the token.
        """
        ...

    async def revoke(self, reference: str, *, by: str = "", reason: str = "") -> ConfirmationView:
        """Take back an approval that no call has used; the call asks again."""
        ...

    async def edit(self, reference: str, args: Any, *, by: str = "", reason: str = "") -> ConfirmationView:
        """Replace an open question by one with other arguments, still to be approved."""
        ...


class ApprovalsPort(Protocol):
    """Remembered approvals."""

    async def active(self) -> list[Remembered]:
        """Those that hold now."""
        ...

    async def remember(
        self,
        confirmation: str,
        scope: Scope,
        *,
        seconds: int,
        exact: bool,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",
        sign: Path | None = None,
    ) -> Remembered | None:
        """Let an approval hold for later calls too, as only the person who gave it can say.

        With `digest`, an open question is approved in the same act. None: more people have to approve it, and to want
        the same. `proof` and `sign` are as in `ConfirmationsPort.decide`.
        """
        ...

    async def revoke(self, rule: str, *, by: str = "", reason: str = "") -> None:
        """End a remembered approval."""
        ...


class PolicyPort(Protocol):
    """Policy."""

    async def explain(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        principal: str,
        kind: CallerKind = "session",
        recipe: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """What policy says to a call, and each rule's part in it; `given` is as in tests of rules."""
        ...


class ToolsPort(Protocol):
    """The catalog."""

    async def views(self) -> list[ToolView]:
        """Every tool, by name."""
        ...

    async def view(self, name: str) -> ToolView:
        """One tool by its full name, wire name, or a key that covers no other."""
        ...

    async def failures(self) -> dict[str, str]:
        """Why tools are missing, by the provider that could not be listed."""
        ...


class RecipesPort(Protocol):
    """Recipes that can be started."""

    async def views(self) -> list[RecipeView]:
        """Every recipe, by name."""
        ...

    async def view(self, name: str) -> RecipeView:
        """One recipe."""
        ...


class WorkersPort(Protocol):
    """Processes that run jobs."""

    async def views(self) -> list[WorkerView]:
        """Every process that says that it works and is alive."""
        ...


class ConversationsPort(Protocol):
    """Conversations of agents."""

    async def in_openai_format(self, job: str, step: str = "") -> list[dict[str, Any]]:
        """What was said in a job, or at one of its steps, as the Chat Completions API takes it."""
        ...

    async def say(self, job: str, text: str, options: Options | None = None, *, key: str = "") -> str:
        """Say something to an agent; the job that answers: this one if it is at work, else a new one.

        An agent at work hears what is said again under the same `key` once.
        """
        ...


class ServicePort(Protocol):
    """The nouns that are the same here and over HTTP."""

    @property
    def jobs(self) -> JobsPort: ...  # noqa: D102 - the types say it, here and below

    @property
    def steps(self) -> StepsPort: ...  # noqa: D102 - as above

    @property
    def artifacts(self) -> ArtifactsPort: ...  # noqa: D102 - as above

    @property
    def streams(self) -> StreamsPort: ...  # noqa: D102 - as above

    @property
    def sessions(self) -> SessionsPort: ...  # noqa: D102 - as above

    @property
    def confirmations(self) -> ConfirmationsPort: ...  # noqa: D102 - as above

    @property
    def approvals(self) -> ApprovalsPort: ...  # noqa: D102 - as above

    @property
    def policy(self) -> PolicyPort: ...  # noqa: D102 - as above

    @property
    def tools(self) -> ToolsPort: ...  # noqa: D102 - as above

    @property
    def servers(self) -> ServersPort: ...  # noqa: D102 - as above

    @property
    def recipes(self) -> RecipesPort: ...  # noqa: D102 - as above

    @property
    def workers(self) -> WorkersPort: ...  # noqa: D102 - as above

    @property
    def conversations(self) -> ConversationsPort: ...  # noqa: D102 - as above

    @property
    def tickets(self) -> Tickets: ...  # noqa: D102 - as above
