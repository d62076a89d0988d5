"""The way of a call: the files that it enters from a recipe to the tool's body, and the moves between them.

`python -m bench.walk` prints the way.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from bench.entered import Walk
from bench.lab import ROOT, Lab
from bench.measure import Mark, Reading, Result, against
from bench.subject import remit_in
from remit import Run, recipe, tool

WARM, TRIES = 50, 5
"""Calls before those that are followed: by then nothing is loaded or compiled for the first time."""
FILES_AT_MOST, MOVES_AT_MOST, PROCESS_FILES_AT_MOST = 38, 65, 200
_POLICY: Final = '[[policy.rules]]\nid = "outbox"\neffect = "allow"\ntools = "outbox.*"\n'
_WORKFLOW: Final = '[executors.shell]\nprogram = "true"\n'
_QUESTION: Final = ("work", "run", "local#1", "--executor", "shell")


async def walk_of_a_call(folder: Path) -> Walk:
    """Follow a read-only call on SQLite, warm, from `run.call` to the first line of the tool.

    The shortest of some: a run that has gone on for long gives way, and then other tasks are followed too.
    """
    walks = [Walk() for _ in range(TRIES)]

    @tool("bench.followed", level="L0")
    async def followed(number: int) -> int:
        if number >= WARM:
            walks[number - WARM].end()
        return number

    @recipe("bench.walks")
    async def follow(run: Run) -> None:
        for number in range(WARM):
            await run.call("bench.followed", {"number": number})
        for number, walk in enumerate(walks, WARM):
            walk.begin()
            await run.call("bench.followed", {"number": number})

    async with remit_in(folder, recipes=[follow], tools=[followed]) as remit:
        await remit.run(follow())
    return min(walks, key=lambda walk: walk.moves)


async def walked(lab: Lab) -> list[Result]:
    """Files and moves between `run.call` and the tool's body: what a reader of the code follows."""

    async def files() -> Reading:
        return Reading((await walk_of_a_call(lab.folder)).files)

    async def moves() -> Reading:
        return Reading((await walk_of_a_call(lab.folder)).moves)

    note = "from run.call to the tool"
    return [
        *await against("way of a call, files", "files", files, None, note, mark=Mark(FILES_AT_MOST), rounds=1),
        *await against("way of a call, moves", "moves", moves, None, note, mark=Mark(MOVES_AT_MOST), rounds=1),
    ]


async def asked(lab: Lab) -> list[Result]:
    """Files that a process executes that hands an issue to an executor, and ends with the question whether it may."""

    async def sample() -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            return Reading(await asyncio.to_thread(_files_of_a_question, Path(own)))

    note = f"remit {' '.join(_QUESTION)}"
    mark = Mark(PROCESS_FILES_AT_MOST)
    return await against("process that asks a question, files", "files", sample, None, note, mark=mark, rounds=1)


def _files_of_a_question(folder: Path) -> int:
    (folder / "remit.toml").write_text(_POLICY)
    (folder / "workflow.toml").write_text(_WORKFLOW)
    run = partial(subprocess.run, cwd=folder, capture_output=True, check=False, text=True)
    environment = {**os.environ, "REMIT_TRUST": "1", "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for words in (("init", "--quiet"), (*who, "commit", "--quiet", "--allow-empty", "--message", "Begin")):
        run(["git", *words], env=environment)
    run([sys.executable, "-m", "remit", "work", "issue", "Nothing"], env=environment)
    counted = run([sys.executable, "-m", "bench.entered", *_QUESTION], env=environment)
    assert "waits for approval" in counted.stdout + counted.stderr, counted.stderr
    return int(counted.stderr.rpartition("files: ")[2])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        walk = asyncio.run(walk_of_a_call(Path(own)))
    for file, names in walk.visits():
        print(f"{file:40} {' '.join(names)}")
    print(f"{walk.files} files, {walk.moves} moves")
