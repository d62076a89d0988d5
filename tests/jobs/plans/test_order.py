from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.jobs.plans.check import loops

names = st.integers(0, 12).map(lambda number: f"n{number}")
graphs = st.dictionaries(names, st.lists(names, max_size=5), max_size=13)


def reaches_itself(edges: dict[str, list[str]], start: str, without: set[str]) -> bool:
    seen: set[str] = set()
    work = [start]
    while work:
        for other in edges.get(work.pop(), []):
            if other == start:
                return True
            if other in edges and other not in seen | without:
                seen.add(other)
                work.append(other)
    return False


@given(graphs)
def test_every_loop_is_one(edges: dict[str, list[str]]) -> None:
    for loop in loops(edges):
        assert len(set(loop)) == len(loop)
        for waiting, other in zip(loop, [*loop[1:], loop[0]], strict=True):
            assert other in edges[waiting]


@given(graphs)
def test_without_the_members_of_the_loops_nobody_waits_for_itself(edges: dict[str, list[str]]) -> None:
    members = {name for loop in loops(edges) for name in loop}
    assert not [name for name in edges if name not in members and reaches_itself(edges, name, members)]


@given(graphs)
def test_longer_loops_share_no_node(edges: dict[str, list[str]]) -> None:
    members = [name for loop in loops(edges) if len(loop) > 1 for name in loop]
    assert len(set(members)) == len(members)


@given(graphs)
def test_each_begins_with_its_first_node_and_they_come_in_order(edges: dict[str, list[str]]) -> None:
    rank = [*edges].index
    found = loops(edges)
    assert all(rank(loop[0]) == min(map(rank, loop)) for loop in found)
    assert [rank(loop[0]) for loop in found] == sorted(rank(loop[0]) for loop in found)


def test_two_separate_loops_are_both_found() -> None:
    assert loops({"a": ["b"], "b": ["a"], "c": ["c"], "d": ["e"], "e": ["f"], "f": ["d", "a"]}) == [
        ["a", "b"],
        ["c"],
        ["d", "e", "f"],
    ]


@pytest.mark.slow
def test_a_long_chain_is_no_deep_recursion() -> None:
    chain = {f"n{number}": [f"n{number + 1}"] for number in range(20_000)}
    assert loops(chain) == []
    ring = chain | {"n20000": ["n0"]}
    assert [len(loop) for loop in loops(ring)] == [20_001]
