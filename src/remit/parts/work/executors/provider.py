"""Executors as tools: a call hands one run's order to a program and takes back what is proved.

The result is accepted within the call, by the run's own stream; that of a run which was fenced meanwhile is archived
there. A call whose end was not recorded is looked up: in the stream first, then in what the program left.

The tools of executors: their arguments, what they give, and what is said of each.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import ProviderError, RemitError, UsageError
from remit.parts.work.executors.acp import PERMIT, AcpExecutor
from remit.parts.work.executors.adapter import Adapter, GiveSkills, Progress, RunPlaces
from remit.parts.work.executors.port import AgentConversation, AgentTurn, OpenTools, ProgramEnding
from remit.parts.work.executors.program import ProgramExecutor
from remit.parts.work.executors.publication import Publication
from remit.parts.work.executors.registry import Hand, faults_of, hand_of, hands_of, name_of
from remit.parts.work.executors.worktree import Beginning, Beginnings, Worktree
from remit.parts.work.folder import WorkFolder, tree_folder
from remit.parts.work.order import WorkOrder
from remit.parts.work.outbox.provider import PullArgs
from remit.parts.work.outbox.remote import GitRemote
from remit.parts.work.pack import Contents, ContextPack, contents_for
from remit.parts.work.references import IssueRef
from remit.parts.work.result import RESULT_CODES, Test, WorkResult
from remit.parts.work.store import Verdict, WorkStore
from remit.parts.work.unit import MANUAL, tool_of
from remit.parts.work.workflow import ExecutorTable, Workflow, read_workflow, repository_of
from remit.process.live import LiveLines
from remit.tools.meta import Level, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.process.enclosure import Enclosures
    from remit.settings import Settings
    from remit.tools.door import ToolDoor
    from remit.tools.front import Front


PROVIDER: Final = "work"
PROVE: Final = tool_of(MANUAL)
_BESIDE_S: Final = 4 * 3_600
"""Seconds that a call may take beside the program: setup, acceptance, git."""


class ExecuteArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run, and what is started for it."""

    issue_ref: Annotated[str, Meta(min_length=3, max_length=512)]
    run_id: Annotated[str, Meta(min_length=3, max_length=512)]
    command: Annotated[tuple[str, ...], Meta(description="The program and its arguments, as workflow.toml has them.")]


class ExecuteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run, and what Remit did with it."""

    result: WorkResult | None
    """None: it left nothing that can be used."""
    verdict: Verdict
    comment: str = ""
    """The text to be written to the issue."""
    labels: tuple[str, ...] = ()
    pack: str
    turn: AgentTurn | None = None
    """An agent's turn: its mode, what it took, the session of its calls; None for any other program."""
    pull: PullArgs | None = None
    """The call that has its pull request say the result; None: it has none."""


class ProveArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commit that a person hands in."""

    issue_ref: Annotated[str, Meta(min_length=3, max_length=512)]
    run_id: Annotated[str, Meta(min_length=3, max_length=512)]
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40,64}$")]


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """The acceptance commands, as Remit ran them."""

    tests: tuple[Test, ...]


class PermitArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent asks for."""

    issue_ref: Annotated[str, Meta(min_length=3, max_length=512)]
    run_id: Annotated[str, Meta(min_length=3, max_length=512)]
    agent: Annotated[str, Meta(max_length=100)]
    tool_call: Annotated[dict[str, Any], Meta(description="What it is about to do, whole, as it shows it.")]


class Permitted(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the agent may."""

    permitted: bool


def isolation_of(table: ExecutorTable) -> Literal["sandbox", "unprotected"]:
    """Return what holds a program of these terms, as it is said of a tool."""
    return "sandbox" if table.isolation == "sandbox" else "unprotected"


def tool_for(hand: Hand) -> ToolMeta:
    """Return the tool of an executor."""
    table = hand.table
    return _tool(
        tool_of(hand.name),
        f"Hand a run's work order to {table.program or hand.name}, and take back what is proved.",
        ExecuteArgs,
        ExecuteResult,
        capability_level=Level.L2,
        idempotent=False,
        timeout_ms=(table.timeout_seconds + _BESIDE_S) * 1_000,
        isolation=isolation_of(table),
    )


_tool: Final = partial(declare, provider=PROVIDER, writes=True, timeout_ms=_BESIDE_S * 1_000)
PERMIT_TOOL: Final = _tool(PERMIT, "Let an agent that works on a run do once what it asks for.", PermitArgs, Permitted)
PROVE_TOOL: Final = _tool(
    PROVE, "Run the acceptance commands on a person's commit.", ProveArgs, Proved, capability_level=Level.L2
)


_log: Final = logging.getLogger("remit.work")


class ExecutorProvider(Toolset):
    """One tool for each executor of workflow.toml.

    It hands out the work of the project; packs and worktrees lie in `root`. `tools` offers Remit's tools to governed
    runs; `door` is the gate, for what agents ask; `skills` gives the files of skills; `front` stands before the models
    of agents.
    """

    def __init__(
        self,
        settings: Settings,
        root: WorkFolder,
        store: WorkStore,
        clock: Clock,
        enclosures: Enclosures,
        tools: OpenTools,
        door: ToolDoor | None = None,
        skills: GiveSkills | None = None,
        front: Callable[[], Front | None] = lambda: None,
    ) -> None:
        super().__init__(PROVIDER, ())
        self._door = door
        self._skills = skills
        self._front = front
        self._settings = settings
        self._folder = root
        self._enclosures = enclosures
        self._store = store
        self._clock = clock
        self._open_tools = tools

    async def list_tools(self) -> Sequence[ToolMeta]:
        """Return the executors of workflow.toml; none without one. Raise ProviderError if it cannot be read."""
        self._require_open()
        self._tools = self._offered()
        for fault in faults_of(self._workflow()):
            _log.warning("%s", fault)
        return self._tools

    def outdated(self) -> bool:
        """Return whether workflow.toml names other executors by now, or another agent was installed."""
        with suppress(ProviderError):  # a call says what is wrong with the file
            return self._offered() != self._tools
        return False

    def _offered(self) -> tuple[ToolMeta, ...]:
        workflow = self._workflow()
        hands = hands_of(workflow)
        asks = any(isinstance(hand.executor, AcpExecutor) for hand in hands)
        prove = msgspec.structs.replace(PROVE_TOOL, isolation=isolation_of(_manual(workflow)))
        return (*map(tool_for, hands), prove, *([PERMIT_TOOL] if asks else []))

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Run an order to its end, or let an agent do what it asks for. Raise ProviderError."""
        if name == PERMIT:
            return ToolResult(msgspec.to_builtins(Permitted(permitted=True)))
        if name == PROVE:
            return await self._prove(arguments(ProveArgs, args), ctx)
        live = LiveLines(ctx.progress)
        hand, order = await self._handed(name, args)
        if (await self._store.unit(order.issue)).active != order.run_id:
            raise ProviderError(f"Another run took the place of {order.run_id}.", cause=Code.stale_run)
        places = RunPlaces(self._clock, ctx.principal, show=live, door=self._door)
        try:
            async with self._behind(hand, ctx) as (hand, secrets):
                adapter = await self._adapter(hand, order, places._replace(secrets=secrets))
                beginning = await self._beginnings(order).of(order)
                result = await adapter.run(beginning, await self._contents(order, beginning), _told(ctx))
        except UsageError as error:
            return await self._refused(order, error)
        except ProviderError as error:
            ending = _recorded(self._pack(order))
            ran = ending is not None and (ending.exit_code is not None or ending.timed_out)
            note = "it ran, and Remit could not take what it left" if ran else "it could not be started"
            result = not_begun(order, f"{note}: {error}", error.cause)
        except OSError as error:  # such as a full disk
            result = not_begun(order, f"Remit could not see it through: {_words(error)}")
        finally:
            live.end()
        return await self._accepted(order, result, ctx.principal)

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        """Find out the result of a run whose call did not end. Raise ProviderError.

        None if the program was never started. It ended with the process that ran it, so what it left is judged as it
        lies there.
        """
        if name in {PERMIT, PROVE}:
            return None  # it may be done again
        hand, order = await self._handed(name, args)
        adapter = await self._adapter(hand, order, RunPlaces(self._clock, ctx.principal, door=self._door))
        accepted = await self._store.result(order.issue, order.run_id)
        if accepted is not None:
            return await self._accepted(order, accepted, ctx.principal)
        try:
            ending = _recorded(self._pack(order))
            if ending is None:
                return None
            return await self._accepted(order, await adapter.take(ending, _told(ctx)), ctx.principal)
        except UsageError as error:
            return await self._refused(order, error)
        except OSError as error:
            raise ProviderError(_words(error), cause=Code.env_unavailable) from error

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Show what would be started, and on what. Raise ProviderError."""
        if name == PERMIT:
            permit = arguments(PermitArgs, args)
            return Preview(what=f"Lets {permit.agent} do this once, for {permit.issue_ref}. It was not done yet.")
        if name == PROVE:
            proof = arguments(ProveArgs, args)
            order = await self._order(proof.issue_ref, proof.run_id)
            where = f"of {self._repository(order)}, for {order.issue_ref}"
            return Preview(what=f"Runs the acceptance commands on {proof.commit} {where}.", diff=_accepts(order))
        hand, parsed = self._hand(name), arguments(ExecuteArgs, args)
        order = await self._order(parsed.issue_ref, parsed.run_id)
        return shown_order(order, hand, str(self._repository(order)))

    # --- what a run is made of

    def _workflow(self) -> Workflow:
        try:
            return read_workflow(self._settings)
        except UsageError as error:
            raise _unusable(error) from error

    def _hand(self, name: str) -> Hand:
        self._require_open()
        try:
            return hand_of(self._workflow(), name_of(name))
        except UsageError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=Code.ToolNotFound) from error

    async def _handed(self, name: str, args: dict[str, Any]) -> tuple[Hand, WorkOrder]:
        hand, parsed = self._hand(name), arguments(ExecuteArgs, args)
        if parsed.command != hand.executor.command:
            raise ProviderError("workflow.toml names another program by now. Start a new run.", cause=Code.InvalidInput)
        return hand, await self._placed(await self._order(parsed.issue_ref, parsed.run_id))

    @asynccontextmanager
    async def _behind(self, hand: Hand, ctx: CallContext) -> AsyncIterator[tuple[Hand, Mapping[str, str]]]:
        """Have the models of an executor asked through the gate within the block, where something stands before them.

        Its variables hold a token of the run in the place of the key then. Raise ProviderError for a budget that
        nothing holds.
        """
        model, front = hand.model(os.environ), self._front()
        if model is None or front is None:
            if model is not None and model.budget:
                remedy = "Switch on model_gateway.executors, and install remit[models,serve]"
                raise ProviderError(f"tokens and cost: no gate is before its models. {remedy}", cause=Code.WORK_INVALID)
            yield hand, os.environ
            return
        async with front.open(ctx, model) as address:
            yield hand.behind(address.url), {hand.key: address.key}

    async def _adapter(self, hand: Hand, order: WorkOrder, places: RunPlaces) -> Adapter:
        title = (await self._store.unit(order.issue)).title
        places = places._replace(
            enclosures=self._enclosures if hand.table.isolation == "sandbox" else None,
            tools=self._open_tools,
            skills=self._skills,
            title=title,
            last=await self._conversation(order, hand),
            publication=self._publication(order, title, places.principal) if hand.table.commits else None,
        )
        return Adapter(order, hand.executor, hand.table, self._tree(order), self._pack(order), places)

    async def _prove(self, args: ProveArgs, ctx: CallContext) -> ToolResult:
        """Run the acceptance commands on a person's commit."""
        self._require_open()
        order = await self._placed(await self._order(args.issue_ref, args.run_id))
        table = _manual(self._workflow())
        places = RunPlaces(self._clock, ctx.principal, self._enclosures if table.isolation == "sandbox" else None)
        executor = ProgramExecutor(())
        adapter = Adapter(order, executor, table, self._tree(order), self._pack(order), places)
        try:
            tests = await adapter.prove(args.commit, _told(ctx))
        except (UsageError, OSError) as error:
            raise ProviderError(str(error), cause=Code.env_unavailable) from error
        return ToolResult(msgspec.to_builtins(Proved(tests=tests)))

    async def _order(self, issue_ref: str, run_id: str) -> WorkOrder:
        try:
            return await self._store.order(IssueRef.parse(issue_ref), run_id)
        except RemitError as error:
            raise ProviderError(error.message, cause=Code.not_found) from error

    async def _placed(self, order: WorkOrder) -> WorkOrder:
        """Make the folder of the project's runs; return the order with its place there. Raise ProviderError."""
        try:
            await asyncio.to_thread(self._folder.make, self._enclosures)
        except OSError as error:
            raise ProviderError(_words(error), cause=Code.env_unavailable) from error
        return msgspec.structs.replace(order, repo_dir=str(self._place(order)))

    def _pack(self, order: WorkOrder) -> ContextPack:
        return ContextPack.of(self._folder.path, order.issue, order.run_id)

    def _repository(self, order: WorkOrder) -> Path:
        return repository_of(self._workflow(), self._settings.folder, order.role)

    def _place(self, order: WorkOrder) -> Path:
        return tree_folder(self._folder.path, order.issue, order.run_id)

    def _tree(self, order: WorkOrder) -> Worktree:
        return Worktree.of(self._repository(order), self._place(order), order.issue, order.run_id)

    def _beginnings(self, order: WorkOrder) -> Beginnings:
        return Beginnings(self._store, self._repository(order), self._workflow().outbox, self._tree)

    def _publication(self, order: WorkOrder, title: str, principal: str) -> Publication | None:
        """Return what pushes the work of a run; None where nothing is pushed."""
        table, repository = self._workflow().outbox, self._repository(order)
        if not table.remote or self._door is None:
            return None
        pulls = table.pulls and table.backend != "local" and repository == self._settings.folder.resolve()
        remote = GitRemote(repository, table)
        return Publication(self._door, principal, order, title, remote, table, self._clock, pulls=pulls)

    async def _conversation(self, order: WorkOrder, hand: Hand) -> AgentConversation | None:
        """Return the conversation of the run just before, if the same executor had it, and its turn ended well."""
        before = [run for run in (await self._store.unit(order.issue)).runs.values() if run.run_id != order.run_id]
        if not before or before[-1].executor != hand.name:
            return None
        earlier = await self._store.order(order.issue, before[-1].run_id)
        ending = _recorded(self._pack(earlier))
        turn = ending.turn if ending is not None and ending.passed else None
        result = await self._store.result(order.issue, earlier.run_id)
        if turn is None or result is None or not turn.terminal or turn.fault:
            return None
        tree = self._tree(earlier)
        summary = f"{earlier.run_id}, ended as {result.status}: {' '.join(result.summary.split())}"[:1_000]
        return AgentConversation(earlier.run_id, turn.session, turn.mode, turn.version, tree.home, tree.folder, summary)

    async def _contents(self, order: WorkOrder, beginning: Beginning) -> Contents:
        unit = await self._store.unit(order.issue)
        results = {run: await self._store.result(order.issue, run) for run in unit.results}
        results_given = {run: result for run, result in results.items() if result is not None}
        contents = await asyncio.to_thread(contents_for, order, unit, results_given, self._folder.path)
        begins = (f"begins at {beginning.source}",) if beginning.source else ()
        return msgspec.structs.replace(contents, links=(*contents.links, *begins))

    # --- what Remit does with it

    async def _accepted(self, order: WorkOrder, result: WorkResult, principal: str) -> ToolResult:
        patch = self._pack(order).patch
        verdict = await self._store.accept(order, result, patch=patch.read_bytes() if patch.exists() else b"")
        comment = await self._store.comment(order.issue, verdict.trigger) if verdict.trigger else None
        body = comment.body if comment is not None else ""
        text = body.removesuffix(comment.marker).rstrip() if comment is not None else ""
        execute_result = ExecuteResult(result=result, verdict=verdict, comment=body, pack="")
        publication = self._publication(order, (await self._store.unit(order.issue)).title, principal)
        if publication is not None and verdict.accepted and result.changes.pr and body:
            with suppress(ProviderError):  # the pull request stays a draft, and says what it says
                pull = await publication.pull(text, draft=verdict.state != "review")
                execute_result = msgspec.structs.replace(execute_result, pull=pull)
        return self._given(order, execute_result)

    async def _refused(self, order: WorkOrder, error: UsageError) -> ToolResult:
        verdict = await self._store.refuse(order.issue, order.run_id, error.code, error.message)
        return self._given(order, ExecuteResult(result=None, verdict=verdict, pack=""))

    def _given(self, order: WorkOrder, result: ExecuteResult) -> ToolResult:
        pack = self._pack(order)
        ending = _recorded(pack)
        turn = ending.turn if ending is not None else None
        return ToolResult(msgspec.to_builtins(msgspec.structs.replace(result, pack=str(pack.folder), turn=turn)))


def _manual(workflow: Workflow) -> ExecutorTable:
    """Return the terms on which the acceptance commands run on what a person did."""
    return workflow.executors.get(MANUAL) or ExecutorTable(program=MANUAL)


def shown_order(order: WorkOrder, hand: Hand, repository: str) -> Preview:
    """Return what would be started for an order, as it is shown to the person who approves it."""
    what = f"Runs {' '.join(hand.executor.command)} in a worktree of {repository}, for {order.issue_ref}."
    spec = "\n".join(f"+{line}" for line in order.spec_snapshot.splitlines())
    return Preview(what=what, diff="\n".join(part for part in (_accepts(order), spec) if part))


def _accepts(order: WorkOrder) -> str:
    return "\n".join(f"+accepts with {' '.join(command.args)}" for command in order.constraints.commands)


def not_begun(order: WorkOrder, reason: str, cause: Code | None = None) -> WorkResult:
    """Return the result of a run whose program could not be started where it was to work, or not seen through."""
    return WorkResult(
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        status="fail",
        tests=(Test(result="n/a"),),
        summary=reason,
        result_code=cause.name if cause is not None and cause.name in RESULT_CODES else Code.env_unavailable.name,
    )


def _told(ctx: CallContext) -> Progress:
    return lambda text: ctx.progress(0.0, None, text)


def _recorded(pack: ContextPack) -> ProgramEnding | None:
    """Return how the program ended, if the adapter lived to write it down."""
    data = pack.audit()
    try:
        return msgspec.json.decode(data, type=ProgramEnding) if data is not None else None
    except msgspec.DecodeError:
        return None


def _unusable(error: UsageError) -> ProviderError:
    return ProviderError(f"{error.message}. {error.remedy}", cause=Code.InvalidInput)


def _words(error: OSError) -> str:
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
