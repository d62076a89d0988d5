"""The way of a call is followed from its recipe to its tool, and is no longer than the baseline says."""

from __future__ import annotations

from pathlib import Path

from bench.baseline import load
from bench.entered import Walk
from bench.walk import walk_of_a_call
from remit.ids import new_id


def test_a_walk_counts_the_files_of_remit_that_are_entered_and_no_others() -> None:
    walk = Walk()
    walk.begin()
    new_id("job")
    Path("name").with_suffix(".txt")
    walk.end()
    new_id("job")
    assert [file for file, _ in walk.visits()] == ["ids.py"]
    assert (walk.files, walk.moves) == (1, 0)


async def test_the_way_of_a_call_is_no_longer_than_in_the_baseline(tmp_path: Path) -> None:
    walk = await walk_of_a_call(tmp_path)
    names = [file for file, _ in walk.visits()]
    assert (names[0], names[-1]) == ("jobs/run.py", "tools/function.py")
    longest = {line.result.name: line.result.value for line in load()}
    assert walk.files <= longest["way of a call, files"], "\n".join(names)
    assert walk.moves <= longest["way of a call, moves"], "\n".join(names)
