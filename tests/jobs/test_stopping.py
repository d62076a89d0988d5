"""A replay that stops: it shows the recipe's variables, and its verdict is that of any other replay."""

from __future__ import annotations

from collections.abc import Coroutine
from types import FrameType
from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.jobs.replay import ReplayStop
from tests.opened import OpenRemit, until_waiting


@tool("log.add", level="L0")
async def add(number: int) -> int:
    """Return a number."""
    return number


@recipe("part")
async def part(run: Run, number: int) -> int:
    """Call once more."""
    doubled = number * 2
    return int((await run.call("log.add", {"number": doubled})).value)


@recipe("subject")
async def subject(run: Run) -> list[int]:
    """Call alone, in branches and in another recipe, then wait."""
    first = (await run.call("log.add", {"number": 1})).value

    async def branch(number: int) -> int:
        return int((await run.call("log.add", {"number": number + first})).value)

    both = await run.gather(branch(2), branch(3))
    direct = await run.gather(run.call("log.add", {"number": 5}))
    nested = await run.child(part(number=direct[0].value))
    await run.wait_signal("go")
    return [first, *both, nested]


@recipe("subject")
async def departed(run: Run) -> list[int]:
    """Depart at once."""
    return [(await run.call("log.add", {"number": 9})).value]


class Looked:
    """What a stop saw; it asks of the run whatever could change the replay."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, Any]]] = []
        self.refused: list[Code] = []

    def __call__(self, frame: FrameType, wanted: str) -> None:
        self.seen.append((frame.f_code.co_name, wanted, dict(frame.f_locals)))
        run: Run = frame.f_locals["run"]
        self.forgotten = run.now()  # never awaited
        for ask in (run.call("log.add", {"number": 7}), run.gather(run.now()), run.patched("x"), run.uuid(key="k")):
            self._ask(ask)

    def _ask(self, ask: Coroutine[Any, Any, Any]) -> None:
        try:
            ask.send(None)
        except UsageError as error:
            self.refused.append(error.code)


@pytest.mark.parametrize(
    ("step", "function", "wanted", "variable"),
    [
        ("1", "subject", "a tool call", ("run", None)),
        ("2.0.1", "branch", "a tool call", ("number", 2)),
        ("2.1.1", "branch", "a tool call", ("number", 3)),
        ("3.0.1", "subject", "a tool call", ("both", [3, 4])),
        ("4.0.1", "part", "a tool call", ("doubled", 10)),
        ("5", "subject", "a wait (signal)", ("nested", 10)),
    ],
)
async def test_a_stop_sees_the_recipe_at_its_step(
    remit_in: OpenRemit, step: str, function: str, wanted: str, variable: tuple[str, Any]
) -> None:
    async with remit_in(tools=[add], recipes=[subject, part]) as remit:
        job = await remit.start(subject())
        await until_waiting(remit, job.id)
        looked = Looked()
        plain = await remit.service.jobs.replay(job.id)
        assert await remit.service.jobs.replay(job.id, stop=ReplayStop(step, looked)) == plain
        assert plain.verdict == "incomplete"
    ((name, said, names),) = looked.seen
    assert (name, said) == (function, wanted)
    assert variable[1] is None or names[variable[0]] == variable[1]
    assert looked.refused == [Code.USAGE] * 4


async def test_a_step_that_the_replay_does_not_come_by_is_an_error_unless_it_departs(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[add], recipes=[subject, part]) as remit:
        job = await remit.start(subject())
        await until_waiting(remit, job.id)
        with pytest.raises(NotFoundError) as raised:
            await remit.service.jobs.replay(job.id, stop=ReplayStop("99", Looked()))
        assert raised.value.code is Code.STEP_NOT_FOUND
    async with remit_in(tools=[add], recipes=[departed, part], work=False) as remit:
        looked = Looked()
        found = await remit.service.jobs.replay(job.id, anyway=True, stop=ReplayStop("2.0.1", looked))
        assert (found.verdict, looked.seen) == ("diverged", [])
        await remit.service.jobs.replay(job.id, anyway=True, stop=ReplayStop("1", looked))
        assert [name for name, *_ in looked.seen] == ["departed"]  # what differs is looked at before it is compared
