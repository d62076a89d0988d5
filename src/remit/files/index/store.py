"""The index file of one folder: an SQLite full-text index of passages, and what was known of each file.

It is a cache and is treated as one. The process that opens it holds an exclusive lock (freed by the system if the
process dies), so there is never more than one connection to it, and a file that is damaged or of another version is
deleted and made again. It holds the words of the passages, not their text: what a search returns is read from the files
themselves. Only of files whose text took long to find, such as PDFs, it holds the text too.

Cutting a text into passages: pieces a person can read alone, that a search can rank and a citation can point into.

 A passage ends where the text does so by itself: before a heading or a definition, else after a paragraph, else
after a line, and in the middle of one only where a single line is longer than a passage may be.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

import apsw
import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.outline import PartMark, outline, scopes
from remit.files.text import ReadableText
from remit.files.words import apart, spaced
from remit.regex import regex
from remit.threads import StopEvent, wait_for_lock

LONGEST: Final = 1_500
"""Characters of a passage at most."""
_SHORTEST: Final = 350
"""A heading or definition does not end a passage that is shorter: two small ones are read together."""
_PARAGRAPH_FROM: Final = 700
_PARAGRAPH: Final = regex(r"\n(?:[ \t\r]*+\n|(?=(?:[-*+•]|\d{1,3}[.)])[ \t]))")
"""The end of a paragraph: an empty line, or the line before an item of a list."""


class IndexPassage(NamedTuple):
    """A piece of a text."""

    start: int
    end: int
    heading: str
    """Titles above it: section titles, or the qualified name of a definition; may be empty."""
    names: str
    """Every name it defines or begins in, for the index."""


class _Text(NamedTuple):
    """A text with the places where a passage may end."""

    text: str
    marks: list[PartMark]
    scopes: list[str]
    breaks: list[int]
    paragraphs: list[int]


def cut(path: str, text: str, pages: Sequence[int] = ()) -> list[IndexPassage]:
    """The passages of a file's text in order, without the blanks around them; none is on two `pages`."""
    marks = outline(path, text)
    paragraphs = [match.end() for match in _PARAGRAPH.finditer(text)]
    whole = _Text(text, marks, scopes(path, marks), [mark.at for mark in marks], paragraphs)
    passages: list[IndexPassage] = []
    start = 0
    while start < len(text):
        following = bisect_right(pages, start)
        end = min(_end(whole, start), pages[following] if following < len(pages) else len(text))
        passage = _passage(whole, start, end)
        if passage is not None:
            passages.append(passage)
        start = end
    return passages


def _end(whole: _Text, start: int) -> int:
    """Return where the passage that begins at `start` ends."""
    text, limit = whole.text, start + LONGEST
    following = bisect_left(whole.breaks, start + _SHORTEST)
    if following < len(whole.breaks) and whole.breaks[following] <= limit:
        return whole.breaks[following]
    if len(text) <= limit:
        return len(text)
    last = bisect_right(whole.paragraphs, limit) - 1
    if last >= 0 and whole.paragraphs[last] >= start + _PARAGRAPH_FROM:
        return whole.paragraphs[last]
    for stop in ("\n", " "):
        end = text.rfind(stop, start + _SHORTEST, limit)
        if end >= 0:
            return end + 1
    return limit


def _passage(whole: _Text, start: int, end: int) -> IndexPassage | None:
    piece = whole.text[start:end]
    body = piece.strip()
    if not body:
        return None
    first = start + len(piece) - len(piece.lstrip())
    above = bisect_right(whole.breaks, first) - 1
    heading = whole.scopes[above] if above >= 0 else ""
    inside = range(bisect_left(whole.breaks, start), bisect_left(whole.breaks, end))
    names = dict.fromkeys([heading, *[whole.marks[i].name for i in inside]])
    return IndexPassage(first, first + len(body), heading, " ".join(names))


VERSION: Final = 3
"""Of the tables, of how text is read and of how it is cut: another one means another index."""

T = TypeVar("T")

State = Literal["text", "binary", "too_large", "unreadable"]

_SCHEMA: Final = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    state TEXT NOT NULL, sha256 TEXT NOT NULL, title TEXT NOT NULL
);
CREATE TABLE passages (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    heading TEXT NOT NULL);
CREATE INDEX passages_file ON passages (file);
CREATE TABLE texts (file INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
    title, path, heading, body, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_HITS: Final = """
SELECT files.path, files.title, files.sha256, passages.start, passages.end, passages.heading,
       -bm25(words, 2.0, 4.0, 3.0, 1.0) AS weight
FROM words JOIN passages ON passages.id = words.rowid JOIN files ON files.id = passages.file
WHERE words MATCH ? ORDER BY weight DESC, passages.id LIMIT ?
"""


class IndexedFile(NamedTuple):
    """A file as the index knows it."""

    id: int
    size: int
    mtime_ns: int
    sha256: str


class Indexed(NamedTuple):
    """A file as it was read."""

    path: str
    size: int
    mtime_ns: int
    state: State
    sha256: str = ""
    title: str = ""
    passages: Sequence[tuple[IndexPassage, str]] = ()
    """Each passage with its text as the index is to see it."""
    readable: ReadableText | None = None
    """The text, if it is to be kept."""


class PassageHit(NamedTuple):
    """A passage that matches, best first by `weight`."""

    path: str
    title: str
    sha256: str
    start: int
    end: int
    heading: str
    weight: float


class DamagedError(Exception):
    """The index file cannot be used and has to be made again."""


class IndexStore:
    """One open index; used by one thread at a time, under the lock."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def known(self) -> dict[str, IndexedFile]:
        """Every file the index knows, by path."""
        rows = self._db.execute("SELECT path, id, size, mtime_ns, sha256 FROM files")
        return _sound({path: rest for path, *rest in rows}, dict[str, IndexedFile])

    def counts(self) -> tuple[dict[State, int], int]:
        """The number of files in each state, and of passages."""
        states = dict(self._db.execute("SELECT state, count(*) FROM files GROUP BY state"))
        [(passages,)] = self._db.execute("SELECT count(*) FROM passages")
        return _sound((states, passages), tuple[dict[State, int], int])

    def unread(self) -> Iterator[tuple[str, State]]:
        """Each file that has no text here, and its state, by path."""
        rows = self._db.execute("SELECT path, state FROM files WHERE state != 'text' ORDER BY path")
        return iter(_sound(list(rows), list[tuple[str, State]]))

    def forget(self, file: int) -> None:
        """Drop a file and its passages."""
        self._db.execute("DELETE FROM texts WHERE file = ?", (file,))
        self._db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE file = ?)", (file,))
        self._db.execute("DELETE FROM passages WHERE file = ?", (file,))
        self._db.execute("DELETE FROM files WHERE id = ?", (file,))

    def touch(self, file: int, size: int, mtime_ns: int) -> None:
        """Note that a file was found unchanged under a new modification time."""
        self._db.execute("UPDATE files SET size = ?, mtime_ns = ? WHERE id = ?", (size, mtime_ns, file))

    def add(self, file: Indexed, folder: str) -> None:
        """Add a file that the index does not know; `folder` is what the folder is called that all of them are in."""
        db = self._db
        db.execute(
            "INSERT INTO files (path, size, mtime_ns, state, sha256, title) VALUES (?, ?, ?, ?, ?, ?)",
            (file.path, file.size, file.mtime_ns, file.state, file.sha256, file.title),
        )
        number = db.last_insert_rowid()
        if file.readable is not None:
            packed = zlib.compress(msgspec.msgpack.encode(file.readable), 1)
            db.execute("INSERT INTO texts (file, text) VALUES (?, ?)", (number, packed))
        [(last,)] = db.execute("SELECT coalesce(max(id), 0) FROM passages")
        db.executemany(
            "INSERT INTO passages (id, file, start, end, heading) VALUES (?, ?, ?, ?, ?)",
            ((i, number, p.start, p.end, p.heading) for i, (p, _) in enumerate(file.passages, last + 1)),
        )
        title, path = words_of(file.title), words_of(f"{folder} {file.path}")
        db.executemany(
            "INSERT INTO words (rowid, title, path, heading, body) VALUES (?, ?, ?, ?, ?)",
            ((i, title, path, words_of(p.names), body) for i, (p, body) in enumerate(file.passages, last + 1)),
        )

    def text(self, path: str) -> ReadableText | None:
        """The text of a file, if it is kept."""
        query = "SELECT texts.text FROM texts JOIN files ON files.id = texts.file WHERE files.path = ?"
        for (packed,) in self._db.execute(query, (path,)):
            try:
                return msgspec.msgpack.decode(zlib.decompress(packed), type=ReadableText)
            except (TypeError, zlib.error, msgspec.DecodeError) as exc:
                raise DamagedError(str(exc)) from exc
        return None

    def hits(self, expression: str, limit: int) -> list[PassageHit]:
        """The passages that match an FTS5 expression."""
        return _sound(list(self._db.execute(_HITS, (expression, limit))), list[PassageHit])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with self._db:
            yield


class IndexFile:
    """The index file of one folder, found by the folder's real path."""

    def __init__(self, index_dir: Path, folder: Path, kind: str = "") -> None:
        name = sha256(kind.encode() + os.fsencode(folder)).removeprefix("sha256:")[:32]
        self.path = index_dir / f"{name}.db"
        self._lock = index_dir / f"{name}.lock"

    @contextmanager
    def opened(self, stop: StopEvent) -> Iterator[tuple[IndexStore, int]]:
        """The store, locked, and the file system's own time in nanoseconds. Raises ProviderError, DamagedError."""
        try:
            self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise _unusable(self._lock.parent, exc.strerror or str(exc)) from exc
        try:
            wait_for_lock(fd, stop)
            os.utime(fd)
            with _translated(self.path):
                db = _connect(self.path)
                try:
                    yield IndexStore(db), os.fstat(fd).st_mtime_ns
                finally:
                    db.close()
        finally:
            os.close(fd)

    def remove(self, stop: StopEvent) -> None:
        """Delete the index, so that the next `opened` begins with an empty one."""
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, stop)
            for suffix in ("", "-journal"):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).unlink()
        finally:
            os.close(fd)


def words_of(names: str) -> str:
    """Names as the index is to see them: whole, and taken apart."""
    parts = apart(names)
    return spaced(names if parts == names else f"{names} {parts}")


def _sound(rows: object, shape: type[T]) -> T:
    """Rows as what they must be: SQLite itself would keep anything in any column."""
    try:
        return msgspec.convert(rows, shape)
    except msgspec.ValidationError as exc:
        raise DamagedError(str(exc)) from exc


def _connect(path: Path) -> apsw.Connection:
    # Made here, for its owner alone whatever the folder; SQLite gives the file beside it the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    db = apsw.Connection(str(path))
    try:
        db.pragma("locking_mode", "EXCLUSIVE")
        db.pragma("journal_mode", "TRUNCATE")
        db.pragma("trusted_schema", False)  # noqa: FBT003 - the pragma's value
        version = db.pragma("user_version")
        if version == 0 and not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
            with db:
                db.execute(_SCHEMA)
                db.pragma("user_version", VERSION)
        elif version != VERSION:
            raise DamagedError(f"version {version}")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.FullError as exc:
        raise ProviderError(f"The search index {str(path)!r} cannot grow: {exc}.", code=Code.DISK_FULL) from exc
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError) as exc:
        raise _unusable(path, str(exc)) from exc
    except OSError as exc:
        raise _unusable(path, exc.strerror or str(exc)) from exc
    except apsw.Error as exc:
        raise DamagedError(str(exc)) from exc


def _unusable(path: Path, reason: str) -> ProviderError:
    return ProviderError(
        f"The search index below {str(path)!r} cannot be used: {reason}. "
        "Make that folder writable, or name another one.",
        code=Code.FILE_ACCESS_DENIED,
    )
