"""Bringing an index up to what its folder holds now, reading only the files that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory, WalkEntry
from remit.files.index.store import Indexed, IndexedFile, IndexStore, State, cut
from remit.files.outline import title_of
from remit.files.text import ReadableText, Reader, readable
from remit.files.words import spaced
from remit.threads import StopEvent

LARGEST: Final = 2_000_000
"""Bytes of a file that is still read, unless a search says otherwise."""
FILES_MOST: Final = 200_000
"""Files of a folder that are looked at."""
LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages", "venv"})
"""Folders that hold what was installed or compiled, not written here; hidden ones are left out too."""

_BATCH: Final = 500
"""Files in one transaction: what is done stays done if the call runs out of time, and the next one goes on there."""
_SETTLED_NS: Final = 2_000_000_000
"""A file changed this recently may change again without a new modification time; it is looked at again next time."""

Progress = Callable[[int, int], None]
"""Takes the number of files read and of files to read."""


class Refresh:
    """One pass over a folder."""

    def __init__(
        self,
        store: IndexStore,
        root: ConfinedDirectory,
        name: str,
        now_ns: int,
        *,
        read: Reader = readable,
        largest: int = LARGEST,
    ) -> None:
        self._store = store
        self._root = root
        self._name = name
        self._now_ns = now_ns
        self._read = read
        self._largest = largest

    def run(self, stop: StopEvent, progress: Progress) -> bool:
        """Bring the index up to date with the folder, and say whether it holds more files than are looked at.

        Raises StoppedError; what was done by then is kept.
        """
        entries = survey(self._root, stop)
        truncated = len(entries) > FILES_MOST
        del entries[FILES_MOST:]
        known = self._store.known()
        self._forget(known, {entry.path for entry in entries})
        changed = [entry for entry in entries if _differs(entry, known.get(entry.path))]
        for start in range(0, len(changed), _BATCH):
            with self._store.transaction():
                for entry in changed[start : start + _BATCH]:
                    stop.check()
                    self._update(entry, known.get(entry.path))
            progress(min(start + _BATCH, len(changed)), len(changed))
        return truncated

    def _forget(self, known: dict[str, IndexedFile], present: set[str]) -> None:
        with self._store.transaction():
            for path in known.keys() - present:
                self._store.forget(known[path].id)

    def _update(self, entry: WalkEntry, known: IndexedFile | None) -> None:
        file = self._load(entry)
        if file.state == "unreadable" or file.mtime_ns > self._now_ns - _SETTLED_NS:
            file = file._replace(mtime_ns=0)
        if known is not None and file.sha256 and file.sha256 == known.sha256:
            self._store.touch(known.id, file.size, file.mtime_ns)
            return
        if known is not None:
            self._store.forget(known.id)
        self._store.add(file, self._name)

    def _load(self, entry: WalkEntry) -> Indexed:
        if entry.kind != "file":
            return Indexed(entry.path, entry.size, 0, "unreadable")
        try:
            data, status = self._root.read(entry.path, self._largest)
        except ProviderError as exc:
            state: State = "too_large" if exc.code is Code.FILE_TOO_LARGE else "unreadable"
            return Indexed(entry.path, entry.size, entry.mtime_ns, state)
        file = _indexed(entry.path, self._read(entry.name, data))
        return file._replace(size=status.st_size, mtime_ns=status.st_mtime_ns, sha256=sha256(data))


def survey(root: ConfinedDirectory, stop: StopEvent) -> list[WalkEntry]:
    """Everything in the folder that is for reading or that someone may miss, up to one too many."""
    return list(islice(_files(root, stop), FILES_MOST + 1))


def _files(root: ConfinedDirectory, stop: StopEvent) -> Iterator[WalkEntry]:
    for entry in root.walk(enter=_worth_entering):
        stop.check()
        if entry.kind in {"file", "closed", "unnamed"} and not is_left_out(entry.name):
            yield entry


def _worth_entering(folder: WalkEntry) -> bool:
    return not is_left_out(folder.name)


def is_left_out(name: str) -> bool:
    """Return whether a file or folder of this name, and all it holds, is left out of searches."""
    return name in LEFT_OUT or name.startswith(".")


def _differs(entry: WalkEntry, known: IndexedFile | None) -> bool:
    return known is None or (known.size, known.mtime_ns) != (entry.size, entry.mtime_ns)


def _indexed(path: str, content: ReadableText | None) -> Indexed:
    if content is None:
        return Indexed(path, 0, 0, "binary")
    text = content.text
    passages = [(passage, spaced(text[passage.start : passage.end])) for passage in cut(path, text, content.pages)]
    body = content if content.costly else None
    return Indexed(path, 0, 0, "text", title=content.title or title_of(path, text), passages=passages, readable=body)
