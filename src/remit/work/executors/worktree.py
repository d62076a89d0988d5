"""A run's own checkout of the repository: a git worktree on a branch of the run."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.work.git import commit_of, git, is_within
from remit.work.references import IssueRef

_PATCH: Final = 1_000_000
"""Bytes of a patch that is handed over."""
_DROPPINGS: Final = (":(exclude,glob)**/.aider*",)
"""Files that tools leave behind and that do not belong to the work."""


class Worktree:
    """The checkout of one run."""

    def __init__(self, repository: Path, folder: Path, branch: str) -> None:
        self.repository = repository
        self.folder = folder
        self.branch = branch
        self._common = ""
        """The repository's own folder, once it was asked for."""

    @classmethod
    def of(cls, repository: Path, folder: Path, issue: IssueRef, run_id: str) -> Worktree:
        """Return the worktree of a run."""
        return cls(repository, folder, f"run/{issue.file_name}/{run_id}")

    @property
    def home(self) -> Path:
        """The home of the run, beside its worktree."""
        return self.folder.with_name(f"{self.folder.name}.home")

    async def create(self, base: str) -> str:
        """Check `base` out on the run's branch, unless that was done; return its commit. Raise ProviderError."""
        if await self.exists():
            return await self.head()
        asked = ("rev-parse", "--is-inside-work-tree", "--path-format=absolute", "--git-common-dir")
        inside, _, self._common = (await git(self.repository, *asked, refusal="")).partition("\n")
        if inside != "true":
            why = f"{self.repository} is no git repository. Run it where the code is, or give the repository."
            raise ProviderError(why, cause=Code.env_unavailable)
        commit = await commit_of(self.repository, base)
        if not commit:
            why = f"{self.repository} has no commit {base} to begin at. Commit something first."
            raise ProviderError(why, cause=Code.env_unavailable)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        add = ("worktree", "add", "-B", self.branch, "--", str(self.folder), commit)
        try:
            await git(self.repository, *add)
        except ProviderError:  # such as for what is known of a worktree that was deleted
            await git(self.repository, "worktree", "prune")
            await git(self.repository, *add)
        return commit

    async def head(self) -> str:
        """Return the commit that stands there now."""
        return await self._git("rev-parse", "--verify", "HEAD")

    async def exists(self) -> bool:
        """Return whether the checkout is there."""
        return await asyncio.to_thread((self.folder / ".git").exists)

    async def has(self, branch: str) -> bool:
        """Return whether the repository has a branch of this name."""
        return bool(await git(self.repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", refusal=""))

    async def commit(self, message: str) -> bool:
        """Commit what was left uncommitted, and let the run's branch end there; return whether there was anything.

        Repositories within the checkout are left out: git would look into them by their own settings, which can name
        programs, and would commit no more than a name of what is in them.
        """
        await self._add()
        dirty = bool(await self._git("diff", "--cached", "--name-only"))
        if dirty:
            await self._git("commit", "--no-verify", "--quiet", "--message", message)
        await self._git("update-ref", f"refs/heads/{self.branch}", "HEAD")  # a program may have left the branch
        return dirty

    async def _add(self, env: Mapping[str, str] | None = None) -> None:
        nested = await asyncio.to_thread(_nested, self.folder)
        left_out = (f":(exclude,top,literal){path}" for path in nested)
        await self._git("add", "--all", "--", ".", *_DROPPINGS, *left_out, env=env)

    async def follows(self, base: str) -> bool:
        """Return whether a commit is among those that stand behind the present one."""
        return await is_within(self.repository, base, await self.head())

    async def changed(self, base: str, head: str = "HEAD") -> list[str]:
        """Return the paths in which `head` differs from a commit."""
        names = await self._git("diff", "--name-only", "--no-renames", "-z", base, head, "--")
        return [name for name in names.split("\0") if name]

    async def snapshot(self, message: str) -> str:
        """Return a commit of what is there now, which stands on no branch; the program at work sees nothing of it."""
        head = await self.head()
        place = await self._place()
        index = place / "snapshot"
        env = {"GIT_INDEX_FILE": str(index)}
        await asyncio.to_thread(shutil.copyfile, place / "index", index)
        try:
            await self._add(env)
            tree = await self._git("write-tree", env=env)
        finally:
            index.unlink(missing_ok=True)
        if tree == await self._git("rev-parse", f"{head}^{{tree}}"):
            return head
        moment = await self._git("show", "--no-patch", "--format=%cI", head)  # the same content is the same commit
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        return await self._git("commit-tree", "-p", head, "-m", message, tree, env=dates)

    async def patch(self, target: str, file: Path) -> None:
        """Write to a file what `target` has not: a line `base COMMIT`, and a patch, unless it is long.

        Who has neither the commits of this run nor those of the runs before can apply it to that commit.
        """
        base = await git(self.repository, "merge-base", target, await self.head(), refusal="")
        form = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", f"--output={file}")
        if base:
            await self._git("diff", *form, base, "HEAD", "--")
            await asyncio.to_thread(_head_line, file, f"base {base}\n".encode())

    async def apply(self, patch: Path) -> bool:
        """Apply a patch; return whether it did. Nothing of it is there if not."""
        place = await self._place()
        try:  # by itself it does not go to the checkout
            await git(
                self.folder, f"--git-dir={place}", f"--work-tree={self.folder}", "apply", "--index", "--", str(patch)
            )
        except ProviderError:
            return False
        return True

    async def status(self) -> str:
        """Return the paths that differ from the last commit, a line each, as `git status --porcelain` says it."""
        return await self._git("status", "--porcelain=v1", "--untracked-files=all")

    async def diff(self) -> str:
        """Return what differs from the last commit, in files that git knows."""
        return await self._git("diff", "--no-ext-diff", "--no-textconv", "HEAD", "--")

    async def _git(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Run git on the checkout, by what the repository says of it: its own `.git` may lead anywhere by now."""
        place = await self._place()
        return await git(self.repository, f"--git-dir={place}", f"--work-tree={self.folder}", *words, env=env)

    async def _place(self) -> Path:
        if not self._common:
            self._common = await git(self.repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
        place = await asyncio.to_thread(_administered, Path(self._common, "worktrees"), str(self.folder / ".git"))
        if place is None:
            raise ProviderError(f"{self.folder} is no worktree of {self.repository}", cause=Code.env_unavailable)
        return place

    async def remove(self) -> None:
        """Take the checkout away; the branch stays, and so does what was committed on it."""
        if self.folder.exists():
            await git(self.repository, "worktree", "remove", "--force", "--", str(self.folder))
        await git(self.repository, "worktree", "prune")

    async def forget(self) -> bool:
        """Delete the run's branch if another branch or tag holds its commits; return whether it is gone."""
        if not await self.has(self.branch):
            return True
        own = f"refs/heads/{self.branch}"
        holders = await git(self.repository, "for-each-ref", "--contains", own, "--format=%(refname)")
        if {*holders.splitlines()} <= {own}:
            return False
        await git(self.repository, "branch", "--delete", "--force", "--", self.branch)
        return True


def _administered(worktrees: Path, mark: str) -> Path | None:
    """Return the folder in which a repository keeps what it knows of a worktree, whose `.git` is `mark`."""
    places = (place.parent for place in sorted(worktrees.glob("*/gitdir")))
    return next((place for place in places if (place / "gitdir").read_text(encoding="utf-8").strip() == mark), None)


def _head_line(file: Path, line: bytes) -> None:
    """Put a line before a file; take one away that is long."""
    data = file.read_bytes() if file.stat().st_size <= _PATCH else b""
    file.unlink()
    if data:
        file.write_bytes(line + data)


def _nested(folder: Path) -> list[str]:
    """Return the folders below a checkout that are repositories of their own, as git names paths."""
    found = []
    for place, folders, files in os.walk(folder):
        if place != str(folder) and any(name.lower() == ".git" for name in (*folders, *files)):
            found.append(Path(place).relative_to(folder).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if name.lower() != ".git"]
    return found


def paths_of(paths: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the paths that one of the patterns names; `*` stands for any text, `/` too."""
    return [path for path in paths if any(_names(pattern, path) for pattern in patterns)]


def _names(pattern: str, path: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/*')}/")
