"""The facts that a decision is made from, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from remit.tools.meta import ToolMeta

Effect = Literal["allow", "ask", "deny"]
CallerKind = Literal["job", "plan", "session", "ticket", "http", "mcp"]

EFFECTS: Final[tuple[Effect, ...]] = ("allow", "ask", "deny")
Taint = Literal["allow", "ask", "strict", "deny"]
"""The treatment of calls with arguments from untrusted text; `strict` asks, and looks at every argument."""
TAINTS: Final[tuple[Taint, ...]] = ("allow", "ask", "strict", "deny")
"""From the weakest to the strictest."""
CALLER_KINDS: Final[tuple[CallerKind, ...]] = ("job", "plan", "session", "ticket", "http", "mcp")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and from where."""

    principal: str
    kind: CallerKind
    recipe: str = ""
    """The recipe whose job asks; empty outside jobs."""
    stream: str = ""
    """The journal stream the call is recorded in."""


class Unknown:
    """The value that is unknown."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call beside itself, as far as a rule about its tool asks for it."""

    input: Any = UNKNOWN
    """The input of the job that calls."""
    seen: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The last result of each tool to the same job, by its full name."""
    taken: Mapping[str, tuple[int, Decimal]] | None = None
    """Calls and their sum, by the key of a limit; a key that is missing stands for nothing. None: unknown."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One call, before it runs."""

    tool: ToolMeta | None
    """None: no provider offers a tool of this name."""
    key: str
    """The tool's server-level key (contract: tickets, "Names"), or the name that was asked for."""
    args: dict[str, Any]
    caller: Caller
    contract_hash: str = ""
    """The hash of the tool's contract today; a remembered approval bound to another one does not count."""
    prompt_hash: str = ""
    """The hash of the text that a model reads of the tool today."""
    now: int = 0
    """Microseconds since the Unix epoch; 0 is unknown, and then no remembered approval counts."""
    facts: Facts | None = None
    """None: none were looked up."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a call, with the rule that gave it and the reason for people."""

    effect: Effect
    rule_id: str
    """A configured rule's id, `default:<which>`, `remembered:<id>`, or an overlay's, such as `job:<id>`; `taint:<id>`
    where a rule's `taint` decided.

    A configured id never contains a colon.
    """
    reason: str
    approvals: int = 1
    """The number of different people that must approve; with two or more, the requester is not among them."""
    approvers: tuple[str, ...] = ()
    """The people who may decide, if it asks; empty is anyone who may decide at all."""
    expires_s: int | None = None
    """Seconds that the question stays open, if it asks; None is the configured default."""
    until: int | None = None
    """The end of the remembered approval that allows it, in microseconds since the Unix epoch."""
    doubt: bool = False
    """True if it asks for it is unknown whether a deny rule forbids the call. No remembered approval answers that."""
