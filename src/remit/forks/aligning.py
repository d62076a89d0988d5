"""Aligns the steps of two runs by place, tool and arguments. Pure.

A run is a tree: steps in order, and gathers of branches that run side by side. The items of one branch are laid beside
those of the same branch of the other run, so that a step that was put in moves none that follows it: first those that
are equal in tool and arguments, then between these the ones of the same tool, whose arguments differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_MOST: Final = 3_000
"""Items between two equal beginnings and ends that are compared each with each; more are taken as they come."""


class Mark(NamedTuple):
    """The marks of a step that it is found again by."""

    step: str
    what: str
    """Tool of it, or its kind of effect."""
    given: str
    """Digest of what it was given; empty: not known, or nothing."""


class _Item(NamedTuple):
    """Item of a branch: a step with what lies below it, or the steps of a gather or of one of its branches."""

    key: tuple[str, int]
    place: str
    marks: tuple[Mark, ...]

    @property
    def name(self) -> str:
        """Return its name within its branch."""
        return self.place.rpartition(".")[2]

    @property
    def own(self) -> bool:
        """Return whether it is a step itself."""
        return self.marks[0].step == self.place


def aligned(left: Sequence[Mark], right: Sequence[Mark]) -> list[tuple[str, str]]:
    """Return pairs of steps, in order; an empty one has no counterpart."""
    return list(_laid(_items("", left), _items("", right)))


def _items(prefix: str, marks: Sequence[Mark]) -> list[_Item]:
    """The items of a branch, in the order of their first steps."""
    items: dict[str, list[Mark]] = {}
    for mark in marks:
        items.setdefault(prefix + mark.step[len(prefix) :].partition(".")[0], []).append(mark)
    return [_Item(_key(place, below), place, tuple(below)) for place, below in items.items()]


def _key(place: str, marks: Sequence[Mark]) -> tuple[str, int]:
    first = marks[0]
    if first.step == place:
        return first.what, hash(first.given)
    return "gather", hash(tuple((mark.what, mark.given) for mark in marks))


def _laid(left: Sequence[_Item], right: Sequence[_Item]) -> Iterator[tuple[str, str]]:
    begin = 0
    while begin < min(len(left), len(right)) and left[begin].key == right[begin].key:
        yield from _pair(left[begin], right[begin])
        begin += 1
    end = 0
    while end < min(len(left), len(right)) - begin and left[-1 - end].key == right[-1 - end].key:
        end += 1
    mine, its = left[begin : len(left) - end], right[begin : len(right) - end]
    if max(len(mine), len(its)) > _MOST:
        yield from _changed(mine, its)
    else:
        matcher = SequenceMatcher(None, [one.key for one in mine], [one.key for one in its], autojunk=False)
        for tag, one, two, three, four in matcher.get_opcodes():
            if tag == "equal":
                for first, second in zip(mine[one:two], its[three:four], strict=True):
                    yield from _pair(first, second)
            else:
                yield from _changed(mine[one:two], its[three:four])
    for first, second in zip(left[len(left) - end :], right[len(right) - end :], strict=True):
        yield from _pair(first, second)


def _changed(left: Sequence[_Item], right: Sequence[_Item]) -> Iterator[tuple[str, str]]:
    """Items that are not equal: those of the same kind in order, at the same place if there is one; others alone."""
    at = 0
    places = {(item.key[0], item.name): index for index, item in enumerate(right)}
    taken = {places.get((item.key[0], item.name)) for item in left}
    for item in left:
        place = places.get((item.key[0], item.name))
        if place is None or place < at:
            later = (index for index in range(at, len(right)) if index not in taken)
            place = next((index for index in later if right[index].key[0] == item.key[0]), None)
        if place is None:
            yield from ((mark.step, "") for mark in item.marks)
            continue
        yield from (("", mark.step) for other in right[at:place] for mark in other.marks)
        yield from _pair(item, right[place])
        at = place + 1
    yield from (("", mark.step) for other in right[at:] for mark in other.marks)


def _pair(left: _Item, right: _Item) -> Iterator[tuple[str, str]]:
    """Two items that belong together, and what lies below them."""
    if left.own and right.own:
        yield left.place, right.place
    mine, its = left.marks[left.own :], right.marks[right.own :]
    if mine or its:
        yield from _laid(_items(f"{left.place}.", mine), _items(f"{right.place}.", its))
