"""Remit from Python, behind a server: start jobs, await them, answer their questions, call tools.

async with RemoteRemit("http://127.0.0.1:8320") as remit:
    job = await remit.start_named("triage", {"repo": "octo/site"})
    print(await job)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from remit.errors import SettingsError
from remit.jobs.recipe import recipe_of
from remit.record.outcome import OutcomeView, outcome_of
from remit.service.handle import JobHandle, ended, id_of
from remit.settings.loader import TOKEN
from remit.settings.logins import login_token
from remit.tools.names import wire_name

try:
    from remit.api.routes.tools import ExecuteBody
    from remit.client.connection import ServerConnection
    from remit.client.service import service_at
except ModuleNotFoundError as missing:
    raise SettingsError(
        f"{missing.name} is not installed", remedy="Install it: pip install 'remit[serve]'"
    ) from missing

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.gateway.outcome import Outcome
    from remit.jobs.bound import RecipeCall
    from remit.jobs.plans.plan import Plan
    from remit.jobs.replay import ReplayReport
    from remit.record.views import JobRow
    from remit.service.options import Options
    from remit.service.service import Service

T = TypeVar("T")
_ANSWER_S: Final = 600.0
"""Seconds that an operation may take that is called by its name, such as a replay."""
_LONGEST_S: Final = 86_400.0
"""Seconds that a call without a timeout of its own may take; the tool's limit is shorter."""


class RemoteRemit:
    """A hold on a server of `remit serve`. The jobs run there; this process only asks.

    It sends nothing before `async with`. `token` is the bearer token; None takes it from REMIT_TOKEN, or from the login
    there. An answer may take `timeout_s` seconds to begin. Raises UsageError for an invalid URL, or one to which a
    token would be sent unencrypted.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout_s: float = 30.0, clock: Clock | None = None
    ) -> None:
        secret = (os.environ.get(TOKEN) or login_token(os.environ, url)) if token is None else token
        self._connection = ServerConnection(url, secret, timeout_s=timeout_s, clock=clock)
        self.service: Service = service_at(self._connection)
        """Everything that a server does, by noun: `remit.service.jobs`, `remit.service.confirmations` and so on."""

    async def __aenter__(self) -> Self:
        """Get ready to connect."""
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections; jobs go on."""
        await self._connection.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        return self._connection.url

    async def start(self, bound: RecipeCall[T], options: Options | None = None) -> JobHandle[T]:
        """Create a job that runs a recipe with its arguments; the server has to know a recipe of that name."""
        recipe = recipe_of(bound)
        return JobHandle(self.service, await self.service.jobs.start_named(recipe.name, bound.input, options), recipe)

    async def start_named(
        self, name: str, values: Mapping[str, Any] | None = None, options: Options | None = None
    ) -> JobHandle[Any]:
        """Create a job by the name of a recipe of the server, with its input as JSON."""
        return JobHandle(self.service, await self.service.jobs.start_named(name, values or {}, options))

    async def start_plan(
        self, plan: Plan, inputs: Mapping[str, Any] | None = None, options: Options | None = None
    ) -> JobHandle[Any]:
        """Create a job that carries out a task graph."""
        return JobHandle(self.service, await self.service.jobs.start_plan(plan, inputs or {}, options))

    async def run(self, bound: RecipeCall[T], options: Options | None = None) -> T:
        """Start a job and wait for its result. Raise JobEndedError if it failed or was cancelled."""
        return await (await self.start(bound, options))

    def job(self, job: str) -> JobHandle[Any]:
        """A job by its identifier."""
        return JobHandle(self.service, job)

    async def jobs(self, *states: str, limit: int = 20) -> list[JobRow]:
        """Jobs in these states, or all, newest first."""
        return await self.service.jobs.rows(states, limit=limit)

    async def ended(self, job: str | JobHandle[Any]) -> JobRow:
        """Wait until a job has ended. Raise NotFoundError or ServerError."""
        return await ended(self.service, id_of(job))

    async def replay(self, job: str | JobHandle[Any], *, anyway: bool = False) -> ReplayReport:
        """Have a job's recipe run again on its record alone, with the code of the server."""
        return await self.service.jobs.replay(id_of(job), anyway=anyway)

    async def ask(self, name: str, *path: str, query: Any = None, body: Any = None) -> Any:
        """Call an operation of the server by its name, such as `tickets.view`; its answer in the operation's type.

        `path` fills the braces of its path. Raise the error that the same call raises on a journal here.
        """
        return await self._connection.ask(name, *path, query=query, body=body, held_s=_ANSWER_S)

    async def call(
        self, tool: str, args: dict[str, Any] | None = None, *, timeout: float | None = None, key: str = ""
    ) -> Outcome:
        """Call one tool outside any job, through the server's gate.

        With an idempotency `key` the call is made once. A `pending` call waits for a person: make the same call again
        once it is decided.
        """
        limit = max(round(timeout * 1_000), 1) if timeout is not None else None
        body = ExecuteBody(tool_name=wire_name(tool), args=args or {}, timeout_ms=limit)
        held_s = timeout if timeout is not None else _LONGEST_S
        view: OutcomeView = await self._connection.ask(
            "tools.execute", body=body, answer=OutcomeView, key=key, held_s=held_s
        )
        return outcome_of(view)
