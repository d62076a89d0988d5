"""Asks the person at the terminal whether the folder is trusted, before anything of it is run or believed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remit.cli.output import clean, one_line
from remit.clock import SystemClock

if TYPE_CHECKING:
    from remit.cli.output import TerminalOutput
    from remit.settings import Settings
    from remit.trust.state import FolderTrust, Register


def register() -> Register:
    """Return what this user trusts."""
    from remit.settings.places import data_folder
    from remit.trust.state import Register

    return Register(data_folder(os.environ) / "trust")


def standing_of(settings: Settings, *, trusted: bool) -> FolderTrust:
    """Return how the folder of these settings stands; `trusted`: nothing is left to ask, as with REMIT_TRUST."""
    from remit.settings.loader import TRUST
    from remit.trust.state import standing

    return standing(settings, register(), {**os.environ, TRUST: "1"} if trusted else os.environ)


def insist(output: TerminalOutput, folder_trust: FolderTrust, *, silent: bool) -> None:
    """Ask once at a terminal, unless `silent`. Raises SettingsError (FOLDER_NOT_TRUSTED) unless the answer is yes."""
    from remit.trust.state import trust, untrusted

    if folder_trust.trusted:
        return
    if silent or not output.interactive or not agreed(output, folder_trust):
        raise untrusted(folder_trust)
    trust(folder_trust, register(), edits=False, now=SystemClock().now())


def agreed(output: TerminalOutput, trust: FolderTrust) -> bool:
    """Show all that there is to trust, and take an answer; anything but yes is no.

    Raises SettingsError if a file was changed meanwhile.
    """
    from remit.cli.terminal import forget_typed, interruptible

    err = output.err
    show(output, trust)
    forget_typed()
    err.stream.write(err.style("Do you trust this? yes or no: ", "bold"))
    err.flush()
    with interruptible():
        is_yes = sys.stdin.readline().strip().lower() in {"y", "yes"}
    if is_yes:
        trust.unchanged(os.environ)
    return is_yes


@contextmanager
def still_trusted(load: Callable[[], Settings], *, trusted: bool) -> Iterator[None]:
    """Change the settings file within the block: if it was trusted before, or was not there, it is trusted after.

    `load` gives the settings as they are.
    """
    from remit.trust.state import trust

    before = standing_of(load(), trusted=trusted)
    yield
    after = standing_of(load(), trusted=trusted)
    if before.settings_trusted and not after.settings_trusted:
        edits = before.trusted_file is not None and before.trusted_file.edits
        trust(msgspec.structs.replace(after, journal=None), register(), edits=edits, now=SystemClock().now())


def show(output: TerminalOutput, trust: FolderTrust) -> None:
    """All that there is to trust, on stderr, every line whole."""
    err = output.err
    err.line(err.style(f"{one_line(str(trust.settings.folder))} is not trusted yet.", "bold", "yellow"))
    if trust.changed:
        names = ", ".join(one_line(_near(name, trust.settings.folder)) for name in trust.changed)
        err.line(f"  changed since you trusted it: {names}")
    if trust.settings.file is not None and trust.owner != os.getuid():
        err.line(f"  {trust.settings.file.name} belongs to another user (uid {trust.owner})")
    for line in lines(trust):
        err.line("  " + clean(line).replace("\n", "\\n"))


def lines(trust: FolderTrust) -> list[str]:
    """Return what there is to trust, one thing a line."""
    claims = [] if trust.settings_trusted else [f"It would {claim.text}" for claim in trust.claims]
    if trust.journal is not None:
        place = _near(str(trust.journal), trust.settings.folder)
        claims.append(f"It brings the journal {place}: jobs and approvals in it would count")
    return claims


def _near(name: str, folder: Path) -> str:
    path = Path(name)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else name
