"""The state that commands share: the global options, the settings they lead to, and a Remit opened with them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, Unpack

from remit.cli import exit_codes
from remit.cli.output import Color, TerminalOutput, reserved_stdout
from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.redact import mask

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened
    from remit.settings import Settings
    from remit.tools.provider import ToolProvider
    from remit.wiring.runtime import Report

T = TypeVar("T")
R = TypeVar("R")

MEMORY: Final = ":memory:"
_EMPTY: Final = ":memory:?mode=ro"
"""Stands in for a journal that is not there (see the SQLite backend)."""
_NO_SERVERS: Final[dict[str, Any]] = {"servers": (), "servers_json": "", "server_cmd": "", "server_name": ""}
_NAMED: Final = frozenset({"command line", "REMIT_JOURNAL", "REMIT_JOURNAL_URL"})
"""Sources of journal.url by which a person says which journal is meant, and not where one is to be made."""
Requirement = Literal["needed", "wanted", "recorded", "described", "unused"]
"""The need that a command has of the user's modules and servers: without `needed`, a module that cannot be imported
does not stop it; `recorded` uses the catalog as it was last listed, and says if it never was; `described` uses it to
describe calls, without a word and without rules. The last three import no module and start no server.
"""


class OpenArguments(TypedDict, total=False):
    """The arguments of `State.open`."""

    code: Requirement
    writes: bool
    servers: bool
    creates: bool
    blank: bool
    flags: dict[str, Any] | None


class CommandState:
    """The global options of this process, and what follows from them."""

    def __init__(self) -> None:
        self.journal: str | None = None
        self.server = ""
        """The URL of the server that commands are sent to; empty: they work on a journal here."""
        self.config: Path | None = None
        self.modules: list[str] = []
        """Python files that the person named: imported beside the modules of the settings where those are."""
        self.catalog: Path | None = None
        """The file that the tools are taken from, instead of the catalog as it was last listed."""
        self.knows_tools = True
        """False once the tools of modules and servers were wanted as they were last listed, and never were."""
        self.search = True
        """True if a remit.toml counts that is not named, because the command is run below it."""
        self.trust = False
        """True if whatever the folder holds is trusted for this command."""
        self.principal: str | None = None
        self.color: Color | None = None
        self.quiet = False
        self.verbose = 0
        self.reported = ""
        """The part of Remit whose failures the command itself reports."""
        self.logs = 0
        """The level of logging without -v."""
        self.as_json = False
        self.output = TerminalOutput(_color_of(os.environ))
        self._ignored: list[str] = []
        """The settings of an untrusted folder that the person was told of."""

    def set_color(self, color: Color | None) -> None:
        """Take the option for colour, which wins over everything else."""
        self.color = color
        if color is not None:
            self.output.set_color(color)

    def settings(
        self, flags: dict[str, Any] | None = None, doubted: Collection[str] = (), file: Path | None = None
    ) -> Settings:
        """The settings, with the global options over them; trusted or not. Raises SettingsError.

        What the file says of the keys in `doubted` does not count. It is `file`, or the one that the options lead to.
        """
        import remit.wiring.sections  # noqa: F401 - declares the settings of the parts that ship
        from remit.settings import load

        options = {"journal.url": self.journal, "app.principal": self.principal, "output.color": self.color}
        settings = load(
            cwd=Path.cwd(),
            file=file or self.config,
            env=os.environ,
            flags={**options, **(flags or {})},
            search=self.search,
            doubted=doubted,
            guarded=not self.trust,
        )
        self.output.set_color(settings.output.color)
        return settings

    def remit(
        self,
        *,
        code: Requirement = "needed",
        writes: bool = False,
        servers: bool = False,
        creates: bool = False,
        blank: bool = False,
        report: Report | None = None,
        flags: dict[str, Any] | None = None,
    ) -> Remit:
        """A Remit over the chosen journal that does not work by itself.

        Raise UsageError (LOCAL_ONLY) if commands are to be sent to a server, and SettingsError (FOLDER_NOT_TRUSTED) if
        the command runs what an untrusted folder names, or writes (`writes`, `creates`), or talks to MCP servers
        (`servers`). Other commands leave out what the folder would have to be trusted for.

        Without `creates`, a journal that does not exist yet is looked at as an empty one, and not made: whatever would
        write to it raises JournalError (JOURNAL_MISSING). If the person named it, that needs `blank`: else raise
        NotFoundError (JOURNAL_MISSING).
        """
        from remit.app import Remit
        from remit.cli.logs import log_as_json, log_to_stderr

        if self.server:
            raise not_there()
        log_to_stderr(max(self.verbose, self.logs), self.reported)
        runs = code in {"needed", "wanted"}
        settings = self.trusted(flags) if runs or writes or creates or servers else self.looked_at(flags)
        if settings.output.log == "json":
            log_as_json()
        if runs:
            settings = self.with_modules(settings)
        if not creates and (path := settings.journal.file) is not None and not path.exists():
            if not blank and (source := settings.sources["journal.url"]) in _NAMED:
                raise _missing(path, source)
            settings = _with(settings, "journal", url=_EMPTY)
        if code in {"wanted", "described", "unused"}:
            settings = _with(settings, "policy", rules=())
        if not runs or not self._import(settings, code):
            settings = _with(settings, "app", modules=(), capabilities=())
        if not runs and not servers:
            settings = _with(settings, "mcp", **_NO_SERVERS)
        recorded = self._recorded(settings, code) if code in {"recorded", "described"} else ()
        return Remit(settings=settings, work=False, report=report, providers=recorded)

    def with_modules(self, settings: Settings) -> Settings:
        """The settings with the modules that the person named."""
        if not self.modules:
            return settings
        named = (str(Path(name).absolute()) for name in self.modules)
        return _with(settings, "app", modules=tuple(dict.fromkeys((*settings.app.modules, *named))))

    def trusted(self, flags: dict[str, Any] | None = None) -> Settings:
        """The settings of a folder that is trusted, or is so now by an answer at the terminal. Raises SettingsError."""
        from remit.cli.trust_question import insist, standing_of

        settings = self.settings(flags)
        insist(self.output, standing_of(settings, trusted=self.trust), silent=self.as_json)
        return settings

    def looked_at(self, flags: dict[str, Any] | None = None) -> Settings:
        """The settings, without what an untrusted folder would have to be trusted for. Raises SettingsError."""
        from remit.cli.trust_question import standing_of

        settings = self.settings(flags)
        trust_state = standing_of(settings, trusted=self.trust)
        if trust_state.settings_trusted:
            return settings
        if trust_state.keys != self._ignored:  # a command may look more than once
            self.note(trust_state.ignored)
        self._ignored = trust_state.keys
        believed = self.settings(flags, doubted=trust_state.keys)
        return _with(believed, "journal", url=_EMPTY) if trust_state.linked else believed

    def open(
        self,
        *,
        code: Requirement = "needed",
        writes: bool = False,
        servers: bool = False,
        creates: bool = False,
        blank: bool = False,
        flags: dict[str, Any] | None = None,
    ) -> Opened:
        """Return what the command works on: the server if one was named, else `remit(…)` with the same arguments.

        Raise UsageError (LOCAL_ONLY) for `flags` beside a server: they are settings of a journal here.
        """
        if not self.server:
            return self.remit(code=code, writes=writes, servers=servers, creates=creates, blank=blank, flags=flags)
        if flags:
            raise not_there()
        from remit.cli.logs import log_to_stderr
        from remit.client.remote import RemoteRemit

        log_to_stderr(max(self.verbose, self.logs), self.reported)
        if self.principal is not None:
            from remit.client.connection import only_oneself

            only_oneself(self.principal)
        return RemoteRemit(self.server)

    def ask(self, work: Callable[[Opened], Awaitable[T]], **how: Unpack[OpenArguments]) -> T:
        """Return what `work` returns of what the command works on; `how` it is opened is as for `open`."""
        return self._use(lambda: self.open(**how), work)

    def ask_here(self, work: Callable[[Remit], Awaitable[T]], **how: Unpack[OpenArguments]) -> T:
        """Return what `work` returns of a Remit over a journal here; `how` it is opened is as for `remit`."""
        return self._use(lambda: self.remit(**how), work)

    def _use(self, opened: Callable[[], AbstractAsyncContextManager[R]], work: Callable[[R], Awaitable[T]]) -> T:
        from remit.cli.runner import run_to_end

        async def used() -> T:
            async with opened() as remit:
                return await work(remit)

        return run_to_end(used())

    def command(self, *words: str, module: str = "") -> str:
        """A command to suggest, with the global options that lead to the same journal; with one more `module`."""
        options = []
        if self.server and self.server != os.environ.get("REMIT_SERVER"):
            options += ["--server", self.server]
        if self.config is not None:
            options += ["--config", str(self.config)]
        if self.journal is not None:
            options += ["--journal", mask(self.journal)]
        for name in dict.fromkeys((*self.modules, module) if module else self.modules):
            options += ["--module", name]
        return shlex.join(["remit", *options, *words])

    def listing(self, rows: list[T], printer: Callable[[CommandState, list[T]], None], nothing: str) -> int:
        """Print a list: as JSON where that is wanted, by `printer`, or as the note `nothing` if it is empty."""
        if rows or self.as_json:
            return self.show(rows, printer)
        self.note(nothing)
        return exit_codes.OK

    def show(self, value: T, printer: Callable[[CommandState, T], None]) -> int:
        """Print what a command found: as JSON where that is wanted, else by `printer`."""
        if self.as_json:
            self.output.json(value)
        else:
            printer(self, value)
        return exit_codes.OK

    def done(self, value: object, words: str) -> int:
        """Print what a command did: `value` as JSON where that is wanted, else the words."""
        out = self.output.out
        return self.show(value, lambda _state, _value: out.line(f"{out.style('ok', 'ok')} {words}"))

    def note(self, text: str) -> None:
        """Tell people something, on stderr; not where only the result is wanted."""
        if not self.quiet and not self.as_json:
            self.output.err.line(text)

    def _recorded(self, settings: Settings, code: Requirement) -> Iterable[ToolProvider]:
        """Return what stands in for the tools of modules and servers: the catalog as it was last listed."""
        from remit.cli.catalog_record import exported, recorded
        from remit.wiring.providers import stand_ins_of

        catalog = recorded(settings) if self.catalog is None else exported(self.catalog)
        if catalog is None and code == "recorded" and self._has_own_tools():
            self.knows_tools = False
            self.note("only built-in tools are known here: run `remit tools` once to record yours for this command")
        return stand_ins_of(catalog.tools if catalog is not None else ())

    def _has_own_tools(self) -> bool:
        settings = self.settings()
        return bool(self.modules or settings.app.modules or settings.mcp.servers)

    def _import(self, settings: Settings, code: Requirement) -> bool:
        """Import the user's modules, once; whether that went well. What they print must not mix with the result."""
        from remit.service.modules import find

        try:
            with reserved_stdout():
                find(settings.app.modules, settings.folder)
                for name in self.modules:
                    for recipe in find([str(Path(name).absolute())], settings.folder).recipes:
                        recipe.file = str(Path(name).resolve())  # no setting names it: its jobs have to
        except UsageError as error:
            if code == "needed":
                raise
            self.note(f"continuing without your modules: {error.message}")
            return False
        return True


def not_there(what: str = "journal") -> UsageError:
    """The refusal of a command that cannot be sent to a server, because it needs `what` here."""
    reason = f"this command needs a local {what}; it does not work through a server"
    remedy = f"Run it on the machine with the {what}, without --server and REMIT_SERVER."
    return UsageError(reason, code=Code.LOCAL_ONLY, remedy=remedy)


def _missing(path: Path, source: str) -> NotFoundError:
    """Refuse to look at a journal that a person named and that is not there: none of its news is no good news."""
    name = "--journal" if source == "command line" else source
    remedy = f"Correct {name}. The first `remit run`, `worker` or `serve` with it creates the journal."
    return NotFoundError(f"there is no journal {path} ({name})", code=Code.JOURNAL_MISSING, remedy=remedy)


def _with(settings: Settings, section: str, **values: Any) -> Settings:
    import msgspec

    changed = msgspec.structs.replace(getattr(settings, section), **values)
    return msgspec.structs.replace(settings, **{section: changed})


def _color_of(env: os._Environ[str]) -> Color:
    """Return the colour by the environment alone, for words before the settings are known or where they are wrong."""
    modes: dict[str, Color] = {"always": "always", "never": "never"}
    if env.get("REMIT_OUTPUT_COLOR") in modes:
        return modes[env["REMIT_OUTPUT_COLOR"]]
    return "never" if env.get("NO_COLOR") else "always" if env.get("FORCE_COLOR") else "auto"
