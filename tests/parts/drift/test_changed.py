"""The table of docs/versions.md says what drift and check say, and what becomes of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit import Run, recipe
from remit.jobs.state import ENDED
from tests.opened import until, until_waiting
from tests.parts.drift.changed import (
    EVERY,
    HEAD,
    PAGE,
    POLICIES,
    checked,
    first,
    going_on,
    golden,
    made,
    opened,
    pay,
    recorded,
    row,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "name"), EVERY)
async def test_a_row_of_the_page_is_what_happens(tmp_path: Path, kind: str, name: str) -> None:
    job = await recorded(tmp_path)
    assert await row(tmp_path, job, await golden(), kind, name) in rows()


def test_the_page_has_every_change_and_no_other() -> None:
    assert [line.split(" | ")[0] for line in rows()] == [f"| {kind}: {name}" for kind, name in EVERY]


async def test_what_did_not_change_is_the_same_under_every_policy() -> None:
    ended = await golden()
    assert {await checked(ended, [made(pay)], [first], policy) for policy in POLICIES} == {"same"}


@recipe("asking")
async def asking(run: Run) -> str:
    await run.model("Hello?")
    return str(await run.wait_signal("go"))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["a.yaml", "b.yaml"])
async def test_a_job_goes_on_with_another_model_where_every_face_says_so(
    tmp_path: Path, policy: str, name: str
) -> None:
    for script in ("a.yaml", "b.yaml"):
        (tmp_path / script).write_text("[{say: Hello.}]")
    async with opened(tmp_path, [], [asking], model=f"scripted:{tmp_path / 'a.yaml'}") as remit:
        job = (await remit.start(asking())).id
        await until_waiting(remit, job)
    model = f"scripted:{tmp_path / name}"
    foretold = await going_on(tmp_path, job, [], [asking], policy, model)
    async with opened(tmp_path, [], [asking], policy, model=model) as remit:
        await remit.job(job).signal("go", "done")
        resumed = await until(remit, job, lambda row: row.state in ENDED or bool(row.code))
    is_refused = name == "b.yaml" and policy != "warn"
    assert (foretold, resumed.code) == (("no", "MODEL_DRIFT") if is_refused else ("yes", ""))


def rows() -> list[str]:
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[2].strip().partition("\n\n")[0].splitlines()
