"""The door: how a part of Remit says what it brings, and what its providers are opened with (rules 16 and 17).

A part is a folder and one line. The line is a `Capability` that names everything by reference, `"module:name"`, so that
nothing of a part is imported before something of it is used. The parts that ship stand in remit.wiring.capabilities;
any other is an entry point of the group `remit.capabilities`, which counts where `app.capabilities` of a trusted folder
names it (rule 13).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from remit.blocking import Threads
    from remit.clock import Clock
    from remit.journal.journal import Journal
    from remit.process.enclosure import Enclosures
    from remit.randomness import RandomSource
    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.settings.section import Section
    from remit.tools.function import FunctionTool
    from remit.tools.pins import Pins
    from remit.tools.provider import ToolProvider
    from remit.tools.remote import Authorizer

    OpenProviders = Callable[["Opening"], Iterable[ToolProvider]]
    RunChecks = Callable[[Settings], Awaitable[Iterable["Check"]]]

GROUP: Final = "remit.capabilities"
"""The entry-point group of parts that others make."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One part. Every reference is `"module:name"`, and is resolved when it is used."""

    name: str
    """Lower-case letters, digits and `_`. Its settings stand in the table of this name."""
    about: str
    """One line for `remit parts`."""
    settings: str = ""
    """The reference of its `Section`; the settings that remit.settings.model declares are the core's."""
    providers: str = ""
    """The reference of a function from an `Opening` to its providers."""
    provider_ids: tuple[str, ...] = ()
    """Ids of the providers that list the same tools in every process: a recorded catalog does not stand in for them."""
    recipes: tuple[str, ...] = ()
    """References of recipes."""
    commands: Mapping[str, str] = msgspec.field(default_factory=dict)
    """References of click commands, by the word after `remit`."""
    checks: str = ""
    """The reference of a coroutine function from settings to checks, which `remit doctor` shows."""
    modules: tuple[str, ...] = ()
    """Top-level modules that it needs and that may be missing."""
    extra: str = ""
    """The extra of Remit that installs them, if one does."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of `modules` that are not installed; nothing is imported to find out."""
        return tuple(module for module in self.modules if find_spec(module) is None)


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What providers are opened with. They start nothing before they are asked for something."""

    settings: Settings
    part: Section | None = None
    """The part's own settings, if it has any."""
    tools: tuple[FunctionTool[..., Any], ...]
    """The user's functions."""
    servers: tuple[McpServer, ...]
    """The MCP servers that are not disabled."""
    pins: Pins
    journal: Journal
    """For what a part keeps in streams of its own."""
    clock: Clock
    chance: RandomSource
    threads: Threads
    """For synchronous work: so many at once as there are jobs."""
    enclosures: Enclosures
    """Runs programs in the sandbox."""
    authorizer: Authorizer | None
    """Lets a person log in where a server wants that."""
    private: tuple[Path, ...]
    """Keys, logins and what is trusted: no tool reads them."""
    decisive: tuple[Path, ...]
    """What decides about agents: no tool writes it."""


class Check(NamedTuple):
    """What one look of `remit doctor` found."""

    name: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def resolve(reference: str) -> Any:
    """The object behind `"module:name"`. Raises ImportError or AttributeError."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
