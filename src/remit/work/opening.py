"""The opening of the part: its providers, and its noun."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.settings.principal import principal
from remit.work.executors.provider import ExecutorProvider
from remit.work.noun import Work
from remit.work.outbox.local import LocalForge
from remit.work.outbox.provider import OutboxProvider
from remit.work.store import WorkStore
from remit.work.workflow import FILE

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.service.opening import NounOpening
    from remit.settings import Settings
    from remit.tools.provider import ToolProvider


_ROOTS: Final = Path("/var/lib/remit/work")


def open_providers(opening: Opening) -> tuple[ToolProvider, ...]:
    """Return the outbox and the executors of the project folder; none if it has no workflow.toml."""
    if not (opening.settings.folder / FILE).is_file():
        return ()
    store = WorkStore(opening.journal)
    forge = LocalForge(opening.journal, principal(opening.settings))
    return (
        OutboxProvider(forge, store.confirm_written),
        ExecutorProvider(opening.settings.folder, root_of(opening.settings), store, opening.clock, opening.enclosures),
    )


def root_of(settings: Settings) -> Path:
    """Return where packs and worktrees lie: where the user of the sandbox can reach them, if Remit runs as root."""
    if settings.sandbox.folder:
        return Path(settings.sandbox.folder) / "work"
    if os.geteuid() == 0:
        return _ROOTS / sha256(os.fsencode(settings.folder)).hexdigest()[:16]
    return settings.folder / ".remit" / "work"


def open_work(opening: NounOpening) -> Work:
    """Return the noun."""
    service, settings = opening.service, opening.parts.settings
    return Work(
        opening.parts.journal,
        service.jobs,
        service.sessions,
        opening.principal,
        settings.folder,
        root_of(settings),
    )
