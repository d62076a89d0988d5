"""Recorded calls of read-only tools, and questions to models, made once more and compared with what was recorded.

Each goes through the gate, in a session of its own (rule 1): policy decides on it as on any other call, and it is
recorded. No tool above L0 and none with side effects is called, whatever its record says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from remit.errors import PayloadErasedError, UsageError
from remit.gateway.model_request import ModelRequest, most_of
from remit.jobs.state import JobHistory
from remit.journal.kinds import UNSET, ModelDriftRecorded
from remit.journal.lineage import whole
from remit.models.faults import ModelFault
from remit.models.message import answer_digest, encode
from remit.models.prompt import Ask, OutputForm, Prompt, ToolSpec, toolset_of
from remit.models.thread import KnownPrompts
from remit.record.heads import head_of, stream_named
from remit.record.job_story import story_of
from remit.record.step import said
from remit.record.transcript import prompts_of
from remit.redact import preview, preview_of
from remit.tools.meta import Level

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.gateway.services import Services
    from remit.jobs.state import CallRecord
    from remit.journal.journal import Journal
    from remit.journal.kinds import CommandCommitted, CommandStarted, Payload
    from remit.record.outcome import OutcomeView
    from remit.record.transcript import Prompts
    from remit.tools.catalog import Catalog


class LiveCall(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call, or question to a model, that was made again, or was not."""

    step: str
    tool: str
    """The tool; of a question the model, as it was asked."""
    verdict: Literal["same", "changed", "failed", "skipped"]
    recorded: str = ""
    now: str = ""
    """The value that it returned, or why it failed or was not made; empty: the same."""
    drift: Literal["", "output", "model"] = ""
    """The change of a model's answer: another one of the same model, or another model answered."""


class LiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The read-only calls of a job or session, or a job's questions to models, made again."""

    job: str
    session: str
    """The session that the new calls are recorded in; empty: there was no question to ask."""
    calls: tuple[LiveCall, ...]

    @property
    def differs(self) -> bool:
        """Return whether a tool returned something else, or failed."""
        return any(call.verdict in {"changed", "failed"} for call in self.calls)


class AskingCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of asking a job's questions to models again."""

    questions: int
    models: tuple[str, ...]
    tokens: int
    """The tokens that the recorded answers took."""
    cost: float
    """Their cost in US dollars, as far as prices were known."""
    most_tokens: int
    """The tokens that the new answers may take at most."""
    most_cost: float
    """The same in US dollars, as far as prices are known."""
    unpriced: int
    """Questions to models of which no price is known."""


class SessionCaller(Protocol):
    """Makes calls in a session."""

    async def open(self, face: Literal["cli"], *, client: str, subject: str = "") -> str:
        """Open a session; its identifier."""
        ...

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> OutcomeView:
        """Call a tool through the gate."""
        ...

    async def ask(self, session: str, request: ModelRequest) -> Outcome:
        """Ask a model through the gate."""
        ...

    async def record(self, session: str, payload: Payload) -> None:
        """Append an event to a session."""
        ...


class LiveCalls:
    """Makes the read-only calls of one journal's jobs again."""

    def __init__(self, journal: Journal, catalog: Catalog, sessions: SessionCaller) -> None:
        self._journal = journal
        self._catalog = catalog
        self._sessions = sessions

    async def again(self, identifier: str) -> LiveReport:
        """Make the read-only calls of a job or session again that succeeded. Raises NotFoundError."""
        story = await story_of(self._journal, identifier)
        session = await _session(self._journal, self._sessions, identifier)
        calls = [await self._call(session, step, record) for step, record in story.history.calls.items()]
        return LiveReport(job=identifier, session=session, calls=tuple(call for call in calls if call is not None))

    async def _call(self, session: str, step: str, record: CallRecord) -> LiveCall | None:
        started, finished = record.started, record.finished
        if started is None or finished is None or finished.outcome != "success" or finished.decided_by:
            return None
        tool = await self._catalog.find(started.tool_name)
        if tool is None or tool.meta.capability_level > Level.L0 or tool.meta.side_effects:
            reason = "it is gone" if tool is None else "it may have side effects"
            return LiveCall(step=step, tool=started.tool_name, verdict="skipped", now=reason)
        try:
            args = await self._journal.value(started.args, started.args_blob)
            recorded = await self._journal.value(finished.result, finished.result_blob) or b"null"
        except PayloadErasedError as error:
            return LiveCall(step=step, tool=started.tool_name, verdict="skipped", now=error.message)
        outcome = await self._sessions.call(session, started.tool_name, msgspec.json.decode(args or b"{}"))
        shown = preview(recorded)
        if outcome.status != "ok":
            reason = f"{outcome.code}: {outcome.reason}"
            return LiveCall(step=step, tool=started.tool_name, verdict="failed", recorded=shown, now=reason)
        same = msgspec.json.decode(msgspec.json.encode(outcome.value)) == msgspec.json.decode(recorded)
        now = "" if same else preview_of(outcome.value)
        return LiveCall(
            step=step, tool=started.tool_name, verdict="same" if same else "changed", recorded=shown, now=now
        )


class LiveQuestions:
    """Asks the models of one journal's jobs again what they were asked, and answered."""

    def __init__(self, services: Services, sessions: SessionCaller) -> None:
        self._services = services
        self._journal = services.journal
        self._sessions = sessions

    async def cost(self, job: str) -> AskingCost:
        """Say what asking a job's questions again costs at most. Raises NotFoundError or PayloadErasedError."""
        models: dict[str, None] = {}
        questions = tokens = most_tokens = unpriced = 0
        cost = most_cost = 0.0
        for _, started, committed, request in await self._requests(job):
            if isinstance(request, str):
                continue
            questions += 1
            models[started.name] = None
            tokens, cost = tokens + committed.token_count, cost + (committed.cost or 0.0)
            bound = self._bound(request)
            most_tokens, most_cost = most_tokens + bound[0], most_cost + (bound[1] or 0.0)
            unpriced += bound[1] is None
        return AskingCost(
            questions=questions,
            models=tuple(models),
            tokens=tokens,
            cost=cost,
            most_tokens=most_tokens,
            most_cost=most_cost,
            unpriced=unpriced,
        )

    async def again(self, job: str) -> LiveReport:
        """Ask every question of a job that was answered once more. Raises NotFoundError or PayloadErasedError."""
        requests, head = await self._requests(job), await head_of(self._journal, job)
        session = await _session(self._journal, self._sessions, job) if requests else ""
        known, calls = KnownPrompts(set(), set()), []
        for step, started, committed, request in requests:
            if isinstance(request, str):
                calls.append(LiveCall(step=step, tool=started.name, verdict="skipped", now=request))
                continue
            # The messages stand in the job: what is about its subject is not kept a second time.
            known.adopt(request.thread.tip, job)
            question = msgspec.structs.replace(request, known=known)
            calls.append(await self._ask(session, question, started, committed, reported=not head.subject))
        return LiveReport(job=job, session=session, calls=tuple(calls))

    async def _requests(self, job: str) -> list[tuple[str, CommandStarted, CommandCommitted, ModelRequest | str]]:
        """Return each question that was answered, as it is asked again, or why it cannot be."""
        await head_of(self._journal, job)
        events = await whole(self._journal, await self._journal.read(stream_named(job)))
        prompts = await prompts_of(self._journal, events, own=False)
        requests = []
        for step, record in JobHistory(events).models.items():
            started, committed = record.started, record.committed
            if started is not None and committed is not None and committed.outcome == "success":
                requests.append((step, started, committed, await self._request(prompts, started)))
        return requests

    async def _request(self, prompts: Prompts, started: CommandStarted) -> ModelRequest | str:
        encoded = await self._journal.value(started.prompt, started.prompt_blob)
        thread = prompts.asked(started.step)
        if encoded is None or thread is None:
            return "its prompt is not in this job's record"
        prompt = msgspec.json.decode(encoded, type=Prompt)
        tools = await self._journal.blob(prompt.tools) if prompt.tools else b"[]"
        output = await self._journal.blob(prompt.output) if prompt.output else b"null"
        if tools is None or output is None:
            return "the tools or the form of its prompt are gone"
        return ModelRequest(
            model=started.name,
            thread=thread,
            step=started.step,
            principal=started.principal,
            extra=tuple(msgspec.json.decode(tools, type=list[ToolSpec])),
            choice=prompt.choice,
            sampling=prompt.sampling,
            output=msgspec.json.decode(output, type=OutputForm | None),
            hash=started.request_hash,
            asks=False,
        )

    def _bound(self, request: ModelRequest) -> tuple[int, float | None]:
        """Return the most tokens and dollars that an answer may take; none where the model cannot be asked here."""
        models = self._services.models
        ask = Ask(
            thread=request.thread,
            tools=toolset_of(request.extra),
            choice=request.choice,
            sampling=request.sampling,
            output=request.output,
        )
        try:
            model = models.get(request.model) if models is not None else None
            sending = model.prepare(ask) if model is not None else None
        except (UsageError, ModelFault):  # as the gate will say of the question itself
            return 0, 0.0
        if model is None or sending is None:
            return 0, 0.0
        most = most_of(sending, request.sampling)
        cost = self._services.prices.cost(model.name, model.name.model, most, self._journal.clock.now())
        return most.total, cost.amount if cost is not None else None

    async def _ask(
        self,
        session: str,
        request: ModelRequest,
        started: CommandStarted,
        committed: CommandCommitted,
        *,
        reported: bool,
    ) -> LiveCall:
        """Ask once more and compare; the digests of answers are recorded only if they may be `reported`."""
        recorded = await self._journal.value(committed.result, committed.result_blob) or b"null"
        producer, shown = f"{committed.llm_provider}/{committed.llm_model}", said(msgspec.Raw(recorded), UNSET)
        outcome = await self._sessions.ask(session, request)
        while outcome.again_ms is not None:
            await self._journal.clock.sleep(outcome.again_ms / 1_000)
            request = msgspec.structs.replace(request, attempt=request.attempt + 1)
            outcome = await self._sessions.ask(session, request)
        if not outcome.ok:
            reason = f"{outcome.named}: {outcome.reason}"
            return LiveCall(step=request.step, tool=started.name, verdict="failed", recorded=shown, now=reason)
        answer = outcome.value
        now, answered = encode(answer.reply.message), f"{answer.provider}/{answer.reply.model}"
        before, after = answer_digest(recorded), answer_digest(now)
        if (producer, before) == (answered, after):
            return LiveCall(step=request.step, tool=started.name, verdict="same", recorded=shown)
        other = producer != answered
        sides = (producer, answered) if other else (before, after) if reported else ("", "")
        await self._sessions.record(
            session,
            ModelDriftRecorded(
                step=request.step,
                prompt_hash=started.prompt_hash,
                subject="model" if other else "output",
                recorded=sides[0],
                current=sides[1],
            ),
        )
        return LiveCall(
            step=request.step,
            tool=started.name,
            verdict="changed",
            recorded=f"{producer}: {shown}" if other else shown,
            now=f"{answered}: {said(msgspec.Raw(now), UNSET)}" if other else said(msgspec.Raw(now), UNSET),
            drift="model" if other else "output",
        )


async def _session(journal: Journal, sessions: SessionCaller, identifier: str) -> str:
    """Open a session for what is made again; it is about the subject of what was recorded."""
    subject = (await head_of(journal, identifier)).subject
    return await sessions.open("cli", client=f"remit replay --live of {identifier}", subject=subject)
