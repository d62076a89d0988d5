"""A run's own checkout of the repository: a git worktree on a branch of the run.

Whatever lies there was written by the run, so that Remit's git reads it by settings and by an index of its own
(`remit.process.git`). A checkout is known by what the repository has noted of it, and not by what lies in it.

Leavings of a run in its checkout: what is taken into a commit, what a rule leaves out, what is half done.

A repository within the checkout is never looked into, for git would do so by the settings of that one, which can name
programs. So it is with what stands under a filter: a filter is a program.

Where a run begins: at what the runs before it left, in the order in which it can be relied on.

the issue's branch on the remote, or what the last run left here → the commit of a result → a patch → the target branch
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.atomic import clear_place
from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.outbox.remote import GitRemote, branch_of
from remit.parts.work.references import IssueRef
from remit.process.git import Git, commit_of, git, git_on, is_within, repository_at
from remit.redact import line

if TYPE_CHECKING:
    from remit.parts.work.order import WorkOrder
    from remit.parts.work.store import WorkStore
    from remit.parts.work.workflow import OutboxTable


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


class LeftInCheckout(NamedTuple):
    """Something that lies in a checkout and in no commit."""

    path: str
    reason: str
    standing: bool = False
    """Whether that was so before the run: by the rules of the commit that it began at, or by one of Remit's."""

    def __str__(self) -> str:
        return f"{line(self.path)} ({self.reason})"


def shown(entries: Sequence[LeftInCheckout]) -> str:
    """Return what was left out in words; the weightiest first."""
    ranked = sorted(entries, key=lambda each: each.standing)
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


async def left_out_of(run: Git, base: str) -> tuple[LeftInCheckout, ...]:
    """Return what lies in a checkout and is not in its index, by the reason; `base` is what the run began at."""
    differ = await run.items("ls-files", "--others", "--modified", "--exclude-standard", "-z")
    notes = await run.items("ls-files", "--others", "--modified", "-z", "--", *_NOTES)
    ignored = await run.items("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    changed = await run.items("diff", "--cached", "--name-only", "--no-renames", "-z", base, "--")
    standing = not any(PurePosixPath(path).name == _IGNORING for path in changed)
    own = [".git"] if (run.tree / ".git").is_dir() else []
    entries = [LeftInCheckout(path, "a repository of its own") for path in (*own, *_nested(run.tree))]
    entries += [LeftInCheckout(path, "a submodule") for path in await _gitlinks(run) if _holds(run.tree / path)]
    entries += [LeftInCheckout(_note(path), "notes of its tool", standing=True) for path in notes]
    for path, name in (await _filtered(run, base, differ)).items():
        entries.append(LeftInCheckout(path, f"under the filter {name}, which is not run"))
    entries += [LeftInCheckout(path.rstrip("/"), "ignored", standing) for path in ignored]
    outermost: dict[str, LeftInCheckout] = {}
    for each in entries:
        if outermost.keys().isdisjoint({each.path, *map(str, PurePosixPath(each.path).parents)}):
            outermost[each.path] = each
    return tuple(outermost.values())


def moved(tree: Path, entries: Iterable[LeftInCheckout], keep: Path) -> None:
    """Move what no commit holds out of a checkout; of what was to be left out, what is not large. Raise OSError."""
    room = _KEPT
    for size, each in sorted((_size(tree / each.path) if each.standing else 0, each) for each in entries):
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
    items = await run.items("check-attr", "--cached", "-z", "--stdin", "filter", env=env, stdin=_joined(paths))
    return {path: name for path, name in zip(items[::3], items[2::3], strict=True) if name not in _NO_FILTER}


def _nested(folder: Path) -> list[str]:
    """Return the folders below a checkout that are repositories of their own, as git names paths."""
    nested = []
    for place, folders, files in os.walk(folder):
        if place != str(folder) and any(name.lower() == ".git" for name in (*folders, *files)):
            nested.append(Path(place).relative_to(folder).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if name.lower() != ".git"]
    return nested


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


_PATCH: Final = 1_000_000
"""Bytes of a patch that is handed over."""
_BEGUN: Final = "remit-begun"
"""The file in which the repository notes the commit that a checkout began at."""


class Checkout(NamedTuple):
    """A checkout beside its last commit."""

    head: str
    status: str
    """The paths that differ, a line each, as git says it."""
    diff: str


class Settled(NamedTuple):
    """The rest that a run left, beside its commit."""

    left_out: tuple[LeftInCheckout, ...]
    """Files that lie in the checkout and in no commit, because a rule leaves them out."""
    cleared: tuple[str, ...]
    """Locks and half-done operations of git, in words."""


class Worktree:
    """The checkout of one run."""

    def __init__(self, repository: Path, folder: Path, branch: str) -> None:
        self.repository = repository
        self.folder = folder
        self.branch = branch
        self.aside: Path | None = None
        """The present place of something unknown that stood in its own when it was made."""

    @classmethod
    def of(cls, repository: Path, folder: Path, issue: IssueRef, run_id: str) -> Worktree:
        """Return the worktree of a run."""
        return cls(repository, folder, f"run/{issue.file_name}/{run_id}")

    @property
    def home(self) -> Path:
        """The home of the run, beside its worktree."""
        return self.folder.with_name(f"{self.folder.name}.home")

    @property
    def proof(self) -> Worktree:
        """Another checkout beside it, in which a commit is proved: its files lie there, and no others."""
        return Worktree(self.repository, self.folder.with_name(f"{self.folder.name}.proof"), "")

    async def create(self, base: str, patch: bytes = b"", message: str = "") -> str:
        """Check `base` out on the run's branch, unless that was done; return its commit. Raise ProviderError.

        With a patch that applies it is what the patch makes of it, as a commit of its own.
        """
        if (place := await asyncio.to_thread(self._place)) is not None:
            await asyncio.to_thread(self._join, place)
            return await self.head()
        async with git_on(self.repository, self.folder) as run:
            await asyncio.to_thread(self.folder.parent.mkdir, parents=True, exist_ok=True)
            commit = await run.commit_of(base)
            if not commit:
                reason = f"{self.repository} has no commit {base} to begin at. Commit something first."
                raise ProviderError(reason, cause=Code.env_unavailable)
            place = await asyncio.to_thread(self._prepared, run.repository.common)
            try:
                commit = await _patched(run, commit, patch, message) if patch else commit
                if self.branch:
                    await run("update-ref", f"refs/heads/{self.branch}", commit)
                await run("read-tree", "--reset", "-u", commit)
                await asyncio.to_thread(self._note, place, run.index, commit)
            except BaseException:
                clear_place(self.folder)
                clear_place(place)
                raise
        return commit

    async def head(self) -> str:
        """Return the commit that stands there now."""
        async with self._opened() as (run, place):
            return await self._head(run, place)

    async def exists(self) -> bool:
        """Return whether the repository knows the checkout, and it is there."""
        return await asyncio.to_thread(self._place) is not None

    async def has(self, branch: str) -> bool:
        """Return whether the repository has a branch of this name."""
        return bool(await git(self.repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", refusal=""))

    async def commit(self, message: str) -> bool:
        """Commit what was left uncommitted, and let the run's branch end there; return whether there was anything."""
        async with self._opened() as (run, place):
            return await self._committed(run, place, message)

    async def settle(self, message: str) -> Settled:
        """Commit what programs that have ended left; their locks and half-done operations are taken away before."""
        async with self._opened() as (run, place):
            before = await self._before(run, place) if any((place / name).exists() for name in HALF_DONE) else ()
            since = (place / _BEGUN).stat().st_mtime_ns if (place / _BEGUN).exists() else place.stat().st_mtime_ns
            gone = await asyncio.to_thread(cleared, place, run.repository.common, since)
            await self._committed(run, place, message)
            return Settled(await self._left_out(run, place), (*gone, *before))

    async def snapshot(self, message: str) -> str:
        """Return a commit of what is there now, which stands on no branch; the program at work sees nothing of it."""
        async with self._opened() as (run, place):
            return (await self._taken(run, place, message))[0]

    async def look(self) -> Checkout:
        """Return how the checkout differs from its last commit."""
        async with self._opened() as (run, place):
            head = await self._head(run, place)
            await take_in(run, head, await self._base(run, place, head))
            status = await run("diff", "--cached", "--name-status", "--no-renames", head, "--")
            diff = await run("diff", "--cached", "--no-ext-diff", "--no-textconv", head, "--")
            left = await self._left_out(run, place)
            return Checkout(head, "\n".join((*status.splitlines(), *(f"!\t{each}" for each in left))), diff)

    async def follows(self, base: str) -> bool:
        """Return whether a commit is among those that stand behind the present one."""
        return await is_within(self.repository, base, await self.head())

    async def changed(self, base: str, head: str = "") -> list[str]:
        """Return the paths in which `head`, or what stands there, differs from a commit."""
        async with self._opened() as (run, place):
            return await run.changed(base, head or await self._head(run, place))

    async def patch(self, target: str, file: Path) -> None:
        """Write to a file what `target` has not: a line `base COMMIT`, and a patch, unless it is long.

        Who has neither the commits of this run nor those of the runs before can apply it to that commit.
        """
        async with self._opened() as (run, place):
            head = await self._head(run, place)
            base = await run("merge-base", target, head, refusal="")
            form = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", f"--output={file}")
            if base:
                await run("diff", *form, base, head, "--")
                await asyncio.to_thread(_head_line, file, f"base {base}\n".encode())

    async def remove(self, keep: Path | None = None) -> None:
        """Take the checkout away; the branch stays, and so does what was committed on it. Raise ProviderError.

        What no commit holds goes to the folder `keep`, if one is given, before.
        """
        place = await asyncio.to_thread(self._place)
        if place is not None and keep is not None:
            left = (await self.settle("What was left after the run")).left_out
            await asyncio.to_thread(moved, self.folder, left, keep)
        elif place is None and keep is not None and await asyncio.to_thread(os.path.lexists, self.folder):
            raise ProviderError(f"{self.folder} is of no run that {self.repository} knows", cause=None)
        for folder in (self.folder, self.home if not self.branch else None, place):
            if folder is not None:
                await asyncio.to_thread(clear_place, folder)

    async def forget(self) -> bool:
        """Delete the run's branch if another branch or tag holds its commits; return whether it is gone."""
        if not await self.has(self.branch):
            return True
        own = f"refs/heads/{self.branch}"
        holders = await git(self.repository, "for-each-ref", "--contains", own, "--format=%(refname)")
        if {*holders.splitlines()} <= {own}:
            return False
        await git(self.repository, "update-ref", "-d", own)
        return True

    # --- what the repository has noted of it

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[Git, Path]]:
        """Give a git on the checkout, and the folder in which the repository keeps what it knows of it."""
        place = await asyncio.to_thread(self._place)
        if place is None:
            raise ProviderError(f"{self.folder} is no worktree of {self.repository}", cause=Code.env_unavailable)
        async with git_on(self.repository, self.folder) as run:
            yield run, place

    def _place(self) -> Path | None:
        """Return what the repository keeps of the checkout; None if it knows none, or there is none.

        One that was moved with its project is known by its issue and its run.
        """
        mark = self.folder / ".git"
        with suppress(ProviderError):
            worktrees = repository_at(self.repository).common.resolve() / "worktrees"
            noted = [
                (file.parent, Path(file.read_text("utf-8").strip())) for file in sorted(worktrees.glob("*/gitdir"))
            ]
            places = [place for place, where in noted if where == mark]
            places += [
                place for place, where in noted if where.parts[-3:] == mark.parts[-3:] and not where.parent.exists()
            ]
            return places[0] if places and self.folder.is_dir() else None
        return None

    def _prepared(self, common: Path) -> Path:
        """Make the folders of a new checkout; what stands in its place is set aside: it is not known here."""
        if os.path.lexists(self.folder):
            self.aside = self.folder.rename(_free(self.folder, "aside"))
        if self.home.exists():
            self.home.rename(_free(self.home, "aside"))
        self.folder.mkdir()
        worktrees = common.resolve() / "worktrees"
        worktrees.mkdir(exist_ok=True)
        place = worktrees / self.folder.name
        place = _free(place, "") if place.exists() else place
        place.mkdir()
        return place

    def _note(self, place: Path, index: Path, commit: str) -> None:
        """Note a checkout that is whole, as `git worktree add` does."""
        shutil.copyfile(index, place / "index")
        (place / "commondir").write_text("../..\n", encoding="utf-8")
        head = f"ref: refs/heads/{self.branch}" if self.branch else commit
        (place / "HEAD").write_text(f"{head}\n", encoding="utf-8")
        (place / _BEGUN).write_text(commit, encoding="utf-8")
        self._join(place)

    def _join(self, place: Path) -> None:
        """Have the checkout and what the repository notes of it name each other, wherever both lie by now."""
        (place / "gitdir").write_text(f"{self.folder / '.git'}\n", encoding="utf-8")
        mark = self.folder / ".git"
        if not mark.is_dir():  # a run may have made a repository of its own there
            mark.unlink(missing_ok=True)
            mark.write_text(f"gitdir: {place}\n", encoding="utf-8")

    async def _head(self, run: Git, place: Path) -> str:
        """Return the commit that stands there; that of the branch if a program left it at none."""
        head = await run.commit_of(f"worktrees/{place.name}/HEAD")
        return head or await run("rev-parse", "--verify", f"refs/heads/{self.branch}")

    async def _committed(self, run: Git, place: Path, message: str) -> bool:
        commit, head = await self._taken(run, place, message, dated=True)
        await run("update-ref", f"refs/heads/{self.branch}", commit)
        await run("symbolic-ref", f"worktrees/{place.name}/HEAD", f"refs/heads/{self.branch}")  # it may have left it
        await asyncio.to_thread(os.replace, shutil.copyfile(run.index, place / "index.new"), place / "index")
        return commit != head

    async def _before(self, run: Git, place: Path) -> tuple[str, ...]:
        """Keep what the run's branch has and a half-done operation has not come to, such as the rest of a rebase."""
        tip = await run.commit_of(f"refs/heads/{self.branch}")
        if not tip or await run("rev-list", "--count", tip, "--not", await self._head(run, place)) == "0":
            return ()
        await run("update-ref", f"refs/heads/{self.branch}.before", tip)
        return (f"what its branch had before is on {self.branch}.before",)

    async def _left_out(self, run: Git, place: Path) -> tuple[LeftInCheckout, ...]:
        return await left_out_of(run, await self._base(run, place, await self._head(run, place)))

    async def _base(self, run: Git, place: Path, head: str) -> str:
        """Return the commit that the run began at; that which stands there if it was not noted."""
        noted = place / _BEGUN
        base = await run.commit_of(noted.read_text("utf-8", "replace")) if noted.is_file() else ""
        return base or head

    async def _taken(self, run: Git, place: Path, message: str, *, dated: bool = False) -> tuple[str, str]:
        """Return a commit of what is there, which is the last one if nothing differs, and the last one.

        Unless it is dated the same content is the same commit.
        """
        head = await self._head(run, place)
        tree = await take_in(run, head, await self._base(run, place, head))
        if tree == await run("rev-parse", f"{head}^{{tree}}"):
            return head, head
        moment = "" if dated else await run("show", "--no-patch", "--format=%cI", head)
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment} if moment else {}
        return await run("commit-tree", "-p", head, "-m", message, tree, env=dates), head


async def _patched(run: Git, base: str, patch: bytes, message: str) -> str:
    """Return what a patch makes of a commit; the commit itself if it does not apply."""
    await run("read-tree", base)
    if await run("apply", "--cached", "-", stdin=patch, refusal="-") == "-":
        return base
    tree = await run("write-tree")
    return await run("commit-tree", "-p", base, "-m", message, tree)


def _free(path: Path, word: str) -> Path:
    """Return a path beside another one, where there is nothing."""
    names = (path.with_name(f"{path.name}.{word}{number}") for number in range(1, 1_000_000))
    return next(name for name in names if not os.path.lexists(name))


def _head_line(file: Path, line: bytes) -> None:
    """Put a line before a file; take one away that is long."""
    data = file.read_bytes() if file.stat().st_size <= _PATCH else b""
    file.unlink()
    if data:
        file.write_bytes(line + data)


def paths_of(paths: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the paths that one of the patterns names; `*` stands for any text, `/` too."""
    return [path for path in paths if any(_names(pattern, path) for pattern in patterns)]


def _names(pattern: str, path: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/*')}/")


_log: Final = logging.getLogger("remit.work")


class Beginning(NamedTuple):
    """The work that a run goes on from."""

    commit: str
    """A commit or a branch of the repository."""
    source: str = ""
    """Its name, in words; empty: the target branch."""
    patch: bytes = b""
    """A patch to be applied first: the work of a run whose commits are not here."""


class Beginnings:
    """Finds out where runs begin."""

    def __init__(self, store: WorkStore, repository: Path, table: OutboxTable, tree: Callable[..., Worktree]) -> None:
        self._store = store
        self._repository = repository
        self._table = table
        self._tree = tree
        self._remote = GitRemote(repository, table) if table.remote else None

    async def of(self, order: WorkOrder) -> Beginning:
        """Return where a run begins. Raise ProviderError if the remote cannot be asked."""
        branch = branch_of(self._table, order.issue)
        target = await self._target(order.constraints.target_branch)
        pushed = await self._remote.fetch(branch) if self._remote is not None else ""
        left, name = await self._left(order)
        pushed, left = [
            "" if commit and await is_within(self._repository, commit, target) else commit for commit in (pushed, left)
        ]  # what was merged is in the target, and so is what changed since
        if pushed and (not left or await is_within(self._repository, left, pushed)):
            return Beginning(pushed, f"{branch} of {self._table.remote}")
        if left:
            return Beginning(left, f"what {name} left")
        return await self._result(order, target)

    async def _target(self, name: str) -> str:
        """Return where the work starts from without a run before: as the remote has it, if there is one."""
        fetched = await self._remote.fetch(name) if self._remote is not None and name else ""
        return fetched or name or "HEAD"

    async def _left(self, order: WorkOrder) -> tuple[str, str]:
        """Return the branch of the last run before that left one here, and the run; empty for none."""
        runs = (await self._store.unit(order.issue)).runs
        for run_id in reversed([name for name in runs if name != order.run_id]):
            tree = self._tree(await self._store.order(order.issue, run_id))
            if await tree.exists():
                for what in (await tree.settle(f"What {run_id} left")).cleared:
                    _log.info("%s %s left, and Remit cleared: %s", order.issue_ref, run_id, what)
            if await tree.has(tree.branch):
                return tree.branch, run_id
        return "", ""

    async def _result(self, order: WorkOrder, target: str) -> Beginning:
        """Return the newest result's commit that is here and not in the target, or its patch."""
        for run_id in reversed((await self._store.unit(order.issue)).results):
            result = await self._store.result(order.issue, run_id)
            commit = await commit_of(self._repository, result.changes.commit) if result is not None else ""
            if commit and not await is_within(self._repository, commit, target):
                return Beginning(commit, f"the commit of {run_id}")
            if not commit and (patch := await self._store.patch(order.issue, run_id)):
                base = patch.partition(b"\n")[0].decode().removeprefix("base ")
                start = await commit_of(self._repository, base)
                return Beginning(start or target, f"the patch of {run_id}", patch)
        return Beginning(target)
