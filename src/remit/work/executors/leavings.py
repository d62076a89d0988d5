"""Leavings of a run in its checkout: what is taken into a commit, what a rule leaves out, what is half done.

A repository within the checkout is never looked into, for git would do so by the settings of that one, which can name
programs. So it is with what stands under a filter: a filter is a program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from remit.atomic import clear_place
from remit.process.git import Git
from remit.redact import line

_NOTES: Final = (":(glob)**/.aider*", ":(glob)**/.aider*/**")
"""Files that tools leave behind and that do not belong to the work."""
_GITLINK: Final = "160000 "
_NO_FILTER: Final = frozenset({"unspecified", "set", "unset"})
_IGNORING: Final = ".gitignore"
_SHOWN: Final = 5
_KEPT: Final = 64_000_000
"""Bytes of what was to be left out that are kept at most."""
HALF_DONE: Final = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a sequence of commits",
    "BISECT_LOG": "a bisection",
}
_TRACES: Final = ("MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "REBASE_HEAD")


class LeftOut(NamedTuple):
    """Something that lies in a checkout and in no commit."""

    path: str
    reason: str
    standing: bool = False
    """Whether that was so before the run: by the rules of the commit that it began at, or by one of Remit's."""

    def __str__(self) -> str:
        return f"{line(self.path)} ({self.reason})"


def shown(left: Sequence[LeftOut]) -> str:
    """Return what was left out in words; the weightiest first."""
    ranked = sorted(left, key=lambda each: each.standing)
    more = f" and {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
    return ", ".join(str(each) for each in ranked[:_SHOWN]) + more


async def take_in(run: Git, head: str, base: str) -> str:
    """Have the index hold what lies in the checkout, as a commit on `head` would; return its tree.

    `base` is what the run began at: by its rules a filter holds.
    """
    await run("read-tree", head)
    closed = [*await _gitlinks(run), *_nested(run.tree)]
    rules = [".", *map(_excluding, _NOTES), *(_excluding(f":(top,literal){path}") for path in closed)]
    await run("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=_joined(rules))
    differ = await run.items("diff", "--cached", "--name-only", "--no-renames", "-z", head, "--")
    if filtered := await _filtered(run, base, differ):
        before = await run.items("ls-tree", "-r", "-z", head)
        gone = [f"0 {'0' * len(head)}\t{path}" for path in filtered]
        there = [entry for entry in before if entry.partition("\t")[2] in filtered]
        await run("update-index", "-z", "--index-info", stdin=_joined([*gone, *there]))
    return await run("write-tree")


async def left_out_of(run: Git, base: str) -> tuple[LeftOut, ...]:
    """Return what lies in a checkout and is not in its index, by the reason; `base` is what the run began at."""
    differ = await run.items("ls-files", "--others", "--modified", "--exclude-standard", "-z")
    notes = await run.items("ls-files", "--others", "--modified", "-z", "--", *_NOTES)
    ignored = await run.items("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    changed = await run.items("diff", "--cached", "--name-only", "--no-renames", "-z", base, "--")
    standing = not any(PurePosixPath(path).name == _IGNORING for path in changed)
    own = [".git"] if (run.tree / ".git").is_dir() else []
    left = [LeftOut(path, "a repository of its own") for path in (*own, *_nested(run.tree))]
    left += [LeftOut(path, "a submodule") for path in await _gitlinks(run) if _holds(run.tree / path)]
    left += [LeftOut(_note(path), "notes of its tool", standing=True) for path in notes]
    for path, name in (await _filtered(run, base, differ)).items():
        left.append(LeftOut(path, f"under the filter {name}, which is not run"))
    left += [LeftOut(path.rstrip("/"), "ignored", standing) for path in ignored]
    outermost: dict[str, LeftOut] = {}
    for each in left:
        if outermost.keys().isdisjoint({each.path, *map(str, PurePosixPath(each.path).parents)}):
            outermost[each.path] = each
    return tuple(outermost.values())


def moved(tree: Path, left: Iterable[LeftOut], keep: Path) -> None:
    """Move what no commit holds out of a checkout; of what was to be left out, what is not large. Raise OSError."""
    room = _KEPT
    for size, each in sorted((_size(tree / each.path) if each.standing else 0, each) for each in left):
        room -= size
        if room >= 0:
            place = keep / each.path
            place.parent.mkdir(parents=True, exist_ok=True)
            clear_place(place)
            (tree / each.path).rename(place)


def cleared(place: Path, common: Path, since: int) -> tuple[str, ...]:
    """Take away what programs that have ended left in git's own state; return what it was, in words.

    `place` is what a repository keeps of the one checkout: all of it was theirs. In the repository itself, theirs are
    the locks of names that are younger than their beginning and that no process holds.
    """
    own = sorted(place.rglob("*.lock"))
    shared = [*(common / "refs").rglob("*.lock"), common / "packed-refs.lock"]
    young = [lock for lock in shared if _changed(lock) >= since]
    held = _open_files() if young else set()
    locks = [*own, *(lock for lock in young if str(lock.resolve()) not in held)]
    half = {HALF_DONE[name]: None for name in HALF_DONE if (place / name).exists()}
    for path in (*locks, *(place / name for name in (*HALF_DONE, *_TRACES))):
        clear_place(path)
    names = [f"the lock {lock.relative_to(place if lock.is_relative_to(place) else common)}" for lock in locks]
    return (*names, *(f"{name} that was not finished" for name in half))


async def _gitlinks(run: Git) -> list[str]:
    entries = await run.items("ls-files", "--stage", "-z")
    return [entry.partition("\t")[2] for entry in entries if entry.startswith(_GITLINK)]


async def _filtered(run: Git, base: str, paths: list[str]) -> dict[str, str]:
    """Return those of some paths that stand under a filter, by the rules of a commit, with its name."""
    if not paths:
        return {}
    env = {"GIT_INDEX_FILE": f"{run.index}.rules"}
    await run("read-tree", base, env=env)
    said = await run.items("check-attr", "--cached", "-z", "--stdin", "filter", env=env, stdin=_joined(paths))
    return {path: name for path, name in zip(said[::3], said[2::3], strict=True) if name not in _NO_FILTER}


def _nested(folder: Path) -> list[str]:
    """Return the folders below a checkout that are repositories of their own, as git names paths."""
    found = []
    for place, folders, files in os.walk(folder):
        if place != str(folder) and any(name.lower() == ".git" for name in (*folders, *files)):
            found.append(Path(place).relative_to(folder).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if name.lower() != ".git"]
    return found


def _holds(path: Path) -> bool:
    return path.is_file() or path.is_symlink() or (path.is_dir() and any(path.iterdir()))


def _note(path: str) -> str:
    """Return the file or the folder whose name says that a tool left it."""
    return re.sub(r"((?:^|/)\.aider[^/]*).*", r"\1", path, count=1)


def _excluding(rule: str) -> str:
    return rule.replace(":(", ":(exclude,", 1)


def _joined(items: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(item) + b"\0" for item in items)


def _size(path: Path) -> int:
    files = (Path(place, name) for place, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in (files if path.is_dir() else [path]))


def _changed(file: Path) -> int:
    with suppress(OSError):
        return file.lstat().st_mtime_ns
    return -1


def _open_files() -> set[str]:
    """Return the files that processes hold open here, as far as they can be seen."""
    return {file for process in Path("/proc").glob("[0-9]*") for file in _open_in(process / "fd")}


def _open_in(descriptors: Path) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or belongs to another user
        for name in os.listdir(descriptors):  # noqa: PTH208 - no path is needed
            with suppress(OSError):
                yield os.readlink(descriptors / name)  # noqa: PTH115 - the same
