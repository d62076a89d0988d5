"""The parts of a process: those that ship, and those of others that a trusted folder names (rules 13 and 17)."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from remit.capability import GROUP, Capability, resolve
from remit.codes import Code
from remit.errors import SettingsError, UsageError
from remit.jobs.skills import NO_SKILLS
from remit.journal.kinds import declare
from remit.process.enclosure import NoEnclosures
from remit.redact import mask
from remit.settings.parts import settings_of
from remit.settings.section import Section
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    import click

    from remit.capability import Check, Look, Noun, Opening, ReplayTerms, Upkeep
    from remit.engines.local import LocalEngine
    from remit.engines.port import Work
    from remit.evidence.answer import CheckAnswer
    from remit.gateway.confirmations import FindStandIns
    from remit.http.guard import Guard
    from remit.http.people import People
    from remit.http.reader import Reader
    from remit.http.router import PartMount
    from remit.jobs.recipe import Recipe
    from remit.jobs.skills import Skills
    from remit.process.enclosure import Enclosures
    from remit.service.parts import Parts
    from remit.settings import Settings
    from remit.tools.front import Front
    from remit.tools.meta import ToolMeta
    from remit.tools.provider import ToolProvider


class KnownPart(msgspec.Struct, frozen=True):
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
    points = [point for point in installed if point.name == name]
    if not points:
        known = ", ".join(sorted(point.name for point in installed)) or "none"
        raise _unloadable(name, f"no installed part has this name; installed: {known}", "Install it")
    if len(points) > 1 or name in {part.name for part in FIRST_PARTY}:
        raise _unloadable(name, "more than one installed part has this name", "Uninstall the others")
    part = _resolved(name, points[0].value)
    if not isinstance(part, Capability) or part.name != name:
        raise _unloadable(name, f"{points[0].value} is not a Capability of this name", "Correct the entry point")
    for kind in part.kinds:
        check_names(part, f"the kind of event {kind}", kind, f"{name}_")
    declare(part.kinds)
    return part


def check_names(part: Capability, what: str, name: str, prefix: str) -> None:
    """Raise UsageError (MODULE_UNLOADABLE) if something of a part does not bear the part's name."""
    if not name.startswith(prefix):
        raise _unloadable(part.name, f"{what} does not begin with {prefix}", "Correct it")


def found_parts(settings: Settings, *, load: bool) -> list[KnownPart]:
    """Every part that ships, is installed or is named; those of others are imported only to `load` those named.

    Raises UsageError as `parts_of` does.
    """
    installed = {point.name: point.dist for point in _installed()}
    rows = [KnownPart(part.name, "remit", part) for part in FIRST_PARTY]
    for name in sorted({*installed, *settings.app.capabilities}):
        distribution = installed.get(name)
        source = f"{distribution.name} {distribution.version}" if distribution is not None else ""
        named = load and name in settings.app.capabilities
        rows.append(KnownPart(name, source, load_part(name) if named else None))
    return rows


def named_parts(parts: Sequence[Capability], names: Sequence[str]) -> Sequence[Capability]:
    """Those of these parts that are named; all of them without a name. Raises SettingsError for an unknown name."""
    known = {part.name for part in parts}
    for name in names:
        if name not in known:
            reason = f"tools.only names {name}, and there is no such part"
            raise SettingsError(reason, remedy=f"There are {', '.join(sorted(known))}.")
    return [part for part in parts if part.name in names] if names else parts


def providers_of(parts: Iterable[Capability], opening: Opening) -> Iterator[ToolProvider]:
    """The providers of parts, in their order. Raises UsageError or SettingsError.

    Of a part whose tools are the same in every process, they are opened with the first call.
    """
    from remit.wiring.listing import providers_on_use  # noqa: PLC0415 - for who needs tools

    for part in parts:
        if part.tools:
            offers = _resolved(part.name, part.offers) if part.offers else None
            yield from providers_on_use(part, opening, partial(opened_providers, part, opening), offers)
        elif part.providers:
            yield from opened_providers(part, opening)


def opened_providers(part: Capability, opening: Opening) -> Iterable[ToolProvider]:
    """Return the providers of a part, open. Raises UsageError or SettingsError."""
    providers: Iterable[ToolProvider] = _resolved(part.name, part.providers)(
        opening._replace(part=part_settings(part, opening.settings))
    )
    return providers


def enclosures_of(parts: Iterable[Capability], settings: Settings) -> Enclosures:
    """Return what runs programs enclosed: the first part's that can. Raises UsageError or SettingsError."""
    for part in parts:
        if part.encloses:
            enclosures: Enclosures = _resolved(part.name, part.encloses)(settings)
            return enclosures
    return NoEnclosures()


def front_of(parts: Iterable[Capability], opening: Opening) -> Front | None:
    """Return what stands before the models of programs: the first part's that does, and whose modules are there.

    Raise UsageError or SettingsError.
    """
    for part in parts:
        if part.fronts and not part.missing:
            front: Front | None = _resolved(part.name, part.fronts)(
                opening._replace(part=part_settings(part, opening.settings))
            )
            return front
    return None


def unlisted_of(parts: Iterable[Capability]) -> tuple[ToolMeta, ...]:
    """Return the tools of parts that no catalog lists and rules may name. Raises UsageError."""
    return tuple(tool for part in parts if part.unlisted for tool in _resolved(part.name, part.unlisted)())


def skills_of(parts: Iterable[Capability], opened: Parts) -> Skills:
    """Return what knows the skills of a process: the first part's that does. Raises UsageError or SettingsError."""
    for part in parts:
        if part.skills:
            skills: Skills = _resolved(part.name, part.skills)(opened, part_settings(part, opened.settings))
            return skills
    return NO_SKILLS


def people_of(parts: Iterable[Capability], opened: Parts) -> People | None:
    """Return everyone who logs in, as the first part says where they do. Raises UsageError or SettingsError."""
    openers = (_resolved(part.name, part.people) for part in parts if part.people)
    return next((people for people in (opener(opened) for opener in openers) if people is not None), None)


def stand_ins_of(parts: Iterable[Capability], opened: Parts) -> FindStandIns | None:
    """Return who stands in for whom, as the first part says; None: no one does. Raises UsageError or SettingsError."""
    openers = (_resolved(part.name, part.stand_ins) for part in parts if part.stand_ins)
    return next((stand_in for stand_in in (opener(opened) for opener in openers) if stand_in is not None), None)


def engine_of(parts: Iterable[Capability], settings: Settings, work: Work) -> LocalEngine:
    """Open what places jobs: the local engine, or the part's that `jobs.engine` names. Raises SettingsError."""
    from remit.engines.local import LocalEngine  # noqa: PLC0415 - who looks places no jobs

    jobs = settings.jobs
    part = engine_part(parts, jobs.engine)
    if part is None:
        return LocalEngine(work, concurrency=jobs.concurrency, lease_s=jobs.lease_seconds, settings=settings.written)
    engine: LocalEngine = _resolved(part.name, part.engine)(work, settings, part_settings(part, settings))
    return engine


def engine_part(parts: Iterable[Capability], name: str) -> Capability | None:
    """Return the part whose engine has this name; None: it is the local one. Raise SettingsError."""
    if name == "local":
        return None
    engines = {part.name: part for part in parts if part.engine}
    if name not in engines:
        raise SettingsError(
            f"jobs.engine: no engine is named {name!r}", remedy=f"Engines: {', '.join(['local', *engines])}."
        )
    part = engines[name]
    if part.missing:
        reason = f"jobs.engine is {name}, and {', '.join(part.missing)} is not installed"
        raise SettingsError(reason, remedy=f"Install it: pip install 'remit[{part.extra or name}]'.")
    return part


def recipes_of(parts: Iterable[Capability]) -> dict[str, Callable[[], Recipe[..., Any]]]:
    """Return what loads each recipe of parts, by its name; it raises UsageError, as this does for a name of two."""
    loaders: dict[str, Callable[[], Recipe[..., Any]]] = {}
    for part in parts:
        for reference in part.recipes:
            name = reference.rpartition(":")[2]
            if name in loaders:
                raise _unloadable(part.name, f"another part has a recipe {name}, too", "Rename the recipe")
            loaders[name] = partial(_recipe, part.name, reference)
    return loaders


def _recipe(part: str, reference: str) -> Recipe[..., Any]:
    loaded: Recipe[..., Any] = _resolved(part, reference)
    if loaded.name != reference.rpartition(":")[2]:  # it would be listed, and not there
        reason = f"{reference} is the recipe {loaded.name}"
        raise _unloadable(part, reason, f"Name its function {loaded.name}")
    return loaded


async def checks_of(parts: Iterable[Capability], look: Look) -> list[Check]:
    """Return what parts look at themselves. Raises UsageError or SettingsError."""
    checks: list[Check] = []
    for part in parts:
        part_settings(part, look.settings)
        if part.checks:
            checks += await _resolved(part.name, part.checks)(look)
    return checks


def answer_of(parts: Iterable[Capability], file: Path, keys: Path | None) -> CheckAnswer | None:
    """Return what the first part that knows a file's format says of it. Raise UsageError, and OSError."""
    for part in parts:
        answer: CheckAnswer | None = _resolved(part.name, part.formats)(file, keys) if part.formats else None
        if answer is not None:
            return answer
    return None


def replayer_of(parts: Iterable[Capability]) -> Callable[[Any, str, tuple[str, ...], ReplayTerms], int] | None:
    """Return what runs a program on the record of one; None if no part does. Raise UsageError."""
    for part in parts:
        if part.replays:
            replayer: Callable[[Any, str, tuple[str, ...], ReplayTerms], int] = _resolved(part.name, part.replays)
            return replayer
    return None


def comparison_of(parts: Iterable[Capability], file: Path) -> Callable[[Any], Awaitable[CheckAnswer]] | None:
    """Return what compares a file with the record, of the first part whose recipes write such files. Raise OSError."""
    for part in parts:
        look = _resolved(part.name, part.outputs) if part.outputs else None
        compare: Callable[[Any], Awaitable[CheckAnswer]] | None = look(file) if look else None
        if compare is not None:
            return compare
    return None


def command_of(parts: Iterable[Capability], word: str) -> click.Command | None:
    """The command of a part, if one brings a command of this name. Raises UsageError."""
    for part in parts:
        for command in part.commands:
            if command.word == word:
                click_command: click.Command = _resolved(part.name, command.command)
                return click_command
    return None


def works_of(parts: Iterable[Capability], remit: Any, stop: asyncio.Event, role: str) -> list[Upkeep]:
    """Return what parts do beside `remit serve` or `remit worker`, until `stop`. Raises UsageError or SettingsError."""
    works = (_resolved(part.name, part.works)(remit, stop, role) for part in parts if part.works)
    return [work for work in works if work is not None]


@asynccontextmanager
async def sending_of(parts: Iterable[Capability], remit: Any) -> AsyncIterator[None]:
    """Let parts send elsewhere what is recorded within the block. Raises UsageError."""
    async with AsyncExitStack() as stack:
        for part in parts:
            if part.sends:
                await stack.enter_async_context(_resolved(part.name, part.sends)(remit))
        yield


def mounts_of(parts: Iterable[Capability], remit: Any, guard: Guard) -> list[PartMount]:
    """Return what parts answer at paths of their own in a server. Raises UsageError or SettingsError."""
    return [
        mount
        for part in parts
        if part.serves and not part.missing
        for mount in _resolved(part.name, part.serves)(remit, guard)
    ]


def readers_of(parts: Iterable[Capability], opened: Parts) -> tuple[Reader, ...]:
    """Return what parts tell of every answer over HTTP. Raises UsageError or SettingsError."""
    readers = (_resolved(part.name, part.reads)(opened) for part in parts if part.reads)
    return tuple(reader for reader in readers if reader is not None)


def tuples_of(parts: Iterable[Capability], field: Literal["routes", "pages"]) -> Iterator[Any]:
    """The routes or the pages of parts, in their order. Raises UsageError."""
    for part in parts:
        if reference := getattr(part, field):
            yield from _resolved(part.name, reference)


def nouns_of(parts: Iterable[Capability]) -> Iterator[tuple[Noun, type]]:
    """The nouns of parts with their classes, in their order. Raises UsageError."""
    for part in parts:
        for noun in part.nouns:
            yield noun, _resolved(part.name, noun.kind)


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
        reason = f"cannot load {reference} ({type(error).__name__}: {mask(str(error))})"
        raise _unloadable(name, reason, "Correct or install what it needs") from error


def _unloadable(name: str, reason: str, remedy: str) -> UsageError:
    remedy = f"{remedy}, or take {name} out of app.capabilities."
    return UsageError(f"the part {name}: {reason}", code=Code.MODULE_UNLOADABLE, remedy=remedy)
