"""The executors of a project, by name: those of workflow.toml, and the coding agents that Remit knows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.parts.work.executors.acp import KNOWN, PREFIX, AcpExecutor
from remit.parts.work.executors.cli import CliExecutor
from remit.parts.work.executors.port import Executor
from remit.parts.work.executors.program import ProgramExecutor
from remit.parts.work.executors.rows import CLIS, Cli
from remit.parts.work.unit import MANUAL, TOOLS
from remit.parts.work.workflow import ExecutorTable, Workflow
from remit.redact import line
from remit.tools.front import ServedModel


class Hand(NamedTuple):
    """An executor, and the terms on which it works."""

    name: str
    table: ExecutorTable
    executor: Executor
    cli: Cli | None = None
    """The agent, if its command line is known."""

    def model(self, env: Mapping[str, str]) -> ServedModel | None:
        """Return where its model is served; None: that is not known, or not told it by an address.

        Raise ProviderError for a budget that nothing would hold.
        """
        table, cli = self.table, self.cli
        budget = {name: value for name, value in (("tokens", table.tokens), ("cost", table.cost)) if value}
        if cli is None or not (table.base_url or cli.maker_wire):
            if budget:
                reason = f"[executors.{self.name}] tokens and cost: nothing is known of how it asks its model"
                raise ProviderError(reason, cause=Code.WORK_INVALID)
            return None
        return ServedModel(cli.wire, table.base_url, env.get(self.key, ""), budget, gated=self.gated)

    @property
    def key(self) -> str:
        """Return the variable that holds the key of its model."""
        return self.table.key or (self.cli.key if self.cli is not None else "")

    @property
    def gated(self) -> bool:
        """Return whether it has no tools but Remit's."""
        return (self.table.mode or ("ask" if isinstance(self.executor, AcpExecutor) else "governed")) == "governed"

    def behind(self, url: str) -> Hand:
        """Return it as one whose model is served there, and that reaches no other from the sandbox."""
        if self.cli is None:
            return self
        own = _hosts(self.table, self.cli)
        network = tuple(host for host in self.table.network if host not in own)
        table = replace(self.table, base_url=url, network=(*network, urlsplit(url).netloc))
        asks = isinstance(self.executor, AcpExecutor)
        speaker = AcpExecutor(self.name, self.executor.command, table, self.cli) if asks else None
        return self._replace(table=table, executor=speaker or CliExecutor(self.cli, table))


def hand_of(workflow: Workflow, name: str) -> Hand:
    """Return an executor by its name. Raise UsageError (WORK_INVALID) for one that is not known.

    A table of workflow.toml comes before an agent that is known by its name. `acp:NAME` is an agent that speaks the
    protocol, on the terms of `[executors.NAME]` if there are any; a table with `protocol = "acp"` is called NAME alone.
    """
    name = workflow.executor_name(name)
    speaks, _, plain = name.rpartition(":")
    if (fault := workflow.faults.get(plain)) is not None:
        raise UsageError(f"workflow.toml: {fault}", code=Code.WORK_INVALID, remedy="docs/work.md shows every key.")
    table = workflow.executors.get(plain)
    if f"{speaks}:" == PREFIX and plain in KNOWN:
        return _asking(name, plain, table or ExecutorTable(agent=plain))
    if table is not None and table.protocol == "acp" and not speaks:
        return _asking(name, plain, table)
    table = table or (ExecutorTable(agent=name) if name in CLIS else None)
    if table is None or speaks:
        known = ", ".join(sorted({*workflow.executors, *CLIS, MANUAL, *(f"{PREFIX}{each}" for each in KNOWN)}))
        reason = f"there is no executor {line(name, 60)}"
        raise UsageError(reason, code=Code.WORK_INVALID, remedy=f"There are: {known}; workflow.toml names others.")
    if not (table.agent or table.program):
        if name not in CLIS:
            reason = f"workflow.toml: [executors.{name}] names neither a program nor an agent"
            raise UsageError(reason, code=Code.WORK_INVALID, remedy=f"Known agents: {', '.join(CLIS)}.")
        table = replace(table, agent=name)
    if not table.agent:
        return Hand(name, table, ProgramExecutor((table.program, *table.args)))
    cli = CLIS.get(table.agent)
    if cli is None:
        reason = f"workflow.toml: [executors.{name}] agent: none is known that is called {line(table.agent, 60)}"
        raise UsageError(reason, code=Code.WORK_INVALID, remedy=f"Known: {', '.join(CLIS)}.")
    return Hand(name, replace(table, network=table.network or _hosts(table, cli)), CliExecutor(cli, table), cli)


def _asking(name: str, plain: str, table: ExecutorTable) -> Hand:
    """Return an agent that speaks the protocol, with the command of a known one where the table gives none."""
    known = KNOWN.get(table.agent or plain, ())
    own = table.protocol == "acp" or known[:1] == (plain,)
    program = (table.program if own else "") or "".join(known[:1])
    if not program:
        remedy = f"Give its program, or one of these agents: {', '.join(KNOWN)}."
        raise UsageError(
            f"workflow.toml: [executors.{plain}] names no agent that is known", code=Code.WORK_INVALID, remedy=remedy
        )
    args = table.args if table.protocol == "acp" and table.args else known[1:]
    cli = CLIS.get(table.agent or plain)
    if cli is not None:
        table = replace(table, network=table.network or _hosts(table, cli))
    return Hand(name, table, AcpExecutor(name, (program, *args), table, cli), cli)


def hands_of(workflow: Workflow) -> list[Hand]:
    """Return every executor of a project that can be used, and the agents that are installed."""
    own = [hand for name in workflow.executors if name != MANUAL and (hand := _usable(workflow, name)) is not None]
    names = [cli.name for cli in CLIS.values() if "governed" in cli.args] + [f"{PREFIX}{name}" for name in KNOWN]
    agents = (_usable(workflow, name) for name in names if workflow.executor_name(name) not in workflow.executors)
    return [*own, *(hand for hand in agents if hand is not None and shutil.which(hand.executor.command[0]) is not None)]


def faults_of(workflow: Workflow) -> list[str]:
    """Return what is wrong with tables of `[executors]`: each takes down itself alone."""
    return [fault for name in (*workflow.faults, *workflow.executors) if (fault := _fault(workflow, name))]


def _usable(workflow: Workflow, name: str) -> Hand | None:
    return None if _fault(workflow, name) is not None else hand_of(workflow, name)


def _fault(workflow: Workflow, name: str) -> str | None:
    try:
        hand_of(workflow, name)
    except UsageError as error:
        place = "" if "[executors." in error.message else f"[executors.{name}]: "
        return f"{place}{error.message}"
    return None


def name_of(tool: str) -> str:
    """Return the name of the executor whose tool this is."""
    return tool.removeprefix(TOOLS).replace(".", ":")


def _hosts(table: ExecutorTable, cli: Cli) -> tuple[str, ...]:
    """Return the hosts that an agent reaches from the sandbox: those of its model."""
    return (urlsplit(table.base_url).netloc,) if table.base_url else cli.hosts
