from __future__ import annotations

import pytest

from remit import Run, recipe
from remit.engines.presence import present
from tests.api.conftest import Served
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow


@recipe("edited")
async def edited(run: Run) -> None:
    """Do nothing."""


async def test_processes_that_work_are_listed_with_their_code(remit_in: OpenRemit, served: Served) -> None:
    async with remit_in(recipes=[edited], work=False) as remit, served(remit) as client:
        assert (await client.get("/v1/workers")).json == []
        remit.engine.start(role="serve")
        while not await present(remit.runtime.journal):
            await remit.runtime.journal.heads_changed(0)
        (one,) = (await client.get("/v1/workers")).json
        assert (one["role"], one["recipes"]["edited"]) == ("serve", edited.execution_version)
