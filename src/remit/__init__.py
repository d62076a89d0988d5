"""Remit: the runtime between an AI agent and the world.

Every name below is public and stays; everything else may move. Names are loaded when first used, so that importing the
package costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remit.version import __version__

if TYPE_CHECKING:
    from remit.app import Job, JobEndedError, Remit, run_sync
    from remit.capability import Capability, Check, Command, Look, Noun, Opening
    from remit.codes import Code
    from remit.errors import ProviderError, RemitError
    from remit.gateway.budget import Budget
    from remit.gateway.outcome import Outcome
    from remit.jobs.answers import CallError, Confirmed, ModelAnswer
    from remit.jobs.bound import RecipeCall
    from remit.jobs.recipe import Recipe, recipe
    from remit.jobs.run import Run
    from remit.models.prompt import Sampling
    from remit.service.noun_means import NounOpening
    from remit.service.options import Options
    from remit.settings import Settings
    from remit.settings.section import About, Section
    from remit.tools.function import FunctionTool, tool
    from remit.tools.meta import Level, Retry, Risk, ToolMeta
    from remit.tools.migration import Migration, migration
    from remit.tools.provider import CallContext, EvidenceCandidate, ToolProvider, ToolResult

__all__ = [
    "About",
    "Budget",
    "CallContext",
    "CallError",
    "Capability",
    "Check",
    "Code",
    "Command",
    "Confirmed",
    "EvidenceCandidate",
    "FunctionTool",
    "Job",
    "JobEndedError",
    "Level",
    "Look",
    "Migration",
    "ModelAnswer",
    "Noun",
    "NounOpening",
    "Opening",
    "Options",
    "Outcome",
    "ProviderError",
    "Recipe",
    "RecipeCall",
    "Remit",
    "RemitError",
    "Retry",
    "Risk",
    "Run",
    "Sampling",
    "Section",
    "Settings",
    "ToolMeta",
    "ToolProvider",
    "ToolResult",
    "__version__",
    "migration",
    "recipe",
    "run_sync",
    "tool",
]

_HOMES = {
    "remit.app": ("Job", "JobEndedError", "Remit", "run_sync"),
    "remit.capability": ("Capability", "Check", "Command", "Look", "Noun", "Opening"),
    "remit.codes": ("Code",),
    "remit.errors": ("ProviderError", "RemitError"),
    "remit.gateway.budget": ("Budget",),
    "remit.gateway.outcome": ("Outcome",),
    "remit.jobs.answers": ("ModelAnswer", "CallError", "Confirmed"),
    "remit.jobs.bound": ("RecipeCall",),
    "remit.jobs.recipe": ("Recipe", "recipe"),
    "remit.jobs.run": ("Run",),
    "remit.models.prompt": ("Sampling",),
    "remit.service.options": ("Options",),
    "remit.service.noun_means": ("NounOpening",),
    "remit.settings": ("Settings",),
    "remit.settings.section": ("About", "Section"),
    "remit.tools.function": ("FunctionTool", "tool"),
    "remit.tools.meta": ("Level", "Retry", "Risk", "ToolMeta"),
    "remit.tools.migration": ("Migration", "migration"),
    "remit.tools.provider": ("CallContext", "EvidenceCandidate", "ToolProvider", "ToolResult"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_RENAMED = {"Bound": "RecipeCall"}
"""Names of the last release, with today's: they go with the next one."""


def __getattr__(name: str) -> Any:
    today = _RENAMED.get(name, name)
    module = _HOME_OF.get(today)
    if module is None:
        msg = f"module 'remit' has no attribute {name!r}"
        raise AttributeError(msg)
    if today != name:
        import warnings  # noqa: PLC0415 - only where an old name is used

        warnings.warn(f"remit.{name} is now remit.{today}", DeprecationWarning, stacklevel=2)
    from importlib import import_module  # noqa: PLC0415 - only what is used is loaded

    value = getattr(import_module(module), today)
    globals()[today] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
