"""The opening of the part: its providers, and its noun."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from remit.codes import Code
from remit.errors import PolicyError, UsageError
from remit.parts.work.control import ControlPlane
from remit.parts.work.folder import WorkFolder
from remit.parts.work.noun import Work
from remit.parts.work.runs import Runs, RunsOpening
from remit.parts.work.stage import StagedRuns, StagedWrite
from remit.parts.work.store import WorkStore
from remit.parts.work.workflow import OutboxTable, has_workflow, read_workflow
from remit.settings.principal import principal

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from remit.capability import Opening
    from remit.journal.journal import Journal
    from remit.parts.work.executors.port import Site, Tools
    from remit.parts.work.outbox.port import Forge
    from remit.service.noun_means import NounOpening
    from remit.settings import Settings
    from remit.tools.provider import ToolProvider


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


def open_providers(opening: Opening) -> tuple[ToolProvider, ...]:
    """Return the outbox and the executors of the project folder; none if it has no workflow.toml.

    Raise PolicyError (POLICY_INVALID) for a rule with the id under which governed runs are allowed their tools.
    """
    if not has_workflow(opening.settings):
        return ()
    from remit.parts.work.decisions import DecisionProvider  # noqa: PLC0415 - who looks calls none of its tools
    from remit.parts.work.executors.port import GRANT  # noqa: PLC0415 - as above
    from remit.parts.work.executors.provider import ExecutorProvider  # noqa: PLC0415 - as above
    from remit.parts.work.outbox.provider import OutboxProvider, OutboxRows  # noqa: PLC0415 - as above
    from remit.parts.work.outbox.remote import Pushes  # noqa: PLC0415 - as above

    if any(rule.get("id") == GRANT for rule in opening.settings.policy.rules):
        remedy = "Give the rule another id: decisions about governed runs are recorded under this one."
        raise PolicyError(f'the rule id "{GRANT}" is taken by the approval of runs', remedy=remedy)
    store = WorkStore(opening.journal)
    project = ProjectForge(opening.journal, opening.settings)
    return (
        OutboxProvider(
            project,
            OutboxRows(opening.journal),
            store.confirm_written,
            store.comment,
            Pushes(opening.settings, store),
        ),
        DecisionProvider(store),
        ExecutorProvider(
            opening.settings,
            WorkFolder(opening.settings),
            store,
            opening.clock,
            opening.enclosures,
            partial(_open_tools, opening.settings, opening.journal),
            opening.door,
            lambda names: opening.skills().files(names),
        ),
    )


def _open_tools(settings: Settings, journal: Journal, site: Site) -> AbstractAsyncContextManager[Tools]:
    """Offer the tools of a governed run. Raise ProviderError."""
    from remit.parts.work.executors.desk import Desk  # noqa: PLC0415 - for who governs agents

    return Desk(settings, journal).open(site)


def open_work(opening: NounOpening) -> Work:
    """Return the noun."""
    service, settings = opening.service, opening.parts.settings
    journal = opening.parts.journal
    store, root = WorkStore(journal), WorkFolder(settings)
    means = RunsOpening(
        store, service.jobs, lambda: service.sessions, opening.principal, root, settings.folder, opening.worker
    )
    runs, forge = Runs(means), ProjectForge(journal, settings)
    control = ControlPlane(runs, forge, settings, opening.principal)

    def copy(writes: list[StagedWrite]) -> Work:
        staged = StagedRuns(means, writes, opening.parts.catalog, forge)
        return Work(staged, service.jobs, control, opening.principal, settings, copy)

    return Work(runs, service.jobs, control, opening.principal, settings, copy)
