"""The door: how a part of Remit says what it brings, and what its providers are opened with (rules 16 and 17).

A part is a folder whose `CAPABILITIES` say what it brings. A `Capability` names everything by reference,
`"module:name"`, so that nothing of a part is imported before something of it is used. The parts that ship are the
folders of remit.parts; any other is an entry point of the group `remit.capabilities`, which counts where
`app.capabilities` of a trusted folder names it (rule 13).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from remit.clock import Clock
    from remit.errors import RemitError
    from remit.journal.journal import Journal
    from remit.process.enclosure import Enclosures
    from remit.randomness import RandomSource
    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.settings.section import Section
    from remit.threads import Threads
    from remit.tools.door import ToolDoor
    from remit.tools.front import Front
    from remit.tools.function import FunctionTool
    from remit.tools.pins import Pins
    from remit.tools.provider import ToolProvider
    from remit.tools.remote import Authorizer

    OpenProviders = Callable[["Opening"], Iterable[ToolProvider]]
    RunChecks = Callable[["Look"], Awaitable[Iterable["Check"]]]

GROUP: Final = "remit.capabilities"
"""The entry-point group of parts that others make."""


class Noun(NamedTuple):
    """A noun of the service; its operations (remit.operation) are routes, requests of a twin, and `remit api`."""

    name: str
    """Its name in the service, such as `tickets`."""
    kind: str
    """The reference of its class."""
    open: str
    """The reference of a function from a remit.service.parts.NounOpening to it."""
    remote: str = ""
    """The reference of its twin, if some of its methods need more than their request (remit.client.twin)."""


class Command(NamedTuple):
    """A command of the command line."""

    word: str
    """The word after `remit`; of a part that ships also two, the first of which is a group of the core."""
    about: str
    """One line; the same as the first one of its own help."""
    command: str
    """The reference of the click command or group."""
    section: str = "Operate"
    """The section in which `remit --help` lists it."""


class Capability(NamedTuple):
    """One part. Every reference is `"module:name"`, and is resolved when it is used."""

    name: str
    """Lower-case letters, digits and `_`. Its settings stand in the table of this name."""
    about: str
    """One line for `remit parts`."""
    settings: str = ""
    """The reference of its `Section`. Of a part that ships it is read with the core's own, when settings are loaded."""
    files: Mapping[str, str] = {}
    """References of the structs of the settings files that it reads in a project beside remit.toml, by the name of the
    file. `acts` of a struct says what such a file's bytes would do that needs trust, as the ends of "It would …".
    """
    providers: str = ""
    """The reference of a function from an `Opening` to its providers."""
    provider_ids: tuple[str, ...] = ()
    """Ids of the providers that list the same tools in every process: a recorded catalog does not stand in for them."""
    tools: bool = False
    """Whether its providers list the same tools in every process: `listing.json` in its folder has them (`make tables`
    writes it), and the providers are opened with the first call."""
    offers: str = ""
    """The reference of a function from an `Opening` and those tools to the ones of this process, where settings leave
    some out, or change something other than their words and schemas. Raises SettingsError."""
    unlisted: str = ""
    """The reference of a function that returns the tools (`ToolMeta`) which no catalog lists and rules may name."""
    skills: str = ""
    """The reference of a function from the `Parts` of a process and its settings to its `Skills`; of one part."""
    encloses: str = ""
    """The reference of a function from settings to the `Enclosures` that servers and functions run in; of one part."""
    fronts: str = ""
    """The reference of a function from an `Opening` to the `Front` before the models of programs that providers run;
    None: they ask their providers themselves. Of one part."""
    recipes: tuple[str, ...] = ()
    """References of recipes; each is named by its function, so that it is loaded when it is used."""
    inner_recipes: tuple[str, ...] = ()
    """Names of those that its own commands start, rather than people."""
    nouns: tuple[Noun, ...] = ()
    routes: str = ""
    """The reference of a tuple of `remit.api.route.Route`: operations that are more than a method of a noun.

    One of a part that ships takes the place of the core's of its name.
    """
    kinds: Mapping[str, str] = {}
    """References of `Payload` classes, by the kind of event."""
    queues: tuple[str, ...] = ()
    """Kinds of streams that workers lease, for the gauges of `/metrics`."""
    works: str = ""
    """The reference of a function from an open `Remit`, the event that ends it and its role (`serve`, `worker`) to the
    `Upkeep` beside `remit serve` or `remit worker`; None if there is nothing to do there. Raises SettingsError."""
    sends: str = ""
    """The reference of a function from an open `Remit` to an asynchronous context manager: within it, what a process
    records that works or serves is sent elsewhere."""
    commands: tuple[Command, ...] = ()
    pages: str = ""
    """The reference of a tuple of `remit.pages.page.Page`. Its templates lie in `templates` beside that module."""
    serves: str = ""
    """The reference of a function from an open `Remit` and the Guard of its server to the `Mount`s
    (remit.http.router) that `remit serve` answers at beside its own. Raises SettingsError."""
    people: str = ""
    """The reference of a function from the `Parts` of a process to the `People` (remit.http.people) who log in at a
    provider; None: no one does. Raises SettingsError. Of one part."""
    stand_ins: str = ""
    """The reference of a function from the `Parts` of a process to a remit.gateway.confirmations.FindStandIns; None: no
    one stands in for another. Raises SettingsError. Of one part."""
    reads: str = ""
    """The reference of a function from the `Parts` of a process to a remit.http.reader.Reader, which is told of every
    answer to a GET request before it leaves; None: it wants to be told of none."""
    engine: str = ""
    """The reference of a function from a remit.engines.port.Work, settings and the part's own to the Engine that places
    jobs where `jobs.engine` names the part. Raises SettingsError."""
    replays: str = ""
    """The reference of a function from a command's State, a job, the words of a program and `ReplayTerms` to an exit
    status: it runs the program on what is recorded of one, for `remit replay JOB -- COMMAND`; of one part."""
    rereads: str = ""
    """The reference of a coroutine function from a journal and a job to each `Reread` of what the part recorded there,
    for `remit check`."""
    verifies: str = ""
    """The reference of a function from a journal, the part's settings and a remit.service.verification.Elsewhere to a
    `Verifier` there, to which `remit verify` shows every stream."""
    checks: str = ""
    """The reference of a coroutine function from a `Look` to checks, which `remit doctor` shows."""
    formats: str = ""
    """The reference of a function from a file, and where its issuer's keys are, to an `Answer` (remit.evidence.answer)
    for `remit verify FILE`; None: the file has none of the part's formats."""
    outputs: str = ""
    """The reference of a function from a file to a coroutine function, from the service of the journal that it is
    compared with to an `Answer`, for `remit verify FILE`; None: the part's recipes write no such file."""
    modules: tuple[str, ...] = ()
    """Top-level modules that it needs and that may be missing."""
    extra: str = ""
    """The extra of Remit that installs them, if one does."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of `modules` that are not installed; nothing is imported to find out."""
        from importlib.util import find_spec  # noqa: PLC0415 - only a look at the parts needs it

        return tuple(module for module in self.modules if find_spec(module) is None)

    @property
    def references(self) -> tuple[str, ...]:
        """Every reference of the part."""
        opened = (
            self.settings,
            self.providers,
            self.offers,
            self.unlisted,
            self.skills,
            self.encloses,
            self.people,
            self.stand_ins,
        )
        others = (self.reads, self.engine, self.replays, self.rereads, self.verifies, self.checks, self.formats)
        single = (*opened, self.routes, self.works, self.sends, self.serves, self.pages, self.outputs, *others)
        nouns = (reference for noun in self.nouns for reference in (noun.kind, noun.open, noun.remote))
        commands = (command.command for command in self.commands)
        every = (*single, *self.files.values(), *self.recipes, *nouns, *self.kinds.values(), *commands)
        return tuple(reference for reference in every if reference)


class Opening(NamedTuple):
    """The means that providers are opened with. They start nothing before they are asked for something."""

    settings: Settings
    tools: tuple[FunctionTool[..., Any], ...]
    """The user's functions."""
    servers: tuple[McpServer, ...]
    """The MCP servers that are not disabled."""
    pins: Pins
    journal: Journal
    """The journal, for what a part keeps in streams of its own."""
    clock: Clock
    chance: RandomSource
    threads: Threads
    """The threads for synchronous work: so many at once as there are jobs."""
    enclosures: Callable[[], Enclosures]
    """Returns what runs programs in the sandbox."""
    skills: Callable[[], Any]
    """Returns what knows the skills of the process (remit.jobs.skills.Skills); ask once providers are open."""
    authorizer: Authorizer | None
    """Lets a person log in where a server wants that."""
    door: ToolDoor
    """Makes calls through the gate for programs that a provider runs."""
    private: tuple[Path, ...]
    """Keys, logins and what is trusted: no tool reads them."""
    decisive: tuple[Path, ...]
    """Files that decide about agents: no tool writes it."""
    front: Callable[[], Front | None]
    """Returns what stands before the models of programs; None: nothing does."""
    part: Section | None = None
    """The part's own settings, if it has any."""


class Upkeep(NamedTuple):
    """The work of a part beside a server or a worker; whatever ends it, it begins again."""

    probe: str
    """Its name in `/health`."""
    run: Callable[[Callable[[str], object]], Coroutine[Any, Any, None]]
    """Works until it is cancelled. It is given a function that takes why it cannot, for `/health`; empty: it can."""


class ReplayTerms(NamedTuple):
    """The terms on which a program is run on the record of one."""

    results: str
    """`strict`: what its tools return has to be as recorded; `drift`: it is compared, and told; `governed`: Remit's
    tools return what is recorded, and nothing is called."""
    fork_at: int
    """The question from which on models are asked; 0: none is."""


class Reread(NamedTuple):
    """A part of the record of which today's code makes something else."""

    step: str
    about: str
    recorded: str
    current: str


class Look(NamedTuple):
    """The subject of a check of `remit doctor`."""

    settings: Settings
    open: Callable[[], AbstractAsyncContextManager[Any]]
    """Opens a `Remit` over the journal, without tools and modules; raises JournalError."""
    live: bool = False
    """Whether programs may be started to look."""


class Check(NamedTuple):
    """The finding of one look of `remit doctor`."""

    name: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""
    code: str = ""
    """The code of the error that it is; empty: it is no error of Remit."""

    @classmethod
    def failed(cls, name: str, error: RemitError, remedy: str = "") -> Check:
        """Return the finding that an error is; `remedy` if that says none."""
        return cls(name, "fail", error.message, error.remedy or remedy, error.code.name)


def kinds_of(module: str, noun: str, ends: str) -> dict[str, str]:
    """Return the references of the kinds `NOUN_END` in a module, whose classes bear the same names."""
    return {f"{noun}_{end}": f"{module}:{f'{noun}_{end}'.title().replace('_', '')}" for end in ends.split()}


def resolve(reference: str) -> Any:
    """The object behind `"module:name"`. Raises ImportError or AttributeError."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
