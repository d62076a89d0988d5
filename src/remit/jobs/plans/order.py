"""Which node waits for which: loops in a graph of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Edges = Mapping[str, Iterable[str]]
"""Each node and the nodes it waits for; a name that is not a node is ignored."""


def loops(edges: Edges) -> list[list[str]]:
    """Loops `[a, b, …]`: a waits for b, and so on, the last for a; without their members no loop is left.

    A node that waits for itself is a loop of one; apart from those no node is in two of them. Each begins with the
    member that comes first in `edges`, and they are in that order.
    """
    rank = {name: index for index, name in enumerate(edges)}
    found = [[name] for name, others in edges.items() if name in others]
    waits = {name: {other for other in others if other in rank} - {name} for name, others in edges.items()}
    waited_for_by: dict[str, list[str]] = {name: [] for name in edges}
    for name, others in waits.items():
        for other in others:
            waited_for_by[other].append(name)
    _release(waits, waited_for_by, [name for name, others in waits.items() if not others])
    while waits:  # each node left waits for another that is left
        loop = _walk(waits, rank)
        first = loop.index(min(loop, key=rank.__getitem__))
        found.append(loop[first:] + loop[:first])
        _release(waits, waited_for_by, loop)
    return sorted(found, key=lambda loop: rank[loop[0]])


def _release(waits: dict[str, set[str]], waited_for_by: Mapping[str, list[str]], names: list[str]) -> None:
    """Remove the named nodes, and then each node that no longer waits for another."""
    free = list(names)
    while free:
        gone = free.pop()
        if waits.pop(gone, None) is None:
            continue
        for name in waited_for_by[gone]:
            if name in waits:
                waits[name].discard(gone)
                if not waits[name]:
                    free.append(name)


def _walk(waits: Mapping[str, set[str]], rank: Mapping[str, int]) -> list[str]:
    """The loop that is met by following, from the first node, the first of the nodes each waits for."""
    path: dict[str, None] = {}
    name = next(iter(waits))
    while name not in path:
        path[name] = None
        name = min(waits[name], key=rank.__getitem__)
    steps = list(path)
    return steps[steps.index(name) :]
