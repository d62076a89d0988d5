"""Brings a recorded task graph of an older format into today's: one step for each format that there was.

A graph is recorded once and never planned again, so a Remit with a new format must read every older one. A format that
comes after today's was recorded by a newer Remit, which alone can carry it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from remit.codes import Code
from remit.errors import VersionError
from remit.jobs.plans.plan import SCHEMA_VERSION

_FORMAT: Final = re.compile(r"taskgraph-v([1-9][0-9]{0,5})")
_NEWER: Final = "Upgrade Remit here, or leave the job to a worker that has the newer one."
_OTHER: Final = "Resume the job where matching code runs, or cancel it."


class Upgrade(NamedTuple):
    """A step from one format to the next."""

    to: str
    """The format that it makes."""
    change: Callable[[dict[str, Any]], dict[str, Any]]
    """Takes a graph of the earlier format and returns the same one in the later format; pure."""


UPGRADES: Final[Mapping[str, Upgrade]] = {}
"""Upgrades by the format that each takes. `taskgraph-v1` is the first format and today's, so there is none yet."""


def upgraded(
    graph: object, recorded: str, upgrades: Mapping[str, Upgrade] = UPGRADES, today: str = SCHEMA_VERSION
) -> object:
    """Return a recorded graph in today's format; `recorded` is the format that the journal names.

    Raises VersionError: PLAN_NEWER for a format after today's, else if no way leads to it or a step fails.
    """
    written, passed = _format_of(graph, recorded), set[str]()
    while written != today:
        if _is_newer(written, today):
            why = f"the recorded plan is {written}, and this Remit reads {today}: a newer Remit recorded it"
            raise VersionError(why, code=Code.PLAN_NEWER, remedy=_NEWER)
        step = upgrades.get(written)
        if step is None or written in passed or not isinstance(graph, dict):
            raise VersionError(f"no upgrade leads from {written:.80} to {today}", remedy=_OTHER)
        passed.add(written)
        graph = _changed(graph, written, step)
        written = step.to
    return graph


def _is_newer(written: str, today: str) -> bool:
    """Return whether a format comes after today's."""
    said, ours = _FORMAT.fullmatch(written), _FORMAT.fullmatch(today)
    return said is not None and ours is not None and int(said[1]) > int(ours[1])


def _format_of(graph: object, recorded: str) -> str:
    """The format of a graph: what it says itself, else what was recorded beside it."""
    said = graph.get("version") if isinstance(graph, dict) else None
    return said if isinstance(said, str) else recorded


def _changed(graph: dict[str, Any], written: str, step: Upgrade) -> dict[str, Any]:
    try:
        newer = {**step.change(graph), "version": step.to}
    except Exception as error:
        why = f"the upgrade from {written} to {step.to} failed: {type(error).__name__}: {error}"
        raise VersionError(why, remedy=_OTHER) from error
    return newer
