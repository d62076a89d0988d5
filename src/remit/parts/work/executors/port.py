"""The port of executors: what does the work of a run, where it works, and what it says of its turn.

The adapter is its only caller. It makes the worktree and the pack before, and commits, proves and judges after, so an
executor only works, and says how it ended. Three adapters stand behind the port: any program, a command line of a
coding agent, and an agent that speaks the Agent Client Protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.workflow import Mode
from remit.regex import regex

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.work.executors.worktree import Worktree
    from remit.parts.work.order import WorkOrder
    from remit.parts.work.pack import ContextPack
    from remit.process.child import Launch
    from remit.process.enclosure import Enclosures
    from remit.tools.door import ToolDoor

GRANT: Final = "work-run"
"""The id of the rule that lets a governed run use its tools in its worktree, for its approval says so."""
_NAME: Final = regex(r"\{([a-z]+)\}")


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of a turn, as its program gives them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


class AgentTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's own account of its turn, and that of its tools."""

    mode: Mode = "free"
    terminal: bool = True
    """True if its output holds the event that ends a turn, where it has one."""
    fault: str = ""
    """The failure that it reported."""
    denied: int = 0
    """Calls that were refused to it."""
    session: str = ""
    """Its own name for the conversation, for resuming it."""
    continues: str = ""
    """The run before, whose conversation it continued."""
    usage: TurnUsage = TurnUsage()
    version: str = ""
    """The version that its program says it is."""
    tried: str = ""
    """The version that Remit was tried with."""
    starts: tuple[str, ...] = ()
    """Files of the repository by which it would start programs, with their digests; its flags, or trust, cover them."""
    trace: str = ""
    """The session in which its calls of Remit's tools are recorded; without any, its questions."""
    asked: str = ""
    """The session in which its questions are recorded, where that is another one."""
    calls: int = 0
    """The number of those calls."""


class ProgramEnding(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program (contract: executors, `work_audit.json`)."""

    program: str
    args: tuple[str, ...]
    timeout: float
    """Seconds that it was given."""
    started: int
    """Microseconds since the Unix epoch, like `finished`."""
    finished: int
    exit_code: int | None
    """None: it could not be started."""
    timed_out: bool = False
    stopped: bool = False
    """True if it was ended by us: its own word counts for nothing then."""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    survivors: int = 0
    """Processes that its own end did not end."""
    source: str = "adapter"
    error: str = ""
    """The reason why it could not be started."""
    base: str = ""
    """The commit that it was started on."""
    refused: tuple[str, ...] = ()
    """Hosts that the sandbox did not let it reach, and why."""
    turn: AgentTurn | None = None
    """An agent's account of its turn; None for any other program."""

    @property
    def passed(self) -> bool:
        """Return whether it ended by itself and well."""
        return self.exit_code == 0 and not (self.timed_out or self.stopped)


class ExecutorOutput(Protocol):
    """Hears what is shown while an executor works."""

    def __call__(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        """Take output."""
        ...


class RunTools(Protocol):
    """Remit's tools, as they are offered to one run."""

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command of their MCP server; a program of the run starts it."""
        ...

    @property
    def session(self) -> str:
        """Return the session in which calls are recorded; empty if there was none."""
        ...

    @property
    def calls(self) -> int:
        """Return how many calls there were."""
        ...

    @property
    def denied(self) -> int:
        """Return how many of them were refused, or wait for a person."""
        ...


OpenTools = Callable[["Site"], AbstractAsyncContextManager[RunTools]]
"""Offers the tools of a run within the block. Raise ProviderError."""


class AgentConversation(msgspec.Struct, frozen=True):
    """The last turn of an agent on an issue."""

    run_id: str
    session: str
    """Its own name for the conversation."""
    mode: Mode
    version: str
    home: Path
    folder: Path
    """The worktree of that run."""
    ending: str
    """The end of the run, in words."""


class Site(NamedTuple):
    """The place where a run's work is done, and the means."""

    order: WorkOrder
    title: str
    """The issue's title."""
    tree: Worktree
    pack: ContextPack
    home: Path
    """The run's own home: nothing of the user's is in it."""
    env: Mapping[str, str]
    """The whole environment of a program there."""
    secrets: Mapping[str, str]
    """Variables, of which one holds the key of an agent's model."""
    timeout_s: float
    principal: str
    """The principal as whom the run works."""
    clock: Clock
    show: ExecutorOutput
    tools: OpenTools
    launch: Launch | None = None
    """Starts a program in the sandbox; None: with our own rights, under the reaper."""
    enclosures: Enclosures | None = None
    """The sandbox; None: the run is not in one."""
    door: ToolDoor | None = None
    """The gate, for what an agent asks; None: nothing can be asked."""
    last: AgentConversation | None = None
    """The conversation that the same agent had on this issue just before; None: it had none, or it did not end well."""

    @property
    def folder(self) -> Path:
        """The worktree."""
        return self.tree.folder

    def filled(self, words: tuple[str, ...], **more: str) -> tuple[str, ...]:
        """Return words with the names of this run in the place of `{pack}`, `{repo}`, `{issue}`, `{run}`, `{home}`."""
        names = {
            "pack": str(self.pack.folder),
            "repo": str(self.folder),
            "issue": self.order.issue_ref,
            "run": self.order.run_id,
            "home": str(self.home),
            **more,
        }
        return tuple(_NAME.sub(lambda name: names.get(name[1], name[0]), word) for word in words)


class Executor(Protocol):
    """Does the work of runs."""

    @property
    def command(self) -> tuple[str, ...]:
        """Return what is started, before the names of a run stand in it: what a person approves."""
        ...

    def require(self, env: Mapping[str, str]) -> None:
        """Raise UsageError (env_unavailable), which says what to install or to set, unless it can be started."""
        ...

    async def work(self, site: Site) -> ProgramEnding:
        """Work on the order to its end, and leave no process behind. Raise ProviderError for what stops it.

        Cancellation ends every process of it, and then goes on.
        """
        ...


def no_tools(_site: Site) -> AbstractAsyncContextManager[RunTools]:
    """Offer nothing. Raise ProviderError."""
    raise ProviderError("no tools of Remit are offered here, so nothing is governed", cause=Code.env_unavailable)
