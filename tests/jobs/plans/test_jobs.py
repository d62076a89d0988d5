"""Plans as durable jobs: recorded once, resumed, parked, replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import CallContext, Code, JobEndedError, Run, recipe, tool
from remit.errors import PlanError
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.plan import plan_hash, task_graph
from remit.jobs.plans.source import parse_plan
from tests.opened import OpenRemit, until_left, until_waiting

PLAN = parse_plan("""\
version: taskgraph-v1
name: orders
inputs:
  orders: {type: array}
nodes:
  - id: price
    for_each: ${inputs.orders}
    tool: shop.price
    args: {order: ${item}}
    concurrency: 2
  - id: go
    wait: {signal: go}
    after: [price]
  - id: note
    recipe: note
    input: {text: ${go.value.text} ${index_note.value}}
  - id: index_note
    tool: shop.price
    args: {order: 1}
    on_failure: continue
  - id: total
    tool: shop.total
    args: {prices: ${price}}
    after: [note]
output: {total: ${total}, note: ${note}}
""")


class Shop:
    """Tools that count their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

        @tool("shop.price", level="L0")
        async def price(order: int, ctx: CallContext) -> int:
            self.calls.append(ctx.step)
            if order < 0:
                msg = f"order {order} is gone"
                raise ValueError(msg)
            return 10 * order

        @tool("shop.total", level="L0")
        async def total(prices: list[int], ctx: CallContext) -> int:
            self.calls.append(ctx.step)
            return sum(prices)

        self.tools = [price, total]


@recipe("note")
async def note(run: Run, text: str) -> str:
    return f"{text}, as of {await run.now() > 0}"


EXPECTED = {"total": 60, "note": "ready 10, as of True"}


@pytest.mark.parametrize("always_replay", [False, True])
async def test_a_plan_parks_at_its_wait_goes_on_and_replays_the_same(remit_in: OpenRemit, always_replay: bool) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[note], always_replay=always_replay) as remit:
        job = await remit.start_plan(PLAN, {"orders": [1, 2, 3]})
        await until_waiting(remit, job.id)
        await job.signal("go", {"text": "ready"})
        assert await job == EXPECTED
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert sorted(shop.calls) == ["1.0.1.0.price", "1.0.1.1.price", "1.0.1.2.price", "1.3.index_note", "1.4.total"]


async def test_another_process_goes_on_and_does_nothing_twice(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[note]) as remit:
        job = (await remit.start_plan(PLAN, {"orders": [1, 2, 3]})).id
        await until_waiting(remit, job)
    async with remit_in(tools=shop.tools, recipes=[note]) as remit:
        await remit.job(job).signal("go", {"text": "ready"})
        assert await remit.job(job) == EXPECTED
    assert len(shop.calls) == len(set(shop.calls)) == 5


async def test_the_plan_is_recorded_as_it_was_when_the_job_was_made(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:
        job = await remit.start_plan(PLAN, {"orders": []})
        history = await remit.service.jobs.history(job.id)
    assert history.plan is not None
    assert (history.plan.schema_version, history.plan.plan_hash) == ("taskgraph-v1", plan_hash(PLAN))
    assert read_plan(task_graph(PLAN)) == PLAN


async def test_a_failure_ends_the_job_with_its_code_and_place_and_replays_the_same(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[note]) as remit:
        job = await remit.start_plan(PLAN, {"orders": [1, -1, 2, -2]})
        with pytest.raises(JobEndedError, match="order -1 is gone") as caught:
            await job
        assert (caught.value.code, caught.value.step) == (Code.TOOL_EXEC_FAILED, "1.0.1.1.price")
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert len(shop.calls) == 5


async def test_inputs_that_do_not_fit_make_no_job(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in() as remit:
        with pytest.raises(PlanError, match="found nothing, expected a list"):
            _ = await remit.start_plan(PLAN)
        assert await remit.jobs() == []


async def test_a_tool_that_is_not_there_is_a_failure_the_plan_can_go_on_from(remit_in: OpenRemit) -> None:
    nodes: list[dict[str, Any]] = [{"id": "a", "tool": "shop.gone", "on_failure": "continue"}]
    plan = read_plan({"version": "taskgraph-v1", "name": "p", "nodes": nodes, "output": "${a.code}"})
    async with remit_in() as remit:
        assert await (await remit.start_plan(plan)) == "UNKNOWN_TOOL"


ALARMED = """\
version: taskgraph-v1
name: alarmed
nodes:
  - id: pay
    recipe: pay
    input: {order: 1}
    on_failure: continue
  - id: alarm
    tool: shop.alarm
    args: {paid: "${pay.ok}"}
"""


class Paying:
    """Pays by a recipe, and rings where that failed."""

    def __init__(self) -> None:
        self.calls: list[str] = []

        @tool("shop.charge", level="L0")
        async def charge() -> None:
            self.calls.append("charge")

        @tool("shop.alarm", level="L0")
        async def alarm(paid: bool) -> None:
            self.calls.append(f"paid: {paid}")

        @recipe("pay")
        async def pay(run: Run, order: int) -> int:
            await run.call("shop.charge")
            await run.wait_signal("go")
            return order

        self.tools = [charge, alarm]
        self.recipe = pay

    async def begun(self, remit_in: OpenRemit) -> str:
        """A job that waits for a signal within the recipe."""
        async with remit_in(tools=self.tools, recipes=[self.recipe]) as remit:
            job = await remit.start_plan(parse_plan(ALARMED), {})
            await until_waiting(remit, job.id)
            return str(job.id)

    async def stuck(self, remit_in: OpenRemit, job: str, *recipes: Any, **flags: str) -> str:
        """The code with which a worker that has these recipes leaves the job to others."""
        async with remit_in(
            tools=self.tools, recipes=recipes, flags={f"jobs.{k}": v for k, v in flags.items()}
        ) as remit:
            await remit.service.jobs.resume(job)
            return (await until_left(remit, job)).code

    async def goes_on(self, remit_in: OpenRemit, job: str) -> None:
        async with remit_in(tools=self.tools, recipes=[self.recipe]) as remit:
            await remit.job(job).signal("go")
            await remit.job(job)
        assert self.calls == ["charge", "paid: True"]


async def test_a_worker_without_the_recipe_leaves_the_plan_to_one_that_has_it(remit_in: OpenRemit) -> None:
    paying = Paying()
    job = await paying.begun(remit_in)
    assert await paying.stuck(remit_in, job) == "UNKNOWN_RECIPE"
    await paying.goes_on(remit_in, job)


async def test_nor_does_one_begin_a_plan_without_its_recipes(remit_in: OpenRemit) -> None:
    paying = Paying()
    async with remit_in(tools=paying.tools, work=False) as remit:
        job = str((await remit.start_plan(parse_plan(ALARMED), {})).id)
    assert await paying.stuck(remit_in, job) == "UNKNOWN_RECIPE"
    assert paying.calls == []


async def test_a_recipe_that_has_begun_waits_for_code_that_takes_what_it_was_given(remit_in: OpenRemit) -> None:
    @recipe("pay")
    async def another(run: Run, order: int, currency: str) -> int:
        return order

    paying = Paying()
    job = await paying.begun(remit_in)
    assert await paying.stuck(remit_in, job, another) == "EXECUTION_VERSION_MISMATCH"
    await paying.goes_on(remit_in, job)


async def test_a_recipe_within_it_is_held_to_its_version_where_policy_says_fail(remit_in: OpenRemit) -> None:
    @recipe("pay", version="2")
    async def another(run: Run, order: int) -> int:
        return order

    paying = Paying()
    job = await paying.begun(remit_in)
    assert await paying.stuck(remit_in, job, another, mismatch="fail") == "EXECUTION_VERSION_MISMATCH"
    await paying.goes_on(remit_in, job)
