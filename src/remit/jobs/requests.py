"""The effects that a recipe asked for. One that it never awaited has not happened, and its job fails by name.

`run.call(…)` without `await` makes a coroutine that never starts: the recipe continues as if the call had been made.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CodeType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from remit.codes import Code
from remit.errors import RunError

P = ParamSpec("P")
R = TypeVar("R")

_MANY: Final = 64
"""So many are remembered before those that were awaited are forgotten."""


class Requests:
    """Remembers the coroutines of a run's effects, and where they were made."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: list[tuple[Coroutine[Any, Any, Any], CodeType, int]] = []

    def add(self, coroutine: Coroutine[Any, Any, Any], code: CodeType, instruction: int) -> None:
        """Remember a coroutine that an instruction of `code` made."""
        if len(self._made) >= _MANY:
            self._made = [request for request in self._made if _unstarted(request[0])]
        self._made.append((coroutine, code, instruction))

    def settle(self) -> None:
        """End the requests of a recipe that returned. Raises RunError (NOT_AWAITED) if one was never awaited."""
        forgotten = self.close()
        if forgotten:
            coroutine, code, instruction = forgotten[0]
            name = getattr(coroutine, "__name__", "call").lstrip("_")
            raise RunError(
                f"run.{name} at {code.co_filename}:{_line(code, instruction)} was not awaited: it did not happen",
                code=Code.NOT_AWAITED,
                remedy=f"Write `await run.{name}(…)`, or give it to run.gather.",
            )

    def close(self) -> list[tuple[Coroutine[Any, Any, Any], CodeType, int]]:
        """Close the coroutines that were never awaited, and return them."""
        forgotten = [request for request in self._made if _unstarted(request[0])]
        self._made.clear()
        for coroutine, _, _ in forgotten:
            coroutine.close()
        return forgotten


class Requesting(Protocol):
    """The noun that has requests."""

    @property
    def requests(self) -> Requests:
        """The requests of the run."""
        ...


S = TypeVar("S", bound=Requesting)


def effect(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Make a run remember each coroutine of a method until it is awaited."""

    @wraps(method)
    def request(run: S, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine = method(run, *args, **kwargs)
        caller = sys._getframe(1)  # noqa: SLF001 - the only way to the caller's line that costs nothing
        run.requests.add(coroutine, caller.f_code, caller.f_lasti)
        return coroutine

    return request


def _unstarted(coroutine: Coroutine[Any, Any, Any]) -> bool:
    return inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED


def _line(code: CodeType, instruction: int) -> int:
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end and line is not None)
    return next(lines, code.co_firstlineno)
