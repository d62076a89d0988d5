"""Carries out a plan as a durable run. What matters most: the same effects at the same places, whenever it runs again.

Every node is a branch of one gather, in the order of the file, and its effect bears the node's id as its key; so an
effect's place does not depend on which node was faster. A branch waits until the nodes it needs are done, acts, and
lets go of those that wait for it. A failed node takes with it the nodes that need its result, and no others: what else
runs must not depend on when the failure came. Then the first failed node of the file is the plan's error.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap, deque
from collections.abc import Container, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from remit.codes import Code
from remit.errors import NotFoundError, RemitError, RunError, UsageError, VersionError
from remit.jobs.branch import current
from remit.jobs.end import FATAL, encoded_result
from remit.jobs.plans.plan import CallTool, Child, ForEach, Human, Node, Plan, Signal, Timer, Undo, bind_inputs
from remit.jobs.plans.references import INDEX, INPUTS, ITEM, fill, kind_of, references, resolve
from remit.jobs.recipe import Recipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from remit.jobs.bound import RecipeCall
    from remit.jobs.run import Run

_FAILURES: Final = (RunError, UsageError)
"""Exceptions that count as a node's failure; anything else ends the run at once."""
_Failure = RunError | UsageError

Result = dict[str, Any] | None
"""The outcome of a node: `ok`, `value`, `code`, `reason`, … (references.RESULT_FIELDS); None if it was skipped."""


async def run_plan(
    run: Run,
    plan: Plan,
    inputs: Mapping[str, Any],
    recipes: Recipes | None = None,
    entered: Container[str] = (),
) -> Any:
    """Run every node and return the plan's output; `entered` has the places where a recipe has begun before.

    Raises InvalidPlanError (`INVALID_INPUT`) before anything runs, else the error of the first node that failed.
    """
    return await _PlanExecution(run, plan, bind_inputs(plan, inputs), recipes or Recipes(), entered).finish()


class _PlanExecution:
    """One execution of a plan, begun or replayed."""

    def __init__(self, run: Run, plan: Plan, inputs: dict[str, Any], recipes: Recipes, entered: Container[str]) -> None:
        self.run = run
        self.plan = plan
        self.recipes = recipes
        self.entered = entered
        self.scope: dict[str, Any] = {INPUTS: inputs}
        """The values that references stand for: the inputs, and the result of every node that is done."""
        self.needs = {node.id: node.needs for node in plan.nodes}
        self.dependents: dict[str, list[str]] = {node.id: [] for node in plan.nodes}
        for node_id, needs in self.needs.items():
            for other in needs:
                self.dependents[other].append(node_id)
        self.missing = {node_id: len(needs) for node_id, needs in self.needs.items()}
        """The number of nodes that each one still waits for."""
        self.ready: dict[str, asyncio.Future[None]] = {}
        self.failed: dict[str, _Failure] = {}
        """The failures of the plan, kept until every branch has ended."""
        self.ended = 0

    async def finish(self) -> Any:
        """Run the nodes, then write the output."""
        loop = asyncio.get_running_loop()
        self.ready = {node_id: loop.create_future() for node_id, count in self.missing.items() if count}
        await self.run.gather(*[self._branch(node) for node in self.plan.nodes])
        for node in self.plan.nodes:
            if node.id in self.failed:
                raise self.failed[node.id]
        if self.plan.output is UNSET:
            return {node.id: self.scope[node.id] for node in self.plan.nodes}
        return fill(self.plan.output, self.scope, "output")

    async def _branch(self, node: Node) -> None:
        """A node, from waiting for what it needs to letting go of what needs it."""
        if node.id in self.ready:
            await self.run.until(self.ready[node.id])
        try:
            if all(other in self.scope for other in self.needs[node.id]):  # else it goes with one that failed
                self.scope[node.id] = await self._result(node)
        except _FAILURES as error:
            if error.code in FATAL:
                raise
            self.failed[node.id] = error
        finally:
            self._let_go(node)

    def _let_go(self, node: Node) -> None:
        """The node is done, well or not: those that waited for it alone may go on."""
        self.ended += 1
        self.run.progress(node.id, self.ended, len(self.plan.nodes))
        for other in self.dependents[node.id]:
            self.missing[other] -= 1
            if not self.missing[other] and not self.ready[other].done():
                self.ready[other].set_result(None)

    async def _result(self, node: Node) -> Result:
        """The outcome of a node; an error is raised only where the plan is to fail with it."""
        try:
            if node.when is not None and not resolve(node.when, self.scope, _where(node)):
                return None
            if node.for_each is not None:
                return await self._fan_out(node, node.for_each)
            return await self._act(node, self.scope, _where(node))
        except _FAILURES as error:
            return _tolerated(node, error)

    async def _fan_out(self, node: Node, each: ForEach) -> Result:
        """The action for every item of a list, some of them at a time; each item is a branch of its own."""
        items = resolve(each.over, self.scope, _where(node))
        if items is None:  # of a node that was skipped, or a field that holds nothing
            items = []
        if not isinstance(items, list) or len(items) > each.max_items:
            problem = f"has {len(items)} items" if isinstance(items, list) else f"is {kind_of(items)}"
            raise RunError(
                f"{_where(node)}: {each.over} {problem}; for_each takes a list of at most {each.max_items}",
                code=Code.PLAN_REFERENCE_UNFIT,
                remedy="Refer to a list, or raise the node's max_items.",
            )
        slots = _Slots(self.run, each.concurrency)

        async def one(index: int, item: Any) -> dict[str, Any] | _Failure:
            async with slots.one():
                try:
                    scope = ChainMap({ITEM: item, INDEX: index}, self.scope)
                    return await self._act(node, scope, f"{_where(node)}, item {index}")
                except _FAILURES as error:
                    return error

        ends = await self.run.gather(*[one(index, item) for index, item in enumerate(items)])
        return _together([_tolerated(node, end) if isinstance(end, _FAILURES) else end for end in ends])

    async def _act(self, node: Node, scope: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Do what the node does, once."""
        match node.action:
            case CallTool() as tool:
                return await self._call(node, tool, scope, where)
            case Child() as child:
                return _ok(await self._child(node, child.recipe, fill(child.input, scope, where), where))
            case Timer() as timer:
                await self.run.sleep(timer.after_ms / 1_000, key=node.id)
                return _ok(True)  # noqa: FBT003 - a value, not a flag
            case Signal() as signal:
                return _ok(await self._signal(node, signal, where))
            case Human() as human:
                answer = await self.run.confirm(
                    fill(human.question, scope, where),
                    details=fill(human.details, scope, where),
                    timeout=_seconds(human.timeout_ms),
                    key=node.id,
                )
                return _ok(answer.approved) | {"by": answer.by, "reason": answer.reason}

    async def _call(self, node: Node, tool: CallTool, scope: Mapping[str, Any], where: str) -> dict[str, Any]:
        args = fill(tool.args, scope, where)
        timeout = _seconds(tool.timeout_ms)
        undo = _undo(node, tool.undo, scope, where)
        if node.on_failure == "fail":
            return _ok((await self.run.call(tool.name, args, key=node.id, timeout=timeout, undo=undo)).value)
        outcome = await self.run.attempt(tool.name, args, key=node.id, timeout=timeout, undo=undo)
        if outcome.ok:
            return _ok(outcome.value)
        return _failed(outcome.code or Code.STEP_FAILED, outcome.reason)

    async def _child(self, node: Node, name: str, args: dict[str, Any], where: str) -> Any:
        bound = self._bound(node, name, args, where)
        try:
            returned = await self.run.child(bound, key=node.id)
        except RemitError:
            raise
        except Exception as error:
            raise RunError(f"{where}: the recipe {name} raised {type(error).__name__}: {error}") from error
        return msgspec.json.decode(encoded_result(returned))  # references point into JSON

    def _bound(self, node: Node, name: str, args: dict[str, Any], where: str) -> RecipeCall[Any]:
        """The recipe with its arguments. Raises VersionError where it is other code that can continue the plan."""
        try:
            return self.recipes.get(name).bind(args)
        except NotFoundError as error:
            raise VersionError(f"{where}: {error.message}", code=error.code, remedy=error.remedy) from error
        except UsageError as error:
            if current.get().place(node.id) not in self.entered:
                raise
            raise VersionError(
                f"{where}: it has started, and its input no longer fits: {error.message}",
                remedy="Resume the job where the recipe accepts its input, or cancel it.",
            ) from error

    async def _signal(self, node: Node, signal: Signal, where: str) -> Any:
        try:
            return await self.run.wait_signal(signal.name, timeout=_seconds(signal.timeout_ms), key=node.id)
        except TimeoutError as error:
            raise RunError(
                f"{where}: {error}",
                code=Code.PLAN_SIGNAL_TIMEOUT,
                remedy="Send the signal sooner, or give the node a longer timeout or `on_failure: continue`.",
            ) from error


def _undo(node: Node, undo: Undo | None, scope: Mapping[str, Any], where: str) -> Any:
    """The call that undoes a node, made from the node's value if it refers to that."""
    if undo is None:
        return None
    if all(reference.node != node.id for reference in references(undo.args)):
        return undo.name, fill(undo.args, scope, where)
    return lambda value: (undo.name, fill(undo.args, ChainMap({node.id: _ok(value)}, dict(scope)), where))


class _Slots:
    """Lets so many branches go on at a time; the others wait without keeping the job from being parked."""

    def __init__(self, run: Run, count: int) -> None:
        self._run = run
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold one slot."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await self._run.until(turn)
        try:
            yield
        finally:
            self._give_back()

    def _give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # a branch that was cancelled needs no turn any more
                turn.set_result(None)
                return
        self._free += 1


def _together(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The result of a `for_each` from those of its items, in order."""
    failures = [
        {"index": index, "code": result["code"], "reason": result["reason"]}
        for index, result in enumerate(results)
        if not result["ok"]
    ]
    joined = {"ok": not failures, "value": [result.get("value") for result in results], "failures": failures}
    if failures:
        first = failures[0]
        joined["code"] = first["code"]
        joined["reason"] = f"{len(failures)} of {len(results)} items failed; item {first['index']}: {first['reason']}"
    return joined


def _tolerated(node: Node, error: _Failure) -> dict[str, Any]:
    """The result of a node that goes on after its failure. Raises the error where it must not."""
    if node.on_failure == "fail" or error.code in FATAL:
        raise error
    return _failed(error.code, error.message)


def _ok(value: Any) -> dict[str, Any]:
    return {"ok": True, "value": value}


def _failed(code: Code, reason: str) -> dict[str, Any]:
    return {"ok": False, "code": code.name, "reason": reason}


def _where(node: Node) -> str:
    return f"node {node.id}"


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1_000
