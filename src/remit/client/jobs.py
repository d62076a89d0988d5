"""Jobs behind a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Final

from remit.api.routes.history import Replayed as ReplayAnswer
from remit.api.routes.history import ReplayQuery
from remit.api.routes.jobs import JobPage, JobQuery, StartBody, WaitQuery
from remit.client.person import only_oneself
from remit.client.twin import Twin
from remit.codes import Code
from remit.errors import UsageError
from remit.ids import new_id
from remit.jobs.plans.plan import Plan, bind_inputs, task_graph
from remit.jobs.replay import ReplayReport
from remit.jobs.stopping import Stop
from remit.record.search import Found, JobSearch
from remit.record.views import JobRow, JobView
from remit.service.jobs import Jobs
from remit.service.many import Replayed, replayed_row
from remit.service.options import Options

_PAGE: Final = 1_000
REPLAY_S: Final = 600.0
"""Seconds that a replay may take."""


class RemoteJobs(Twin, Jobs):
    """The jobs of a server."""

    # --- queries

    async def find(self, reference: str) -> str:
        return (await self.row(reference)).job

    async def rows(
        self,
        states: tuple[str, ...] = (),
        *,
        labels: dict[str, str] | None = None,
        limit: int = 20,
        before: str | None = None,
        text: str = "",
        since: int = 0,
    ) -> list[JobRow]:
        wanted = tuple(f"{key}={value}" for key, value in (labels or {}).items())
        rows: list[JobRow] = []
        while len(rows) < limit:
            most = min(limit - len(rows), _PAGE)
            query = JobQuery(state=states, label=wanted, limit=most, before=before or "", text=text, since=since)
            page: JobPage = await self._connection.ask("jobs.page", query=query)
            rows += page.items
            before = page.next
            if before is None:
                break
        return rows

    async def search(self, wanted: JobSearch) -> Found:
        query = JobQuery(
            state=wanted.states,
            label=tuple(f"{key}={value}" for key, value in wanted.labels.items()),
            since=wanted.since,
            until=wanted.until,
            text=wanted.text,
            principal=wanted.principal,
            before=wanted.before,
            limit=min(wanted.limit, _PAGE),
        )
        page: JobPage = await self._connection.ask("jobs.page", query=query)
        return Found(rows=page.items, next=page.next)

    async def row(self, job: str) -> JobRow:
        row: JobRow = await self._connection.ask("jobs.row", job, query=WaitQuery())
        return row

    async def view(self, job: str) -> JobView:
        view: JobView = await self._connection.ask("jobs.view", job, query=WaitQuery())
        return view

    async def result(self, job: str) -> Any:
        return (await self.view(job)).result

    async def replay(self, job: str, *, anyway: bool = False, stop: Stop | None = None) -> ReplayReport:
        """Have a job's recipe run again on its record alone, with the code of the server.

        Raises UsageError (LOCAL_ONLY) for a `stop`: the recipe runs on the server.
        """
        if stop is not None:
            why = "a replay stops only where the recipe runs"
            raise UsageError(why, code=Code.LOCAL_ONLY, remedy="Run it on the machine with the journal.")
        query = ReplayQuery(anyway=anyway)
        answer: ReplayAnswer = await self._connection.ask("jobs.replay", job, query=query, held_s=REPLAY_S)
        return answer.report

    async def replays(
        self,
        states: tuple[str, ...] = (),
        *,
        since: int = 0,
        labels: Mapping[str, str] | None = None,
        anyway: bool = False,
    ) -> AsyncIterator[Replayed]:
        before: str | None = None
        while rows := await self.rows(states, labels=dict(labels or {}), limit=_PAGE, before=before):
            for row in rows:
                if row.created_at >= since:
                    yield await replayed_row(partial(self.replay, anyway=anyway), row.job, row.name, row.state)
            before = rows[-1].job
            if rows[-1].created_at < since:
                return

    # --- commands

    async def start_named(self, name: str, given: Mapping[str, Any], options: Options | None = None) -> str:
        return await self._start(options, recipe=name, input=dict(given))

    async def start_plan(self, plan: Plan, given: Mapping[str, Any], options: Options | None = None) -> str:
        bind_inputs(plan, given)  # every misfit is named here, in lines of its own
        return await self._start(options, plan=task_graph(plan), input=dict(given))

    async def _start(self, options: Options | None, **what: Any) -> str:
        options = options or Options()
        only_oneself(options.principal)
        body = StartBody.of(options, delay_s=options.delay_s, subject=options.subject, **what)
        try:
            # The key lets a request whose answer was lost be sent again.
            row: JobRow = await self._connection.ask("jobs.start", query=WaitQuery(), body=body, key=new_id("start"))
        except TypeError as error:
            why = f"the input cannot be sent: {error}"
            raise UsageError(why, code=Code.INVALID_INPUT, remedy="Send plain JSON values.") from error
        return row.job
