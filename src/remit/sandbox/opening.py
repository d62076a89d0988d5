"""From settings to a sandbox; nothing is looked at before the first run or probe."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.errors import SettingsError
from remit.sandbox.bwrap.driver import BwrapDriver
from remit.sandbox.capability import Isolation
from remit.sandbox.commands import Commands
from remit.sandbox.limits import Limits
from remit.sandbox.policy import SandboxPolicy
from remit.sandbox.sandbox import Sandbox
from remit.sandbox.workspaces import Workspaces

if TYPE_CHECKING:
    from remit.sandbox.driver import Driver
    from remit.settings import Settings

_DRIVERS: Final[dict[str, Callable[[Settings], Driver]]] = {
    "bwrap": lambda settings: BwrapDriver(settings.sandbox.bwrap),
}
_ROOTS: Final = Path("/var/lib/remit/sandbox")
"""Root's folders are often closed to the user that sandboxes run as."""


def open_sandbox(settings: Settings) -> Sandbox:
    """The sandbox that the settings describe."""
    given = settings.sandbox
    packages = dict(one.split("=", 1) for one in given.packages)
    return Sandbox(
        open_driver(given.driver, settings),
        policy_of(settings),
        Commands(given.commands, {name: Path(folder) for name, folder in packages.items()}),
        Workspaces(folder_of(settings)),
    )


def open_driver(name: str, settings: Settings) -> Driver:
    """The driver of a name. Raises SettingsError."""
    make = _DRIVERS.get(name)
    if make is None:
        raise SettingsError(f"there is no driver {name}", remedy=f"Set sandbox.driver to {' or '.join(_DRIVERS)}.")
    return make(settings)


def policy_of(settings: Settings) -> SandboxPolicy:
    """What the operator allows."""
    given = settings.sandbox
    return SandboxPolicy(
        min_isolation=Isolation[given.min_isolation],
        limits=Limits(**{name: getattr(given, name) for name in Limits.__struct_fields__}),
        network=given.network,
        commands=frozenset(given.commands),
    )


def folder_of(settings: Settings) -> Path:
    """Where workspaces lie."""
    if settings.sandbox.folder:
        return Path(settings.sandbox.folder)
    if os.geteuid() == 0:
        return _ROOTS / hashlib.sha256(os.fsencode(settings.folder)).hexdigest()[:16]
    return settings.folder / ".remit" / "sandbox"
