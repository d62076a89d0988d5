"""Jobs of every kind of step, drawn by chance: what a recipe does is a list of acts, and so is what people answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from hypothesis import strategies as st

from remit import Code, Remit, Run, recipe, tool
from remit.errors import ProviderError, RemitError, StateError
from remit.record.views import OpenWait
from remit.settings import Settings, load

Act = dict[str, Any]
FLAGS: Final[dict[str, Any]] = {
    "app.principal": "alice",
    "models.default": "scripted:says.yaml",
    "models.prices": [{"model": "scripted:*", "input": 1, "output": 1_000_000}],
    "policy.rules": [
        {"effect": "deny", "tools": ["x.denied"]},
        {"id": "asks", "effect": "ask", "tools": ["x.asks"]},
        {"effect": "deny", "tools": ["model.*"], "when": {"model": {"equals": "denied.yaml"}}},
        {"effect": "allow", "tools": ["*"]},
    ],
}
MODELS: Final = {
    "says": "[{say: the answer}]",
    "busy": "[{fault: busy}, {say: late}]",
    "rejects": "[{fault: rejected}]",
    "denied": "[{say: never}]",
}
"""Scripts, by what they do."""


@tool("x.read", level="L0")
def read(value: int) -> dict[str, int]:
    """Read."""
    return {"read": value}


@tool("x.write")
def write(value: int) -> dict[str, int]:
    """Write."""
    return {"written": value}


@tool("x.fails", level="L0")
def fails(value: int) -> None:
    """Fail."""
    raise LookupError(f"no {value}")


@tool("x.lost")
def lost(value: int) -> None:
    """Write, and never be heard of."""
    raise ProviderError(f"the line broke at {value}", cause=Code.ConnectionError)


@tool("x.asks")
def asks(value: int) -> int:
    """Write, which people are asked about."""
    return value


@tool("x.denied")
def denied(value: int) -> int:
    """Write, which nobody may."""
    return value


@recipe("acts")
async def acts(run: Run, acts: list[Any]) -> list[Any]:
    """Do what the list says."""
    return [await act(run, one) for one in acts]


async def act(run: Run, one: Act) -> Any:
    """Do one act."""
    ((kind, value),) = one.items()
    if kind in _TOOLS:
        return (await run.attempt(f"x.{kind}", {"value": value})).value
    return await _DOES[kind](run, value)


async def _undoable(run: Run, value: int) -> Any:
    return (await run.call("x.write", {"value": value}, undo=("x.write", {"value": -value}))).value


async def _compensate(run: Run, _value: int) -> int:
    return len((await run.compensate()).undone)


async def _model(run: Run, script: str) -> Any:
    with suppress(RemitError):
        return (await run.model(f"What does {script} say?", model=f"scripted:{script}.yaml")).text
    return None


async def _child(run: Run, parts: list[Act]) -> Any:
    with suppress(RemitError):
        return await run.child(acts(acts=parts))
    return None


async def _gather(run: Run, parts: list[Act]) -> list[Any]:
    return await run.gather(*(act(run, each) for each in parts))


async def _signal(run: Run, value: int) -> Any:
    return await run.wait_signal(f"go-{value}")


async def _confirm(run: Run, value: int) -> bool:
    return (await run.confirm(f"Is it {value}?")).approved


async def _sleep(run: Run, _value: int) -> None:
    await run.sleep(0.001)


async def _now(run: Run, _value: int) -> str:
    return str(await run.now())


async def _uuid(run: Run, _value: int) -> str:
    return str(await run.uuid())


async def _boom(_run: Run, value: int) -> None:
    raise StateError(f"boom {value}", code=Code.INVALID_INPUT)


_TOOLS: Final = ("read", "write", "fails", "lost", "asks", "denied")
_DOES: Final[dict[str, Callable[[Run, Any], Awaitable[Any]]]] = {
    "undoable": _undoable,
    "compensate": _compensate,
    "model": _model,
    "child": _child,
    "gather": _gather,
    "signal": _signal,
    "confirm": _confirm,
    "sleep": _sleep,
    "now": _now,
    "uuid": _uuid,
    "boom": _boom,
}
_NUMBERED: Final = (*_TOOLS, "undoable", "confirm", "signal")
_PLAIN: Final = ("compensate", "sleep", "now", "uuid", "boom")
leaves = st.one_of(
    st.builds(lambda kind, value: {kind: value}, st.sampled_from(_NUMBERED), st.integers(0, 9)),
    st.builds(lambda kind: {kind: 0}, st.sampled_from(_PLAIN)),
    st.builds(lambda model: {"model": model}, st.sampled_from(sorted(MODELS))),
)
nested = st.one_of(
    leaves,
    leaves,
    st.builds(lambda parts: {"child": parts}, st.lists(leaves, max_size=3)),
    st.builds(lambda parts: {"gather": parts}, st.lists(leaves, min_size=1, max_size=3)),
)
Answers = Literal["all", "none", "no"]
"""What people do: answer yes, nothing, or no."""
lists = st.lists(nested, min_size=1, max_size=6)
answers: st.SearchStrategy[Answers] = st.sampled_from(["all", "all", "none", "no"])


def settings_in(folder: Path) -> Settings:
    """Settings of a folder that holds the scripts of the models."""
    for name, script in MODELS.items():
        (folder / f"{name}.yaml").write_text(script)
    return load(cwd=folder, env={}, flags={**FLAGS, "journal.url": str(folder / "journal.db")})


def opened(folder: Path) -> Remit:
    """A Remit in that folder."""
    return Remit(settings=settings_in(folder), tools=[read, write, fails, lost, asks, denied], recipes=[acts])


async def drive(remit: Remit, job: str, answers: Answers) -> None:
    """Answer what the job waits for, until it has ended or is left alone."""
    while True:
        await remit.settled(job)
        waits = (await remit.service.jobs.view(job)).waits
        if answers == "none" or not waits:
            return
        for wait in waits:
            await _answer(remit, job, wait, yes=answers == "all")


async def _answer(remit: Remit, job: str, wait: OpenWait, *, yes: bool) -> None:
    with suppress(StateError):  # it went on meanwhile
        if wait.type == "signal":
            await remit.service.jobs.signal(job, wait.key, {"said": wait.key})
        elif wait.attempt or wait.key == "undo":
            decision: Literal["done", "fail"] = "done" if yes else "fail"
            await remit.service.steps.decide(job, wait.step, decision, None, reason="I looked")
        elif wait.type == "human":
            await remit.service.confirmations.decide(wait.key, "approve" if yes else "deny")


def plain(value: Any) -> Any:
    """A shape as its JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
