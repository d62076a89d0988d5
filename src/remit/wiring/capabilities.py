"""The parts of a process: those that ship, and those of others that a trusted folder names (rules 13 and 17).

Taking a line away here, with its part's folder, leaves a Remit without that part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from remit.capability import Capability, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remit.capability import Opening
    from remit.jobs.recipe import Recipe
    from remit.tools.provider import ToolProvider

FIRST_PARTY: Final = (
    Capability(
        name="fs",
        about="Read and write files below the folders that you opened to agents.",
        providers="remit.providers.fs.provider:open_files",
        provider_ids=("builtin",),
        checks="remit.providers.fs.checks:check_folders",
    ),
    Capability(
        name="folder",
        about="Search and read the text files of a folder.",
        providers="remit.providers.folder.provider:open_search",
        provider_ids=("folder",),
    ),
    Capability(
        name="functions",
        about="Your own functions as tools.",
        providers="remit.providers.functions.provider:open_functions",
    ),
    Capability(
        name="sandbox",
        about="Run programs where they can do no harm.",
        providers="remit.providers.sandbox.provider:open_sandbox_tools",
        provider_ids=("sandbox",),
        recipes=("remit.recipes.run_code_snippet:run_code_snippet",),
    ),
    Capability(
        name="mcp",
        about="The tools of MCP servers.",
        providers="remit.providers.mcp.opening:open_servers",
        modules=("mcp",),
        extra="mcp",
    ),
    Capability(
        name="agents",
        about="Agents: a model that works with tools until it is done.",
        recipes=(
            "remit.recipes.agent:agent",
            "remit.recipes.ask_model:ask_model",
            "remit.recipes.conversation:conversation",
        ),
        modules=("aiohttp",),
        extra="models",
    ),
    Capability(
        name="research_report",
        about="Answer a question from a folder of documents, with citations.",
        recipes=("remit.recipes.research_report:research_report",),
    ),
    Capability(
        name="tickets",
        about="Messages that become tool runs and replies.",
        recipes=("remit.recipes.ticket_run:ticket_run",),
    ),
)
"""The parts that ship, in the order in which their providers are asked."""


def providers_of(parts: Iterable[Capability], opening: Opening) -> Iterator[ToolProvider]:
    """The providers of parts, in their order."""
    for part in parts:
        if part.providers:
            yield from resolve(part.providers)(opening)


def recipes_of(parts: Iterable[Capability]) -> tuple[Recipe[..., Any], ...]:
    """The recipes of parts, in their order."""
    return tuple(resolve(reference) for part in parts for reference in part.recipes)
