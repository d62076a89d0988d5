"""The facts of a tool before it is called."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Final, Literal

import msgspec

JsonSchema = dict[str, Any]

DEFAULT_TIMEOUT_MS: Final = 30_000


class Level(IntEnum):
    """The part of the world that a tool can touch (contract: tools)."""

    L0 = 0
    """Reads only."""
    L1 = 1
    """Writes."""
    L2 = 2
    """Executes, uses the network or a command line; needs isolation."""


class Risk(StrEnum):
    """The traces that a call may leave behind."""

    READ_ONLY = "read_only"
    WRITE = "write"
    UNKNOWN = "unknown"


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed call is tried again; used only where a repetition is safe (rule 3)."""

    attempts: int = 3
    """Calls in all, the first included."""
    first_delay_ms: int = 200
    factor: float = 2.0
    max_delay_ms: int = 30_000

    def delay_ms(self, failed_attempts: int) -> int:
        """Milliseconds to wait after so many failed attempts (1 = the first failed)."""
        return min(self.max_delay_ms, int(self.first_delay_ms * self.factor ** (failed_attempts - 1)))


class ToolMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as its provider lists it (contract: tools, "Providers and the catalog").

    Every default is the worst case, so that an unannotated tool is treated as one (rule 8).
    """

    name: str
    """Full dotted name in the catalog, such as `fs.read`."""
    provider_id: str
    alias: str = ""
    """Another name by which rules know it, which several tools may share, such as `agent.shell`; empty: it has none."""
    description: str = ""
    input_schema: JsonSchema | None = None
    output_schema: JsonSchema | None = None
    capability_level: Level = Level.L2
    risk_level: Risk = Risk.UNKNOWN
    side_effects: bool = True
    idempotent: bool = False
    """True if a repetition with the same idempotency key changes nothing more."""
    requires_confirm: bool = True
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    budget: dict[str, int] | None = None
    """`max_steps`, `max_calls` and `max_wall_ms`, as `remit.tools.budget` has them."""
    version: str = ""
    retry: Retry | None = None
    isolation: str = ""
    """The isolation: `none`, it runs in this process; `unprotected`, likewise, and that is meant so; `sandbox`, it runs
    in the sandbox; empty: as its provider does, in this process or as an MCP server.
    """
    output_trusted: bool | Literal["always"] = False
    """Whether what it returns is as good as a word of the person whose task it serves, if what went in is, or in any
    case (docs/untrusted.md).
    """
    requires: tuple[str, ...] = ()
    """Keys of the dependencies that must be ready before a call."""
    definition: JsonSchema | None = None
    """The tool exactly as its owner describes it to MCP clients, if it is an MCP server's."""
    open: bool = False
    """True if its owner also takes arguments that the schema does not declare, so that they are no mistakes here."""
    withheld: str = ""
    """The reason why its provider withholds it, with what to do as the last sentence; it is then quarantined."""
    unchecked: tuple[str, ...] = ()
    """Places of its owner's schemas with a regular expression that cannot be run here: only the owner checks it."""

    @property
    def repeatable(self) -> bool:
        """Return whether an attempt without a known outcome may be made again (rule 3)."""
        return self.idempotent or not self.side_effects

    @property
    def attempts(self) -> int:
        """Most calls in all, the first one included."""
        return self.retry.attempts if self.retry is not None and self.repeatable else 1

    @property
    def side_effect(self) -> Literal["read", "write", "unknown"]:
        """`read`, `write` or `unknown`, as step reports name it."""
        if not self.side_effects:
            return "read"
        return "write" if self.risk_level is Risk.WRITE else "unknown"
