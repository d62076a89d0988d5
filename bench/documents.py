"""The index of a folder: reading it for the first time, asking it, and asking after a file has changed.

All of it is one thread that computes, so it is measured by processor time: a busy machine changes the clock alone.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

import apsw

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.files.directory import ConfinedDirectory
from remit.files.index import rank
from remit.files.index.search import FolderIndex, IndexAnswer
from remit.files.index.store import IndexFile, cut
from remit.threads import StopEvent

FILES, SECTIONS, QUERIES, ROUNDS = 2_000, 50, 20, 3
"""A hundred thousand passages."""
_WORDS, _VOCABULARY = 60, 20_000
_ASKED = "w150 w900 w4000"
_SCHEMA = (
    "CREATE VIRTUAL TABLE words USING fts5 (body, content = '', tokenize = 'porter unicode61 remove_diacritics 2')"
)
_SELECT = "SELECT rowid, bm25(words) AS weight FROM words WHERE words MATCH ? ORDER BY weight LIMIT 200"


class _Library(NamedTuple):
    """A folder of Markdown files, and their passages."""

    folder: Path
    passages: list[str]

    def searched_from(self, beside: Path) -> FolderIndex:
        return FolderIndex(IndexFile(beside, self.folder), ConfinedDirectory(self.folder), self.folder)


def _library(folder: Path) -> _Library:
    """Words as often as in a language: the n-th is n times as rare as the first."""
    chance = random.Random(15)
    words = [f"w{number}" for number in range(_VOCABULARY)]
    weights = [1 / (number + 1) for number in range(_VOCABULARY)]
    passages: list[str] = []
    for number in range(FILES):
        chosen = chance.choices(words, weights, k=SECTIONS * _WORDS)
        sections = [" ".join(chosen[at : at + _WORDS]) for at in range(0, len(chosen), _WORDS)]
        text = "".join(f"## Section {at}\n\n{body} {'.' * 350}\n\n" for at, body in enumerate(sections))
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.md").write_text(text, encoding="utf-8")
        passages += [text[piece.start : piece.end] for piece in cut("f.md", text)]
    return _Library(folder, passages)


def _ask(index: FolderIndex) -> IndexAnswer:
    return index.search(_ASKED, 10, StopEvent(), lambda _done, _total: None)


async def indexed(lab: Lab) -> list[Result]:
    """A folder that is searched for the first time; the floor is the same full-text index without files."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        library = _library(Path(own) / "library")

        async def sample() -> Reading:
            with tempfile.TemporaryDirectory(dir=own) as beside:
                watch = Watch()
                hits = _ask(library.searched_from(Path(beside)))
                reading = watch.processor_rate(hits.passages)
            assert hits.passages == len(library.passages)
            return reading

        async def floor() -> Reading:
            with tempfile.TemporaryDirectory(dir=own) as beside:
                watch = Watch()
                _bare(library, Path(beside)).close()
                return watch.processor_rate(len(library.passages))

        note = "floor: the passages into bare FTS5; both by processor time"
        return await against(
            "folder index, first search", "per second", sample, floor, note, mark=Mark(15_000), rounds=ROUNDS
        )


async def searched(lab: Lab) -> list[Result]:
    """A search of 100,000 passages, with the look at every file; the floor is bare FTS5."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        library = _library(Path(own) / "library")
        index, bare = library.searched_from(Path(own)), _bare(library, Path(own))
        _ask(index)
        expression = rank.expression(_ASKED)

        async def sample() -> Reading:
            watch = Watch()
            for _ in range(QUERIES):
                assert _ask(index).passages == len(library.passages)
            return watch.processor_millis(QUERIES)

        async def changed() -> Reading:
            watch = Watch()
            for number in range(QUERIES):
                (library.folder / "f0.md").write_text(f"## Changed\n\nw150 heading {number}", encoding="utf-8")
                assert _ask(index).matches
            return watch.processor_millis(QUERIES)

        async def floor() -> Reading:
            watch = Watch()
            for _ in range(QUERIES):
                bare.execute(_SELECT, (expression,)).fetchall()
            return watch.processor_millis(QUERIES)

        note = "floor: the query on bare FTS5; both by processor time"
        reading = await against("folder index, a search", "ms", sample, floor, note, mark=Mark(50), rounds=ROUNDS)
        after = await against(
            "folder index, a search after a change", "ms", changed, floor, note, mark=Mark(50), rounds=ROUNDS
        )
        bare.close()
        return [*reading, *after]


def _bare(library: _Library, beside: Path) -> apsw.Connection:
    db = apsw.Connection(str(beside / "bare.db"))
    db.execute(_SCHEMA)
    with db:
        db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", enumerate(library.passages, 1))
    return db
