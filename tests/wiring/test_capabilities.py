"""The door: what the lines of the parts name, and what each command loads of them."""

from __future__ import annotations

import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from functools import cached_property
from pathlib import Path

import pytest

from remit import Remit, Run, recipe, tool
from remit.capability import Capability, resolve
from remit.gateway.services import Services
from remit.jobs.recipe import Recipe
from remit.service.local import ServiceOnUse
from remit.service.service import CORE
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.services import ServicesOnUse
from tests.opened import OpenRemit

HEAVY = (
    "remit.agents",
    "remit.engines.local",
    "remit.gateway.pipeline",
    "remit.jobs.execution",
    "remit.policy.rules",
    "remit.providers",
    "remit.recipes",
    "remit.sandbox",
    "remit.tickets",
    "remit.tools.catalog",
)
"""What runs something."""


@pytest.mark.parametrize("part", FIRST_PARTY, ids=lambda part: part.name)
def test_every_reference_of_a_part_leads_somewhere(part: Capability) -> None:
    assert [reference for reference in part.references if resolve(reference) is None] == []
    assert all(isinstance(resolve(reference), Recipe) for reference in part.recipes)
    names = [reference.rpartition(":")[2] for reference in part.recipes]
    assert [resolve(reference).name for reference in part.recipes] == names
    assert set(part.inner_recipes) <= set(names)


async def test_a_prompt_completes_the_nouns_of_parts(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        assert {"jobs", "tickets", "forks", "audit"} <= set(dir(remit.service))


def test_parts_have_names_of_their_own() -> None:
    names = [part.name for part in FIRST_PARTY]
    assert len(set(names)) == len(names)


def test_what_is_made_on_use_is_all_that_the_gateway_works_with() -> None:
    made = {name for name, part in vars(ServicesOnUse).items() if isinstance(part, cached_property)}
    fields = set(Services.__struct_fields__)
    assert fields - made == {"journal", "default_model", "mismatch", "cache", "told_in"}
    assert made - fields == {"schema_gate"}


def test_the_nouns_made_on_use_are_those_of_the_service() -> None:
    made = {name for name, noun in vars(ServiceOnUse).items() if isinstance(noun, cached_property)}
    assert made == set(CORE)


@recipe("ask")
async def ask(run: Run) -> str:
    """Ask for one call."""
    return str((await run.call("shop.pay", {})).value)


@tool("shop.pay", level="L1")
def pay() -> None:
    """Pay."""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["jobs"], ["show", "last"], ["confirm"]], ids=" ".join)
async def test_a_command_that_looks_loads_nothing_that_runs(words: list[str], tmp_path: Path) -> None:
    journal = str(tmp_path / "journal.db")
    async with Remit(journal, tools=[pay], recipes=[ask]) as remit:
        await remit.settled((await remit.start(ask())).id)
    done = await create_subprocess_exec(
        *(sys.executable, "-X", "importtime", "-m", "remit", "--journal", journal, *words), stdout=PIPE, stderr=PIPE
    )
    out, err = await done.communicate()
    assert b"ask" in out
    loaded = {line.rpartition("|")[2].strip() for line in err.decode().splitlines() if line.startswith("import time:")}
    assert "remit.journal.journal" in loaded
    assert sorted(name for name in loaded if name.startswith(HEAVY)) == []


async def test_a_remit_that_does_not_work_makes_nothing_before_it_is_used(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:
        await remit.jobs()
        assert {"engine", "catalog", "gateway"}.isdisjoint(vars(remit.runtime))


async def test_a_remit_that_works_has_made_everything(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        assert {"engine", "catalog", "gateway", "worker"} <= set(vars(remit.runtime))
