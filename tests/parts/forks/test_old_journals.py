"""Jobs of every journal that an older Remit wrote are forked, replayed and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit import Remit
from remit.codes import Code
from remit.errors import RemitError
from remit.parts.forks.forks import Forked
from remit.settings import load
from tests.record.old import world
from tests.record.old.golden import NAMES, unpack

RECIPES = (world.acts, world.greet, world.newer)
_REFUSED = {Code.JOB_NOT_REPLAYABLE, Code.PAYLOAD_ERASED, Code.UNKNOWN_RECIPE, Code.JOURNAL_MOVED}
"""Codes with which a job of these journals may not be forked: it is a session, was erased, or its recipe is gone."""


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forked")
    unpack(folder)
    return folder


def old(journal: Path) -> Remit:
    """The journal, with the tools and recipes of its time; it works on nothing."""
    settings = load(cwd=journal.parent, file=None, env={}, flags={**world.FLAGS, "journal.url": str(journal)})
    return Remit(settings=settings, tools=world.TOOLS, recipes=RECIPES, work=False)


async def verdict(remit: Remit, job: str) -> str:
    """How the code of today follows a job's record; the code of why it cannot."""
    try:
        return str((await remit.service.jobs.replay(job, anyway=True)).verdict)
    except RemitError as error:
        return error.code.name


async def forked(remit: Remit, job: str, step: str) -> Forked | Code:
    """A fork; the code with which it was refused."""
    try:
        made: Forked = await remit.service.forks.make(job, step, repeat=True)
    except RemitError as error:
        return error.code
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_old_jobs_are_forked_replayed_and_compared(journals: Path, name: str) -> None:
    async with old(journals / f"{name}.db") as remit:
        for row in await remit.service.jobs.rows(limit=100):
            before = await verdict(remit, row.job)
            steps = list((await remit.service.jobs.history(row.job)).places)
            for step in dict.fromkeys(("", *steps[:1], *steps[-1:])):
                made = await forked(remit, row.job, step)
                if isinstance(made, Code):
                    assert made in _REFUSED
                    continue
                found = await remit.service.forks.diff(row.job, made.job, every=True)
                assert found.added == 0
                assert found.same + found.changed + found.removed == found.a.steps
                assert all(one.shared for one in found.steps if one.change == "same")
                after = await verdict(remit, made.job)
                assert before == "diverged" or after in {"incomplete", before}
