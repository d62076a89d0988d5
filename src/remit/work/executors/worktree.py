"""A run's own checkout of the repository: a git worktree on a branch of the run.

git runs without hooks, without prompts, and without what a repository could have it start.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.child import Child
from remit.process.environment import environment
from remit.work.references import IssueRef

_OUTPUT: Final = 4_000_000
_TIMEOUT_S: Final = 300.0
_QUIET: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "safe.directory=*"),  # in the sandbox a worktree belongs to another user
    *("-c", "user.name=Remit"),
    *("-c", "user.email=remit@localhost"),
)
_ENV: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
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

    async def create(self, base: str) -> str:
        """Check `base` out on the run's branch, unless that was done; return its commit. Raise ProviderError."""
        if await self.exists():
            return await self.head()
        asked = ("rev-parse", "--is-inside-work-tree", "--path-format=absolute", "--git-common-dir")
        inside, _, self._common = (await git(self.repository, *asked, refusal="")).partition("\n")
        if inside != "true":
            why = f"{self.repository} is no git repository. Run it where the code is, or give the repository."
            raise ProviderError(why, cause=Code.env_unavailable)
        found = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
        commit = await git(self.repository, *found, refusal="")
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
        nested = await asyncio.to_thread(_nested, self.folder)
        left_out = (f":(exclude,top,literal){path}" for path in nested)
        await self._git("add", "--all", "--", ".", *_DROPPINGS, *left_out)
        dirty = bool(await self._git("diff", "--cached", "--name-only"))
        if dirty:
            await self._git("commit", "--no-verify", "--quiet", "--message", message)
        await self._git("update-ref", f"refs/heads/{self.branch}", "HEAD")  # a program may have left the branch
        return dirty

    async def follows(self, base: str) -> bool:
        """Return whether a commit is among those that stand behind the present one."""
        return await self._git("rev-list", "--count", base, "--not", "HEAD") == "0"

    async def changed(self, base: str) -> list[str]:
        """Return the paths that differ from a commit."""
        names = await self._git("diff", "--name-only", "--no-renames", "-z", base, "HEAD", "--")
        return [name for name in names.split("\0") if name]

    async def status(self) -> str:
        """Return the paths that differ from the last commit, a line each, as `git status --porcelain` says it."""
        return await self._git("status", "--porcelain=v1", "--untracked-files=all")

    async def diff(self) -> str:
        """Return what differs from the last commit, in files that git knows."""
        return await self._git("diff", "--no-ext-diff", "--no-textconv", "HEAD", "--")

    async def _git(self, *words: str) -> str:
        """Run git on the checkout, by what the repository says of it: its own `.git` may lead anywhere by now."""
        if not self._common:
            self._common = await git(self.repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
        place = await asyncio.to_thread(_administered, Path(self._common, "worktrees"), str(self.folder / ".git"))
        if place is None:
            raise ProviderError(f"{self.folder} is no worktree of {self.repository}", cause=Code.env_unavailable)
        return await git(self.repository, f"--git-dir={place}", f"--work-tree={self.folder}", *words)

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


def _nested(folder: Path) -> list[str]:
    """Return the folders below a checkout that are repositories of their own, as git names paths."""
    found = []
    for place, folders, files in os.walk(folder):
        if place != str(folder) and any(name.lower() == ".git" for name in (*folders, *files)):
            found.append(Path(place).relative_to(folder).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if name.lower() != ".git"]
    return found


async def changed_by(repository: Path, commit: str, beside: str) -> list[str]:
    """Return the paths that a commit of a repository changes beside another one; none if it is not there."""
    found = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    known = await git(repository, *found, refusal="")
    base = await git(repository, "merge-base", beside, known, refusal="") if known else ""
    names = await git(repository, "diff", "--name-only", "--no-renames", "-z", base, known, "--") if base else ""
    return [name for name in names.split("\0") if name]


def paths_of(paths: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the paths that one of the patterns names; `*` stands for any text, `/` too."""
    return [path for path in paths if any(_names(pattern, path) for pattern in patterns)]


def _names(pattern: str, path: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/*')}/")


async def git(folder: Path, *words: str, refusal: str | None = None) -> str:
    """Run git in a folder; return what it printed. Raise ProviderError, or return `refusal` if one is given."""
    child = Child(tail_bytes=_OUTPUT)
    env = {**environment(os.environ, {}), **_ENV}
    try:
        await child.start(["git", *_QUIET, "-C", str(folder), *words], env=env)
    except OSError as error:
        raise ProviderError(f"git cannot be run: {error.strerror or error}", cause=Code.env_unavailable) from error
    child.close_stdin()
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            status = await child.ended()
    except TimeoutError as error:
        raise ProviderError(f"git {words[0]} did not end", cause=Code.env_unavailable) from error
    finally:
        await child.close()
    if status == 0:
        return child.out.data.decode(errors="replace").rstrip("\n")
    if refusal is not None:
        return refusal
    said = child.shown(child.err).splitlines()
    raise ProviderError(f"git {words[0]}: {said[-1] if said else child.why_ended}", cause=Code.env_unavailable)
