"""From settings to a sandbox; nothing is looked at before the first run or probe."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.parts.sandbox.commands import Commands, Finder, ImageCommands
from remit.parts.sandbox.driver import Isolation
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.settings import SandboxSettings, require_hosts
from remit.process.enclosure import RunLimits
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.parts.sandbox.driver import Driver
    from remit.parts.sandbox.enclosure import SandboxEnclosures
    from remit.parts.sandbox.sandbox import Sandbox
    from remit.settings import Settings

_ROOTS: Final = Path("/var/lib/remit/sandbox")
"""Root's folders are often closed to the user that sandboxes run as."""


def own_settings(settings: Settings) -> SandboxSettings:
    """Return the section of the sandbox."""
    return settings_of(settings, "sandbox", SandboxSettings)


def open_sandbox(settings: Settings) -> Sandbox:
    """The sandbox that the settings describe."""
    from remit.parts.sandbox.sandbox import Sandbox  # noqa: PLC0415 - few processes run something there
    from remit.parts.sandbox.workspaces import Workspaces  # noqa: PLC0415 - the same

    sandbox_settings = own_settings(settings)
    folder = folder_of(settings)
    driver = open_driver(sandbox_settings.driver, sandbox_settings, folder)
    return Sandbox(driver, policy_of(sandbox_settings), finder_of(sandbox_settings), Workspaces(folder))


def open_enclosures(settings: Settings) -> SandboxEnclosures:
    """Return what runs the operator's own tools and servers in the sandbox, with a driver of its own."""
    from remit.parts.sandbox.enclosure import SandboxEnclosures  # noqa: PLC0415 - few processes run something there

    sandbox_settings = own_settings(settings)
    return SandboxEnclosures(open_sandbox(settings), finder_of(sandbox_settings), folder_of(settings))


def open_driver(name: str, settings: SandboxSettings, folder: Path | None = None) -> Driver:
    """The driver of a name; sandboxes that are started ahead have their workspaces below `folder`, if it is given."""
    return DRIVERS[name](settings, folder)


def policy_of(settings: SandboxSettings) -> SandboxPolicy:
    """Return what the operator allows. Raises SettingsError."""
    require_hosts(settings)
    return SandboxPolicy(
        min_isolation=Isolation[settings.min_isolation],
        limits=RunLimits(**{name: getattr(settings, name) for name in RunLimits.__struct_fields__}),
        network=settings.network,
        commands=frozenset(settings.commands),
    )


def folder_of(settings: Settings) -> Path:
    """Return where workspaces lie."""
    if own := own_settings(settings).folder:
        return Path(own)
    if os.geteuid() == 0:
        return _ROOTS / hashlib.sha256(os.fsencode(settings.folder)).hexdigest()[:16]
    return settings.folder / ".remit" / "sandbox"


def finder_of(settings: SandboxSettings) -> Finder:
    """Return what finds the programs of the driver that the settings choose."""
    if settings.driver == "container":
        return ImageCommands()
    return Commands(settings.commands, {name: Path(folder) for name, folder in _pairs(settings.packages).items()})


def _pairs(words: tuple[str, ...]) -> Mapping[str, str]:
    return dict(word.split("=", 1) for word in words)


def _bwrap(settings: SandboxSettings, folder: Path | None) -> Driver:
    from remit.parts.sandbox.bwrap.driver import BwrapDriver  # noqa: PLC0415 - a process uses one driver at most

    return BwrapDriver(settings.bwrap, settings.warm, folder / "warm" if folder is not None else None)


def _container(settings: SandboxSettings, _folder: Path | None) -> Driver:
    from remit.parts.sandbox.container import ContainerDriver  # noqa: PLC0415 - the same

    return ContainerDriver(settings.container_program, settings.container_image, settings.container_runtime)


DRIVERS: Final[dict[str, Callable[[SandboxSettings, Path | None], Driver]]] = {
    "bwrap": _bwrap,
    "container": _container,
}
"""The function that makes each driver, by its name in the settings."""
