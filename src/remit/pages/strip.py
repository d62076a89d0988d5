"""All rows of a long list as one strip: where something failed or waits, and a way to get there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from remit.pages.scale import WIDTH
from remit.pages.steps import Group, SegmentKind

BUCKETS: Final = 200
"""Pieces of a strip at most."""
_JUMPS: Final = 5
"""Rows of a kind that are named beside it."""
_WORST: Final[dict[str, tuple[int, SegmentKind]]] = {
    "failed": (3, "failed"),
    "blocked": (3, "failed"),
    "unknown": (2, "doubt"),
    "waiting": (1, "wait"),
}
_FINE: Final[tuple[int, SegmentKind]] = (0, "work")


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Rows side by side, as one piece of the strip."""

    x: float
    width: float
    first: int
    """The number of its first row."""
    last: int
    kind: SegmentKind
    """That of the worst of them."""
    height: float
    """By how many steps it stands for, from 0 to 1."""


class Jump(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one state, and the first of them."""

    state: str
    number: int
    rows: tuple[int, ...]


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """A long list at a glance."""

    buckets: tuple[Bucket, ...]
    jumps: tuple[Jump, ...]


def strip_of(groups: Sequence[Group]) -> Strip:
    """The strip of all rows; each group is one."""
    count = min(BUCKETS, len(groups))
    edges = [len(groups) * number // count for number in range(count + 1)] if count else []
    weights = [sum(map(len, groups[start:end])) for start, end in pairwise(edges)]
    most = max(weights, default=1)
    buckets = tuple(
        Bucket(
            x=round(WIDTH * number / count, 2),
            width=round(WIDTH / count, 2),
            first=start + 1,
            last=end,
            kind=max((_WORST.get(group[0].state, _FINE) for group in groups[start:end]), default=_FINE)[1],
            height=round(max(0.25, weights[number] / most), 2),
        )
        for number, (start, end) in enumerate(pairwise(edges))
    )
    rows: dict[str, list[int]] = {}
    for number, group in enumerate(groups, 1):
        if group[0].state in _WORST:
            rows.setdefault(group[0].state, []).append(number)
    jumps = (Jump(state=state, number=len(found), rows=tuple(found[:_JUMPS])) for state, found in rows.items())
    return Strip(buckets=buckets, jumps=tuple(jumps))
