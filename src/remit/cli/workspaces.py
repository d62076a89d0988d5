"""The workspaces that lie here, and whose they are, for `remit sandbox workspaces` and `clean`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError
from remit.sandbox.leftovers import delete
from remit.sandbox.opening import folder_of
from remit.sandbox.watching import size_of
from remit.sandbox.workspaces import Workspace, Workspaces

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.service.service import Service

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class WorkspaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace."""

    job: str
    """The job or session that it belongs to; empty: not known."""
    state: str
    """The job's state, `session`, or `unknown` if this journal has no such job."""
    bytes: int
    files: int
    used_at: int
    """Microseconds since the Unix epoch."""
    folder: str
    deletable: bool
    """Whether its job has ended, or it is a session's, and it was not used for long enough."""


async def listed(remit: Remit, days: int, *, unknown: bool) -> list[tuple[Workspace, WorkspaceRow]]:
    """Every workspace; those unused for `days` can be deleted, of unknown jobs only if `unknown`."""
    settings, now = remit.settings, remit.clock.now()
    return [
        (one, await _row(one, remit.service, now - days * 24 * 3_600_000_000, unknown=unknown))
        for one in Workspaces(folder_of(settings)).all()
    ]


async def _row(one: Workspace, service: Service, before: int, *, unknown: bool) -> WorkspaceRow:
    kind, _, name = one.conversation.partition("/")
    state = kind if kind in {"session", "call"} else "unknown"
    if kind == "job":
        try:
            state = (await service.jobs.row(name)).state
        except NotFoundError as error:
            if error.code is not Code.JOB_NOT_FOUND:
                raise
    size, files = size_of(one.folder)
    used = one.used_ns // 1_000
    over = state in _ENDED or state in {"session", "call"} or (unknown and state == "unknown")
    return WorkspaceRow(
        job=name,
        state=state,
        bytes=size,
        files=files,
        used_at=used,
        folder=str(one.folder),
        deletable=over and used <= before,
    )


def deleted(one: Workspace) -> bool:
    """Delete a workspace unless someone uses it at this moment."""
    with one.locked() as ours:
        if ours:
            delete(one.folder)
    return ours
