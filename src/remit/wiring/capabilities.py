"""The parts of a process: those that ship, and those of others that a trusted folder names (rules 13 and 17).

Taking a line away here, with its part's folder, leaves a Remit without that part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from remit.capability import GROUP, Capability, resolve
from remit.codes import Code
from remit.errors import UsageError
from remit.redact import mask
from remit.settings.parts import settings_of
from remit.settings.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.metadata import EntryPoint

    import click

    from remit.capability import Check, Opening
    from remit.jobs.recipe import Recipe
    from remit.settings import Settings
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
        name="web",
        about="Search, fetch and read pages of the web.",
        providers="remit.providers.web.opening:open_web",
        provider_ids=("web", "stub_web"),
        modules=("aiohttp", "lxml_html_clean", "protego", "resiliparse", "trafilatura"),
        extra="web",
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
        about="Answer a question from files and pages of the web, with citations.",
        providers="remit.recipes.report_files:open_report",
        provider_ids=("report",),
        recipes=("remit.recipes.research_report:research_report",),
    ),
    Capability(
        name="tickets",
        about="Messages that become tool runs and replies.",
        recipes=("remit.recipes.ticket_run:ticket_run",),
    ),
)
"""The parts that ship, in the order in which their providers are asked."""
TABLES: Final = frozenset(part.name for part in FIRST_PARTY if part.settings)
"""Those with settings that remit.settings.model does not declare."""


class Found(NamedTuple):
    """A part, and where it is from."""

    name: str
    source: str
    """`remit`, or the distribution and its version; empty: it is not installed."""
    part: Capability | None
    """None: it was not loaded."""


def parts_of(settings: Settings) -> tuple[Capability, ...]:
    """The parts of a process: those that ship, and those that the settings name, which are imported now.

    Raises UsageError (MODULE_UNLOADABLE) for one that is not installed or cannot be loaded.
    """
    return (*FIRST_PARTY, *(load_part(name) for name in settings.app.capabilities))


def load_part(name: str) -> Capability:
    """A part that others made. Raises UsageError."""
    installed = _installed()
    found = [point for point in installed if point.name == name]
    if not found:
        known = ", ".join(sorted(point.name for point in installed)) or "none"
        raise _unloadable(name, f"no installed part has this name; installed: {known}", "Install it")
    if len(found) > 1 or name in {part.name for part in FIRST_PARTY}:
        raise _unloadable(name, "more than one installed part has this name", "Uninstall the others")
    part = _resolved(name, found[0].value)
    if not isinstance(part, Capability) or part.name != name:
        raise _unloadable(name, f"{found[0].value} is not a Capability of this name", "Correct the entry point")
    return part


def found_parts(settings: Settings, *, load: bool) -> list[Found]:
    """Every part that ships, is installed or is named; those of others are imported only to `load` those named.

    Raises UsageError as `parts_of` does.
    """
    installed = {point.name: point.dist for point in _installed()}
    rows = [Found(part.name, "remit", part) for part in FIRST_PARTY]
    for name in sorted({*installed, *settings.app.capabilities}):
        distribution = installed.get(name)
        source = f"{distribution.name} {distribution.version}" if distribution is not None else ""
        named = load and name in settings.app.capabilities
        rows.append(Found(name, source, load_part(name) if named else None))
    return rows


def providers_of(parts: Iterable[Capability], opening: Opening) -> Iterator[ToolProvider]:
    """The providers of parts, in their order. Raises UsageError or SettingsError."""
    for part in parts:
        if part.providers:
            own = part_settings(part, opening.settings)
            yield from _resolved(part.name, part.providers)(replace(opening, part=own))


def recipes_of(parts: Iterable[Capability]) -> tuple[Recipe[..., Any], ...]:
    """The recipes of parts, in their order. Raises UsageError."""
    return tuple(_resolved(part.name, reference) for part in parts for reference in part.recipes)


async def checks_of(parts: Iterable[Capability], settings: Settings) -> list[Check]:
    """What parts look at themselves. Raises UsageError or SettingsError."""
    found: list[Check] = []
    for part in parts:
        part_settings(part, settings)
        if part.checks:
            found += await _resolved(part.name, part.checks)(settings)
    return found


def command_of(parts: Iterable[Capability], word: str) -> click.Command | None:
    """The command of a part, if one brings a command of this name. Raises UsageError."""
    for part in parts:
        if word in part.commands:
            command: click.Command = _resolved(part.name, part.commands[word])
            return command
    return None


def part_settings(part: Capability, settings: Settings) -> Section | None:
    """A part's own settings; None if it has none. Raises UsageError or SettingsError."""
    own: Section = settings_of(settings, part.name, _resolved(part.name, part.settings) if part.settings else Section)
    return own if part.settings else None


def _installed() -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - costly, and most processes use no part of others

    return tuple(entry_points(group=GROUP))


def _resolved(name: str, reference: str) -> Any:
    try:
        return resolve(reference)
    except (Exception, SystemExit) as error:
        why = f"cannot load {reference} ({type(error).__name__}: {mask(str(error))})"
        raise _unloadable(name, why, "Correct or install what it needs") from error


def _unloadable(name: str, why: str, remedy: str) -> UsageError:
    remedy = f"{remedy}, or take {name} out of app.capabilities."
    return UsageError(f"the part {name}: {why}", code=Code.MODULE_UNLOADABLE, remedy=remedy)
