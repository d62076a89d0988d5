"""The adapter: hands a pack to a program, waits for its end, and says the result (contract: executors, "Adapter").

worktree → pack → setup → program → nothing of it is left → commit what it left → acceptance → judgement → result

Every step may be done again, so a run whose adapter died can be looked at later: what was proved stands in the pack.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.enclosure import (
    CommandMissingError,
    Enclosures,
    LooserError,
    Program,
    SandboxTerms,
    SandboxUnavailableError,
)
from remit.process.environment import environment
from remit.work.executors.judgement import Facts, judge
from remit.work.executors.program import Ending, run_program
from remit.work.executors.worktree import Worktree, forbidden
from remit.work.order import WorkOrder
from remit.work.pack import STDERR, STDOUT, Contents, ContextPack
from remit.work.result import Test, WorkResult
from remit.work.workflow import ExecutorTable

if TYPE_CHECKING:
    from remit.clock import Clock

_IDENTITY: Final = {"NAME": "Remit", "EMAIL": "remit@localhost"}
"""Of what a program commits: its home is its own, and has no identity."""
_SETUP_S: Final = 1_800.0
Progress = Callable[[str], None]


class Adapter:
    """Runs one order with one executor."""

    def __init__(
        self,
        order: WorkOrder,
        table: ExecutorTable,
        tree: Worktree,
        pack: ContextPack,
        clock: Clock,
        enclosures: Enclosures | None = None,
    ) -> None:
        """Run programs in `enclosures`; None: with our own rights."""
        self._order = order
        self._table = table
        self._tree = tree
        self._pack = pack
        self._clock = clock
        self._enclosures = enclosures

    async def run(self, base: str, contents: Contents, progress: Progress) -> WorkResult:
        """Run the order; return the result that was proved. Raise ProviderError or UsageError for what stops it."""
        progress("checking out")
        start = await self._tree.create(base)
        self._pack.write(self._order, contents)
        self._pack.verify()
        if self._enclosures is not None:
            self._enclosures.own(self._tree.folder)
            self._enclosures.own(self._pack.folder)
        if self._table.setup:
            progress("setting up")
            ready = await self._program(self._table.setup, "setup", _SETUP_S)
            if not ready.passed:
                return self._finish(judge(self._order, Facts(_unready(ready), start, start, self._table.commits)))
        progress(f"running {self._table.program}")
        self._pack.put_audit(begun(self.command, start, self._clock))
        ending = replace(await self._program(self.command, "", float(self._timeout_s), progress), base=start)
        self._pack.put_audit(ending)
        return await self.take(ending, progress)

    async def take(self, ending: Ending, progress: Progress) -> WorkResult:
        """Take what a program left that has ended: commit, prove, judge. Raise ProviderError or UsageError."""
        proved = self._pack.result()
        if proved is not None:
            return proved
        start = ending.base
        claim = self._claim()
        if self._table.commits:
            title = claim.summary if claim is not None and claim.summary else f"Work on {self._order.issue_ref}"
            await self._tree.commit(f"{title}\n\n{self._order.issue_ref} {self._order.run_id}")
        head = await self._tree.head()
        changed = forbidden(await self._tree.changed(start), self._order.constraints.forbidden_paths)
        tests = await self._prove(progress) if ending.exit_code is not None and not ending.timed_out else ()
        facts = Facts(ending, start, head, self._table.commits, tests, tuple(changed), claim)
        return self._finish(judge(self._order, facts))

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments, with the names of this run."""
        names = {
            "pack": str(self._pack.folder),
            "repo": str(self._tree.folder),
            "issue": self._order.issue_ref,
            "run": self._order.run_id,
        }
        return tuple(_filled(word, names) for word in (self._table.program, *self._table.args))

    @property
    def _timeout_s(self) -> int:
        return min(self._table.timeout_seconds, self._order.lease_ttl or self._table.timeout_seconds)

    def _claim(self) -> WorkResult | None:
        """Return what the executor says. Raise UsageError (output_unparseable) for a result that is not of this run."""
        claim = self._pack.claim()
        if claim is not None:
            claim.require_echo(self._order.issue_ref, self._order.run_id)
        return claim

    async def _prove(self, progress: Progress) -> tuple[Test, ...]:
        """Run the acceptance commands on what stands there now."""
        tests = []
        for number, command in enumerate(self._order.constraints.commands, 1):
            shown = " ".join(command.args)
            progress(f"proving: {shown}")
            ending = await self._program(command.args, f"tests-{number}", float(command.timeout_seconds))
            evidence = f"tests-{number}.stdout.log"
            tests.append(Test(command=shown, result="pass" if ending.passed else "fail", evidence=evidence))
        return tuple(tests)

    async def _program(
        self, command: tuple[str, ...], name: str, timeout_s: float, progress: Progress | None = None
    ) -> Ending:
        prefix = f"{name}." if name else ""
        return await run_program(
            command,
            cwd=self._tree.folder,
            env=self._env,
            timeout_s=timeout_s,
            logs=(self._pack.folder / f"{prefix}{STDOUT}", self._pack.folder / f"{prefix}{STDERR}"),
            clock=self._clock,
            heard=_lines(progress) if progress is not None else lambda _: None,
            launch=self._launch if self._enclosures is not None else None,
        )

    async def _launch(
        self, protocol: asyncio.SubprocessProtocol, command: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> asyncio.SubprocessTransport:
        """Start a program in the sandbox, where it sees its worktree, its pack, and the repository's objects.

        Raise ProviderError: SANDBOX_UNAVAILABLE or POLICY_DENIED. It is never started without the sandbox instead.
        """
        writable = (str(self._tree.folder), str(self._pack.folder))
        terms = SandboxTerms(roots=self._table.reads, writable=writable, network=self._table.network)
        program = Program(command=tuple(command), cwd=Path(cwd), env=env, terms=terms)
        enclosures = cast("Enclosures", self._enclosures)
        try:
            return await enclosures.start(program, protocol)
        except (SandboxUnavailableError, CommandMissingError) as error:
            remedy = getattr(error, "remedy", "") or "`remit sandbox probe` shows what is missing."
            raise ProviderError(f"{error}. {remedy}", cause=None, code=Code.SANDBOX_UNAVAILABLE) from error
        except LooserError as error:
            raise ProviderError(f"its sandbox: {error}", cause=None, code=Code.POLICY_DENIED) from error

    @property
    def _env(self) -> dict[str, str]:
        given = {name: os.environ[name] for name in self._table.env if name in os.environ}
        return {
            **environment(os.environ, given),
            **{f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _IDENTITY.items()},
            **self._home,
            "REMIT_CONTEXT_PACK": str(self._pack.folder),
            "REMIT_ISSUE_REF": self._order.issue_ref,
            "REMIT_RUN_ID": self._order.run_id,
        }

    @property
    def _home(self) -> dict[str, str]:
        """Return the home of the run; the sandbox gives it one of its own."""
        if self._enclosures is not None:
            return {}
        home = self._pack.folder.with_name(f"{self._pack.folder.name}.home")
        home.mkdir(mode=0o700, exist_ok=True)
        return {"HOME": str(home)}

    def _finish(self, result: WorkResult) -> WorkResult:
        self._pack.put_result(result)
        return result


def begun(command: tuple[str, ...], base: str, clock: Clock) -> Ending:
    """Return what stands of a program until its end does; if that never comes, it ended with its adapter."""
    now = clock.now()
    program, *args = command
    return Ending(
        program=program, args=tuple(args), timeout=0, started=now, finished=now, exit_code=None, stopped=True, base=base
    )


def _unready(ready: Ending) -> Ending:
    """Return the end of a setup as that of a program which could not be started."""
    why = ready.error or f"setup ended with exit code {ready.exit_code}"
    return replace(ready, error=why)


def _filled(word: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _lines(progress: Progress) -> Callable[[bytes], None]:
    """Return what reports the last line of each piece of output."""

    def heard(data: bytes) -> None:
        lines = data.decode(errors="replace").split("\n")
        shown = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if shown:
            progress(shown[:200])

    return heard
