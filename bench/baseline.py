"""The baseline: the results of a quiet run, kept in the repository, so that what falls behind is said.

Ratios are compared, not values: another machine has other values. A value that has neither floor nor peer is compared
if it is no time, since bytes, flushes, files and moves do not depend on the machine's speed.

A line keeps the best that was ever measured. A worse one takes its place only with a reason, which the line then says.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import msgspec

from bench.measure import Result

FILE: Final = Path(__file__).with_name("baseline.json")
FALL: Final = 0.75
"""A ratio of less than so much of the baseline's has fallen."""
_SIZES: Final = frozenset({"bytes", "kB", "flushes"})
_COUNTS: Final = frozenset({"files", "moves"})
"""Of these one more is worse: they come out the same each time."""
_SMALL: Final = 64
"""Fewer bytes than that are noise of an allocator."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result, and the commit and day on which it was measured."""

    result: Result
    commit: str
    day: str
    reason: str = ""
    """Why a worse result took the place of a better one; empty: none did."""


def load(file: Path = FILE) -> list[Line]:
    """Return the lines in the order of the table; none if there is no baseline yet."""
    return msgspec.json.decode(file.read_bytes(), type=list[Line]) if file.exists() else []


def keep(results: list[Result], file: Path = FILE, reason: str = "") -> None:
    """Make these results the baseline where none is better; with a reason, the worse ones too.

    Lines that were not measured keep their older results.
    """
    commit, day = _git("rev-parse", "--short=12", "HEAD"), _git("log", "-1", "--format=%cs")
    measured = {key_of(result): result for result in results if not skipped(result)}
    lines = []
    for line in load(file):
        result = measured.pop(key_of(line.result), None)
        worse = result is not None and _is_worse(result, line.result)
        if result is None or (worse and not reason):
            lines.append(line)
        else:
            lines.append(Line(result=result, commit=commit, day=day, reason=reason if worse else ""))
    lines += [Line(result=result, commit=commit, day=day) for result in measured.values()]
    order = list(dict.fromkeys(line.result.name for line in lines))
    lines.sort(key=lambda line: order.index(line.result.name))  # a peer's line stands below its measurement
    file.write_bytes(msgspec.json.format(msgspec.json.encode(lines)) + b"\n")


def fallen_behind(results: list[Result], lines: list[Line]) -> list[str]:
    """Return a sentence for each result that is behind the baseline, or lost a mark that it met.

    Of what is measured in time or bytes, a quarter may be noise; of a count, nothing.
    """
    known = {key_of(line.result): line.result for line in lines}
    sentences = []
    for result in results:
        before = known.get(key_of(result))
        if before is None or skipped(result):
            continue
        now, then = _standing(result), _standing(before)
        name = f"{result.name}, beside {result.peer}" if result.peer else result.name
        if now is not None and then is not None and now < (1 if result.unit in _COUNTS else FALL) * then:
            sentences.append(f"{name}: {now:.3g}, {then:.3g} in the baseline")
        elif before.met and result.met is False:
            sentences.append(f"{name}: the mark {result.mark} was met in the baseline")
    return sentences


def key_of(result: Result) -> tuple[str, str]:
    """Return the result's name, and its peer's."""
    return result.name, result.peer or ""


def skipped(result: Result) -> bool:
    """Return whether the result, or its peer, could not be measured."""
    return result.note.startswith("skipped: ")


def _is_worse(result: Result, before: Result) -> bool:
    now, then = _standing(result), _standing(before)
    return now is not None and then is not None and now < then


def _standing(result: Result) -> float | None:
    """Return a number of which more is better and that another machine would have too; None if there is no such."""
    if result.peer is not None:
        return result.peer_ratio
    if result.floor_ratio is not None:
        return result.floor_ratio
    if result.unit in _COUNTS:
        return 1 / result.value
    return 1 / max(result.value, _SMALL) if result.unit in _SIZES else None


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=FILE.parent, capture_output=True, text=True, check=True)  # noqa: S603, S607 - fixed words, the git of this machine
    return done.stdout.strip()
