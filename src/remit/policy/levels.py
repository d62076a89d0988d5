"""The decision on a call that no rule speaks about: reading runs, everything else asks, the unknown is refused.

What a provider does not say counts as the worst case (rule 8): a tool whose risk is unknown is treated as level L2,
and one that claims to be read-only while it admits side effects as L1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from remit.policy.decision import Decision
from remit.policy.globs import name_matches
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import MODEL

DEFAULTS_VERSION: Final = 1
"""Raised whenever a default below changes; part of every policy hash."""
_MODELS: Final = f"{MODEL}."

UNKNOWN_TOOL: Final = Decision(
    effect="deny", rule_id="default:unknown-tool", reason="No provider offers this tool, and what is unknown is denied."
)
_READS: Final = Decision(effect="allow", rule_id="default:L0", reason="The tool only reads.")
_CONFIRM: Final = Decision(
    effect="ask", rule_id="default:confirm", reason="The tool only reads but demands a confirmation."
)
_WRITES: Final = Decision(effect="ask", rule_id="default:L1", reason="The tool writes, and no rule allows this call.")
_EXECUTES: Final = Decision(
    effect="ask",
    rule_id="default:L2",
    reason="The tool executes, uses the network or does not say what it does, and no rule allows this call.",
)
_MODEL: Final = Decision(
    effect="allow", rule_id="default:model", reason="The run, or the settings, name the model that is asked."
)
DEFAULTS: Final = (_READS, _CONFIRM, _WRITES, _EXECUTES, _MODEL, UNKNOWN_TOOL)
"""Every default there is."""


def effective_level(tool: ToolMeta) -> Level:
    """The level a tool is treated as: its own, or a stricter one that follows from the rest of what it says."""
    if tool.risk_level is Risk.UNKNOWN:
        return Level.L2
    if tool.risk_level is Risk.WRITE or tool.side_effects:
        return max(tool.capability_level, Level.L1)
    return tool.capability_level


def exposed(tool: ToolMeta, unprotected: Iterable[str]) -> bool:
    """Say whether a tool executes in this very process without leave: neither it nor one of these patterns says so."""
    bare = tool.isolation == "none" and effective_level(tool) is Level.L2
    return bare and not any(name_matches(pattern, tool.name) for pattern in unprotected)


def default_for(tool: ToolMeta | None) -> Decision:
    """The decision where no rule matches."""
    if tool is None:
        return UNKNOWN_TOOL
    if tool.name.startswith(_MODELS):
        return _MODEL
    level = effective_level(tool)
    if level is Level.L0:
        return _CONFIRM if tool.requires_confirm else _READS
    return _WRITES if level is Level.L1 else _EXECUTES
