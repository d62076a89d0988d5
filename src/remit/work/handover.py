"""Handing over: what the next run of an issue is told of those before it, and which files deserve its attention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.work.document import write_document
from remit.work.pack import RESULT, STDOUT, Contents, ContextPack

if TYPE_CHECKING:
    from remit.work.order import WorkOrder
    from remit.work.result import WorkResult
    from remit.work.unit import Run, WorkUnit

RUNS: Final = "runs"
"""The folder of a pack in which results and logs of runs before are."""
_MOST_RUNS: Final = 5
_MOST_FILES: Final = 100
_TAIL: Final = 64_000
_PATH: Final = re.compile(r"[\w./@+-]*[\w/]")


def contents_for(order: WorkOrder, unit: WorkUnit, results: Mapping[str, WorkResult], root: Path) -> Contents:
    """Return what goes into the pack of a run: links, and what the last runs before it left below `root`."""
    before = [run for run in unit.runs.values() if run.run_id != order.run_id][-_MOST_RUNS:]
    files: dict[str, bytes] = {}
    links = [one for one in (order.issue_ref, order.spec_ref) if one]
    links += [f"builds on {one}" for one in order.depends_on]
    for run in reversed(before):
        result = results.get(run.run_id)
        links += _told(run, result)
        if result is not None:
            files[f"{RUNS}/{run.run_id}/{RESULT}"] = write_document(result)
        if tail := _tail_of(ContextPack.of(root, order.issue, run.run_id)):
            files[f"{RUNS}/{run.run_id}/{STDOUT}"] = tail
    return Contents(links=tuple(links), files=files)


def named_files(text: str, folder: Path) -> tuple[str, ...]:
    """Return the files and folders of a checkout that a text names, as it names them; hidden ones are left out."""
    words = dict.fromkeys(word.removeprefix("./") for word in _PATH.findall(text) if "/" in word or "." in word)
    found = (word for word in words if _is_within(word) and (folder / word).exists())
    return tuple(word for _, word in zip(range(_MOST_FILES), found, strict=False))


def _is_within(path: str) -> bool:
    return not path.startswith("/") and all(part and not part.startswith(".") for part in path.rstrip("/").split("/"))


def _told(run: Run, result: WorkResult | None) -> Iterator[str]:
    why = f": {run.reason}" if run.reason else ""
    yield f"run {run.run_id} by {run.executor}, {result.status if result is not None else run.standing}{why}"
    if result is None:
        return
    if result.summary:
        yield f"it says: {' '.join(result.summary.split())}"
    changes = (("pull request", result.changes.pr), ("commit", result.changes.commit))
    yield from (f"{name} {value}" for name, value in changes if value)
    yield from (f"{test.result}: {test.command}" for test in result.tests if test.command)
    yield from (f"open question: {' '.join(question.split())}" for question in result.questions)


def _tail_of(pack: ContextPack) -> bytes:
    """Return the end of what a run wrote; empty if nothing is there."""
    log = pack.open_log(STDOUT)
    if log is None:
        return b""
    with log:
        size = log.seek(0, 2)
        log.seek(max(0, size - _TAIL))
        return log.read(_TAIL)
