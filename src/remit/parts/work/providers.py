"""The opening of the part's providers. A project without a workflow.toml, as most are, loads nothing more for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from remit.errors import PolicyError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from remit.capability import Opening
    from remit.journal.journal import Journal
    from remit.parts.work.executors.port import RunTools, Site
    from remit.settings import Settings
    from remit.tools.provider import ToolProvider


def open_providers(opening: Opening) -> tuple[ToolProvider, ...]:
    """Return the outbox and the executors of the project folder; none if it has no workflow.toml.

    Raise PolicyError (POLICY_INVALID) for a rule with the id under which governed runs are allowed their tools.
    """
    if not opening.settings.has_file("workflow.toml"):
        return ()
    from remit.parts.work.decisions import DecisionProvider  # noqa: PLC0415 - for who has a workflow.toml
    from remit.parts.work.executors.port import GRANT  # noqa: PLC0415 - as above
    from remit.parts.work.executors.provider import ExecutorProvider  # noqa: PLC0415 - as above
    from remit.parts.work.folder import WorkFolder  # noqa: PLC0415 - as above
    from remit.parts.work.outbox.provider import OutboxProvider, OutboxRows  # noqa: PLC0415 - as above
    from remit.parts.work.outbox.remote import Pushes  # noqa: PLC0415 - as above
    from remit.parts.work.store import WorkStore  # noqa: PLC0415 - as above
    from remit.parts.work.wiring import ProjectForge  # noqa: PLC0415 - as above

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
            opening.enclosures(),
            partial(_open_tools, opening.settings, opening.journal),
            opening.door,
            lambda names: opening.skills().files(names),
            opening.front,
        ),
    )


def _open_tools(settings: Settings, journal: Journal, site: Site) -> AbstractAsyncContextManager[RunTools]:
    """Offer the tools of a governed run. Raise ProviderError."""
    from remit.parts.work.executors.desk import ToolDesk  # noqa: PLC0415 - for who governs agents

    return ToolDesk(settings, journal).open(site)
