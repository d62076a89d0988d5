"""Jobs are found by what is recorded of them, in any journal."""

from __future__ import annotations

import pytest

from remit import JobEndedError, Run, recipe, tool
from remit.record.search import JobSearch
from remit.service.options import Options
from tests.opened import OpenRemit


@tool("desk.look", level="L0")
def look(place: str) -> str:
    """Look."""
    if place == "attic":
        raise ValueError("the stairs are gone")
    return f"dust in the {place}"


@recipe("looks")
async def looks(run: Run, place: str) -> str:
    """Look, and tell something else."""
    await run.call("desk.look", {"place": f"{place}"})
    return 'a Spider "says" no'


async def test_text_is_found_in_inputs_arguments_results_and_errors(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[looks]) as remit:
        cellar = await remit.start(looks(place="cellar"), Options(title="One"))
        await cellar
        attic = await remit.start(looks(place="attic"), Options(title="Two", principal="bob"))
        with pytest.raises(JobEndedError):
            await attic
        for text, principal, jobs in (
            ("CELLAR", "", [cellar.id]),
            ("dust in", "", [cellar.id]),
            ('spider "says"', "", [cellar.id]),
            ("stairs are gone", "", [attic.id]),
            ("two", "", [attic.id]),
            ("two", "bob", [attic.id]),
            ("cellar", "bob", []),
            ("nowhere", "", []),
            ("", "bob", [attic.id]),
        ):
            page = await remit.service.jobs.search(JobSearch(text=text, principal=principal))
            assert [row.job for row in page.rows] == jobs, (text, principal)
