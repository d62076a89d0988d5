"""The tools of executors: their arguments, what they give, and what is said of each. Pure."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from remit.tools.meta import Level, ToolMeta
from remit.tools.toolset import declare
from remit.work.executors.acp import PERMIT
from remit.work.executors.port import Turn
from remit.work.executors.registry import MANUAL, Hand, tool_of
from remit.work.outbox.calls import PullArgs
from remit.work.result import Test, WorkResult
from remit.work.store import Verdict
from remit.work.workflow import ExecutorTable

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
    turn: Turn | None = None
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
