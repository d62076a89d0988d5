"""The opening of the part's noun, and of the forge that it writes to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.control import ControlPlane
from remit.parts.work.folder import WorkFolder
from remit.parts.work.noun import WorkNoun
from remit.parts.work.runs import ProjectRuns, RunsOpening
from remit.parts.work.stage import StagedRuns, StagedWrite
from remit.parts.work.store import WorkStore
from remit.parts.work.workflow import OutboxTable, read_workflow
from remit.settings.principal import principal

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.parts.work.outbox.port import Forge
    from remit.service.noun_means import NounOpening
    from remit.settings import Settings


class ProjectForge:
    """The outbox of workflow.toml and its forge, opened when it is used, and again when the table changes."""

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self._journal = journal
        self._settings = settings
        self._opened: tuple[OutboxTable, Forge] | None = None

    def __call__(self) -> tuple[OutboxTable, Forge]:
        """Return both. Raise UsageError (WORK_INVALID)."""
        table = read_workflow(self._settings).outbox
        if self._opened is None or self._opened[0] != table:
            self._opened = (table, self._forge(table))
        return self._opened

    def _forge(self, table: OutboxTable) -> Forge:
        if table.backend == "local":
            from remit.parts.work.outbox.local import LocalForge  # noqa: PLC0415 - who looks writes to no forge

            return LocalForge(self._journal, principal(self._settings))
        try:
            from remit.parts.work.outbox.forges import open_forge  # noqa: PLC0415 - an extra, for who has a forge
        except ModuleNotFoundError as error:
            remedy = "pip install 'remit[serve]'"
            raise UsageError(f"a forge needs {error.name}", code=Code.WORK_INVALID, remedy=remedy) from error
        return open_forge(table, os.environ, self._journal.clock)


def open_work(opening: NounOpening) -> WorkNoun:
    """Return the noun."""
    service, settings = opening.service, opening.parts.settings
    journal = opening.parts.journal
    store, root = WorkStore(journal), WorkFolder(settings)
    means = RunsOpening(
        store, service.jobs, lambda: service.sessions, opening.principal, root, settings.folder, opening.worker
    )
    runs, forge = ProjectRuns(means), ProjectForge(journal, settings)
    control = ControlPlane(runs, forge, settings, opening.principal)

    def copy(writes: list[StagedWrite]) -> WorkNoun:
        staged = StagedRuns(means, writes, opening.parts.catalog, forge)
        return WorkNoun(staged, service.jobs, control, opening.principal, settings, copy)

    return WorkNoun(runs, service.jobs, control, opening.principal, settings, copy)
