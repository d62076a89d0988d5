"""The adapter: hands a pack to a program, waits for its end, and says the result (contract: executors, "Adapter").

worktree → pack → setup → program → nothing of it is left → commit what it left → acceptance → judgement → result

Every step may be done again, so a run whose adapter died can be looked at later: what was proved stands in the pack.

The result of a run, judged by what the adapter saw. The word of the executor may lower it, and never raises it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError, RemitError
from remit.parts.work.executors.port import (
    AgentConversation,
    AgentTurn,
    Executor,
    ExecutorOutput,
    OpenTools,
    ProgramEnding,
    Site,
    no_tools,
)
from remit.parts.work.executors.program import run_program
from remit.parts.work.executors.publication import Publication, PublishedRun
from remit.parts.work.executors.rows import CLIS
from remit.parts.work.executors.worktree import Beginning, Settled, Worktree, paths_of, shown
from remit.parts.work.order import NO_CONTRACTS, WorkOrder
from remit.parts.work.pack import STDERR, STDOUT, Contents, ContextPack, named_files
from remit.parts.work.result import Changes, Status, Test, WorkResult
from remit.parts.work.workflow import ExecutorTable, Mode
from remit.process.enclosure import (
    CommandMissingError,
    Enclosures,
    LooserError,
    NoEnclosures,
    Program,
    SandboxTerms,
    SandboxUnavailableError,
)
from remit.process.environment import environment
from remit.record.heads import SESSION

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.tools.door import ToolDoor


_MODES: Final[Mapping[Mode, str]] = {
    "governed": "governed: each passed the gate",
    "ask": "asked about, as far as it asked",
    "free": "free: none passed the gate",
}


class SeenFacts(NamedTuple):
    """The facts that the adapter saw of a run."""

    ending: ProgramEnding
    base: str
    """The commit that the work began at."""
    head: str
    """The commit that stood there when all had ended."""
    commits: bool
    """Whether the executor was to change something."""
    tests: tuple[Test, ...] = ()
    """The acceptance commands, as the adapter ran them."""
    forbidden: tuple[str, ...] = ()
    """Paths that changed and may not."""
    interfaces: tuple[str, ...] = ()
    """Interfaces that changed though the order names no contracts."""
    strayed: bool = False
    """Whether what stands there does not follow what the work began at."""
    claim: WorkResult | None = None
    """The result that the executor left."""
    published: PublishedRun = PublishedRun()
    settled: Settled = Settled((), ())
    """The rest that the program left, beside its commit."""


class Fault(NamedTuple):
    """Why a run did not succeed."""

    status: Status
    code: Code | None
    reason: str


def judge(order: WorkOrder, facts: SeenFacts) -> WorkResult:
    """Return the result of a run."""
    fault = next(_faults(facts), None)
    claim = facts.claim
    return WorkResult(
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        status=fault.status if fault is not None else "ok",
        changes=_changes(facts),
        tests=facts.tests or (_own_test(facts),),
        summary=_summary(facts, fault),
        blocked_by=claim.blocked_by if claim is not None else (),
        questions=claim.questions if claim is not None else (),
        artifacts=(*_files(claim), *_session(facts)),
        result_code=fault.code.name if fault is not None and fault.code is not None else "",
    )


def _summary(facts: SeenFacts, fault: Fault | None) -> str:
    claimed = facts.claim.summary if facts.claim is not None else ""
    text = ": ".join(part for part in (fault.reason if fault is not None else "", claimed) if part) or _said(facts)
    problem, (left_out, gone) = facts.published.problem, facts.settled
    more = (
        f" It is not shown as a pull request: {problem}" if problem else "",
        f" Left out of the commit: {shown(left_out)}." if left_out else "",
        f" It left, and Remit cleared: {', '.join(gone)}." if gone else "",
    )
    end = "." if any(more) and not text.endswith((".", "!", "?")) else ""
    return f"{text}{end}{''.join(more)}"


def _faults(facts: SeenFacts) -> Iterator[Fault]:
    """Return what speaks against a run, the weightiest first."""
    ending, claim = facts.ending, facts.claim
    turn = ending.turn or AgentTurn()
    yield from _cut_short(ending)
    if turn.fault:
        yield Fault("fail", None, f"it failed: {turn.fault}")
    if ending.stopped or not turn.terminal:
        yield Fault("fail", Code.outcome_unknown, "it ended without a word that its work is over")
    yield from _breaches(facts, turn.denied)
    if any(test.result == "fail" for test in facts.tests):
        yield Fault("fail", Code.test_failed, "the acceptance commands do not pass")
    if claim is not None and claim.status != "ok":
        code = Code.__members__.get(claim.result_code)
        if code is Code.env_unavailable:  # such a run is not counted as failed: only what was seen says so
            yield Fault(claim.status, None, f"it says so itself, as {code.name}")
        yield Fault(claim.status, code, "it says so itself")
    if facts.head == facts.base and any(not each.standing for each in facts.settled.left_out):
        yield Fault("blocked", Code.manual_intervention, "a rule leaves out of the commit whatever it did")
    if ending.exit_code != 0:
        code = Code.test_failed if not facts.commits else None
        yield Fault("fail", code, f"it ended with exit code {ending.exit_code}")


def _cut_short(ending: ProgramEnding) -> Iterator[Fault]:
    """Return why a program did not come to its own end."""
    if ending.error:
        yield Fault("fail", Code.env_unavailable, f"it could not be started: {ending.error}")
    if ending.timed_out:
        yield Fault("fail", Code.outcome_unknown, f"it did not end within {ending.timeout:g} s")
    elif ending.stopped and ending.exit_code is None:  # the work itself has not failed
        yield Fault("fail", Code.env_unavailable, "it ended with the process that ran it")


def _breaches(facts: SeenFacts, denied: int) -> Iterator[Fault]:
    """Return what a run did against its constraints."""
    if facts.forbidden:
        named = ", ".join(facts.forbidden[:5])
        yield Fault("fail", Code.permission_denied, f"it changed what it may not: {named}")
    if facts.strayed:
        yield Fault("fail", Code.permission_denied, "its commit does not follow the one that it was to begin at")
    if denied:
        yield Fault("fail", Code.permission_denied, f"{denied} of its calls were refused")
    if facts.interfaces:
        named = ", ".join(facts.interfaces[:5])
        yield Fault("blocked", Code.manual_intervention, f"the order names no contracts, and it changed {named}")


def _changes(facts: SeenFacts) -> Changes:
    """Return the commit and the pull request that were seen. A test suite leaves what it tested."""
    return Changes(pr=facts.published.url, commit=facts.head if facts.head != facts.base or not facts.commits else "")


def _own_test(facts: SeenFacts) -> Test:
    """Return the run as its own evidence, if it was a test; else that there is none."""
    if facts.commits:
        return Test(result="n/a")
    ending = facts.ending
    command = " ".join((ending.program, *ending.args))
    return Test(command=command, result="pass" if ending.passed else "fail", evidence="stdout.log")


def _said(facts: SeenFacts) -> str:
    if not facts.commits:
        return "It passed."
    did = "It committed its work" if facts.head != facts.base else "It changed nothing"
    did = "It committed nothing" if facts.head == facts.base and facts.settled.left_out else did
    turn = facts.ending.turn
    return f"{did}." if turn is None else f"{did}. Its calls were {_MODES[turn.mode]}."


def _files(claim: WorkResult | None) -> tuple[str, ...]:
    """Return what the executor names for people to look at; which sessions it had, only the adapter knows."""
    if claim is None:
        return ()
    named = (*claim.artifacts, *([claim.changes.pr] if claim.changes.pr else []))
    return tuple(name for name in named if not name.startswith(f"{SESSION}/"))


def _session(facts: SeenFacts) -> tuple[str, ...]:
    """Return the sessions in which an agent's calls, and its questions, are recorded."""
    turn = facts.ending.turn or AgentTurn()
    return tuple(f"{SESSION}/{name}" for name in (turn.trace, turn.asked) if name)


_IDENTITY: Final = {"NAME": "Remit", "EMAIL": "remit@localhost"}
"""Of what a program commits: its home is its own, and has no identity."""
_SETUP_S: Final = 1_800.0
Progress = Callable[[str], None]


_SKILLS: Final = (".agents/skills", ".claude/skills")
"""The folders of a home in which coding agents look for skills; in a pack they are in the first."""
GiveSkills = Callable[[Sequence[str]], Awaitable[dict[str, bytes]]]
"""Gives the files of skills by path, `NAME/…`. Raises RemitError for one that cannot be used."""
_REFUSED: Final = 50
"""Hosts that are named, of those that a program may not reach."""


class RunPlaces(NamedTuple):
    """Where programs of a run are started, and who is told."""

    clock: Clock
    principal: str = ""
    """As whom the run works."""
    enclosures: Enclosures | None = None
    """None: with our own rights."""
    tools: OpenTools | None = None
    """Offers Remit's tools to a governed run."""
    secrets: Mapping[str, str] = os.environ
    """Holds the key of an agent's model."""
    title: str = ""
    """The issue's title."""
    show: ExecutorOutput = lambda _stream, _data: None
    door: ToolDoor | None = None
    """The gate, for what an agent asks."""
    skills: GiveSkills | None = None
    """Gives the files of skills, by path."""
    publication: Publication | None = None
    """Pushes what there is; None: nothing is pushed."""
    last: AgentConversation | None = None
    """The conversation that the same agent had on this issue just before."""


class Adapter:
    """Runs one order with one executor."""

    def __init__(
        self,
        order: WorkOrder,
        executor: Executor,
        table: ExecutorTable,
        tree: Worktree,
        pack: ContextPack,
        places: RunPlaces,
    ) -> None:
        self._order = order
        self._executor = executor
        self._table = table
        self._tree = tree
        self._pack = pack
        self._places = places
        self._refused: dict[str, None] = {}
        """Hosts that the sandbox did not let its program reach, and why."""

    async def run(self, beginning: Beginning, contents: Contents, progress: Progress) -> WorkResult:
        """Run the order; return the result that was proved. Raise ProviderError or UsageError for what stops it."""
        progress("checking out")
        if not await self._tree.exists():
            self._say_aside(self._pack.folder, await asyncio.to_thread(self._pack.set_aside))
        start = await self._tree.create(beginning.commit, beginning.patch, beginning.source)
        self._say_aside(self._tree.folder, self._tree.aside)
        look_at = await asyncio.to_thread(named_files, self._order.spec_snapshot, self._tree.folder)
        skills = {f"{_SKILLS[0]}/{path}": data for path, data in (await self._skills()).items()}
        files = {**contents.files, **skills}
        self._pack.write(self._order, replace(contents, look_at=(*contents.look_at, *look_at), files=files))
        self._pack.verify()
        await self._furnish(skills)
        if self._table.setup:
            progress("setting up")
            ready = await self._program(self._table.setup, "setup", _SETUP_S)
            if not ready.passed:
                return self._finish(judge(self._order, SeenFacts(_unready(ready), start, start, self._table.commits)))
        command = self._site.filled(self._executor.command)
        progress(f"running {command[0]}")
        self._pack.put_audit(begun(command, start, self._places.clock))
        async with self._publishing(start, progress):
            ending = replace(await self._executor.work(self._site), base=start)
        ending = replace(ending, refused=tuple(self._refused))
        self._pack.put_audit(ending)
        return await self.take(ending, progress)

    async def prove(self, commit: str, progress: Progress) -> tuple[Test, ...]:
        """Run the acceptance commands on a commit: in a checkout and a home in which nothing else lies.

        Whatever a program left beside its commit proves nothing. Raise ProviderError or UsageError.
        """
        if not self._order.constraints.commands:
            return ()
        self._pack.write(self._order, Contents())
        clean = Adapter(self._order, self._executor, self._table, self._tree.proof, self._pack, self._places)
        await self._tree.proof.remove()
        await self._tree.proof.create(commit)
        try:
            await clean._furnish({})
            return await clean._tested(progress)
        finally:
            await self._tree.proof.remove()

    async def _furnish(self, skills: Mapping[str, bytes]) -> None:
        """Make the home of the run, and let the user of the sandbox reach what is the run's."""
        self._tree.home.mkdir(mode=0o700, exist_ok=True)
        await asyncio.to_thread(_put, self._tree.home, skills)
        if self._places.enclosures is not None:
            for folder in (self._tree.folder, self._pack.folder, self._tree.home):
                self._places.enclosures.own(folder)

    def _say_aside(self, place: Path, aside: Path | None) -> None:
        """Say that something was in the place of the run, and where it is now."""
        if aside is not None:
            note = f"{place} was of no run that this project knows, and was set aside as {aside.name}\n"
            self._places.show("stderr", os.fsencode(note))

    def _publishing(self, start: str, progress: Progress) -> AbstractAsyncContextManager[None]:
        publication = self._places.publication
        return publication.early(self._tree, start, progress) if publication is not None else nullcontext()

    async def _skills(self) -> dict[str, bytes]:
        """Return the files of the skills that the executor is given. Raise ProviderError if one cannot be used."""
        if not self._table.skills:
            return {}
        if self._places.skills is None:
            raise ProviderError("no skills are known here", cause=None, code=Code.SKILL_NOT_FOUND)
        try:
            return await self._places.skills(self._table.skills)
        except RemitError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=None, code=error.code) from error

    async def take(self, ending: ProgramEnding, progress: Progress) -> WorkResult:
        """Take what a program left that has ended: commit, prove, judge. Raise ProviderError or UsageError."""
        proved = self._pack.result()
        if proved is not None:
            return proved
        start = ending.base
        claim = self._claim()
        settled = Settled((), ())
        if self._table.commits:
            title = claim.summary if claim is not None and claim.summary else f"Work on {self._order.issue_ref}"
            settled = await self._tree.settle(f"{title}\n\n{self._order.issue_ref} {self._order.run_id}")
        head = await self._tree.head()
        constraints = self._order.constraints
        changed = await self._tree.changed(start) if head != start else []
        interfaces = constraints.interface_paths if self._order.contracts_ref in {"", NO_CONTRACTS} else ()
        tests = await self.prove(head, progress) if ending.exit_code is not None and not ending.timed_out else ()
        forbidden = tuple(paths_of(changed, constraints.forbidden_paths))
        published = PublishedRun()
        if changed and not forbidden and self._places.publication is not None:
            progress("pushing")
            published = await self._places.publication.end(head)
        elif changed:
            await self._tree.patch(constraints.target_branch or "HEAD", self._pack.patch)
        facts = SeenFacts(
            published=published,
            ending=ending,
            base=start,
            head=head,
            commits=self._table.commits,
            tests=tests,
            forbidden=forbidden,
            interfaces=tuple(paths_of(changed, interfaces)),
            strayed=head != start and not await self._tree.follows(start),
            claim=claim,
            settled=settled,
        )
        result = judge(self._order, facts)
        if ending.refused and result.status != "ok":
            result = replace(
                result,
                summary=f"{result.summary.removesuffix('.')}. The sandbox refused {'; '.join(ending.refused[:3])}.",
            )
        return self._finish(result)

    @property
    def _site(self) -> Site:
        return Site(
            order=self._order,
            title=self._places.title,
            tree=self._tree,
            pack=self._pack,
            home=self._tree.home,
            env=self._env,
            secrets=self._places.secrets,
            timeout_s=float(self._timeout_s),
            principal=self._places.principal,
            clock=self._places.clock,
            show=self._places.show,
            tools=self._places.tools or no_tools,
            launch=self._launch if self._places.enclosures is not None else None,
            enclosures=self._places.enclosures,
            door=self._places.door,
            last=self._places.last,
        )

    @property
    def _timeout_s(self) -> int:
        return min(self._table.timeout_seconds, self._order.lease_ttl or self._table.timeout_seconds)

    def _claim(self) -> WorkResult | None:
        """Return what the executor says. Raise UsageError (output_unparseable) for a result that is not of this run."""
        claim = self._pack.claim()
        if claim is not None:
            claim.require_echo(self._order.issue_ref, self._order.run_id)
        return claim

    async def _tested(self, progress: Progress) -> tuple[Test, ...]:
        """Run setup and the acceptance commands on what stands here."""
        evidence = f"tests-setup.{STDOUT}"
        if self._table.setup and not (await self._program(self._table.setup, "tests-setup", _SETUP_S)).passed:
            return (Test(command=f"setup: {' '.join(self._table.setup)}", result="fail", evidence=evidence),)
        tests = []
        for number, command in enumerate(self._order.constraints.commands, 1):
            shown = " ".join(command.args)
            progress(f"proving: {shown}")
            ending = await self._program(command.args, f"tests-{number}", float(command.timeout_seconds))
            evidence = f"tests-{number}.{STDOUT}"
            tests.append(Test(command=shown, result="pass" if ending.passed else "fail", evidence=evidence))
        return tuple(tests)

    async def _program(self, command: tuple[str, ...], name: str, timeout_s: float) -> ProgramEnding:
        """Run a program beside the executor's own."""
        site = self._site
        logs = (self._pack.folder / f"{name}.{STDOUT}", self._pack.folder / f"{name}.{STDERR}")
        return await run_program(
            command,
            cwd=site.folder,
            env=site.env,
            timeout_s=timeout_s,
            logs=logs,
            clock=site.clock,
            launch=site.launch,
        )

    async def _launch(
        self, protocol: asyncio.SubprocessProtocol, command: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> asyncio.SubprocessTransport:
        """Start a program in the sandbox, where it sees its worktree, its pack, and the repository's objects.

        Raise ProviderError: SANDBOX_UNAVAILABLE or POLICY_DENIED. It is never started without the sandbox instead.
        """
        writable = (str(self._tree.folder), str(self._pack.folder), str(self._tree.home))
        terms = SandboxTerms(roots=self._table.reads, writable=writable, network=self._table.network)
        makers = {host for cli in CLIS.values() for host in cli.hosts}
        program = Program(
            command=tuple(command),
            cwd=Path(cwd),
            env=env,
            terms=terms,
            private=tuple(host for host in self._table.network if host not in makers),
            refused=self._hear,
        )
        try:
            return await (self._places.enclosures or NoEnclosures()).start(program, protocol)
        except (SandboxUnavailableError, CommandMissingError) as error:
            remedy = getattr(error, "remedy", "") or "`remit sandbox probe` shows what is missing."
            raise ProviderError(f"{error}. {remedy}", cause=None, code=Code.SANDBOX_UNAVAILABLE) from error
        except LooserError as error:
            raise ProviderError(f"its sandbox: {error}", cause=None, code=Code.POLICY_DENIED) from error

    def _hear(self, place: str, reason: str) -> None:
        """Say once of each host that the program may not reach it."""
        note = f"{place}: {reason}"
        if note not in self._refused and len(self._refused) < _REFUSED:
            self._refused[note] = None
            self._places.show("stderr", f"the sandbox refused {note}\n".encode())

    @property
    def _env(self) -> dict[str, str]:
        values = {name: os.environ[name] for name in self._table.env if name in os.environ}
        return {
            **environment(os.environ, values),
            **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _IDENTITY.items()},
            "HOME": str(self._tree.home),
            "REMIT_CONTEXT_PACK": str(self._pack.folder),
            "REMIT_ISSUE_REF": self._order.issue_ref,
            "REMIT_RUN_ID": self._order.run_id,
        }

    def _finish(self, result: WorkResult) -> WorkResult:
        self._pack.put_result(result)
        return result


def _put(home: Path, skills: Mapping[str, bytes]) -> None:
    """Write skills where coding agents look for them: in the home, outside the checkout."""
    for path, data in skills.items():
        for folder in _SKILLS:
            place = home / folder / path.removeprefix(f"{_SKILLS[0]}/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


def begun(command: tuple[str, ...], base: str, clock: Clock) -> ProgramEnding:
    """Return what stands of a program until its end does; if that never comes, it ended with its adapter."""
    now = clock.now()
    program, *args = command
    return ProgramEnding(
        program=program, args=tuple(args), timeout=0, started=now, finished=now, exit_code=None, stopped=True, base=base
    )


def _unready(ready: ProgramEnding) -> ProgramEnding:
    """Return the end of a setup as that of a program which could not be started."""
    reason = ready.error or f"setup ended with exit code {ready.exit_code}"
    return replace(ready, error=reason)
