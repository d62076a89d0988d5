"""git, by settings of ours alone: the one place that starts it.

A repository, a checkout and a program that wrote to them can name others: filters, hooks, monitors, helpers, the
settings of submodules. So git is never run by the settings that lie there. It runs in a room: a git folder of a
moment, which links to the objects and the names of the repository, and has an index and settings of its own. Of the
repository's settings it takes the form of its objects and its line ends, and the address of a remote that is reached.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.child import ChildProcess
from remit.process.environment import environment
from remit.process.reaper import reaped
from remit.redact import mask
from remit.regex import regex
from remit.tasks import uncut

_OUTPUT: Final = 64_000_000
_TIMEOUT_S: Final = 300.0
_READ_S: Final = 10.0
_GRACE_S: Final = 5.0
_LINKED: Final = (
    *("objects", "refs", "packed-refs", "reftable", "shallow"),
    *("worktrees", "logs", "info/exclude"),
)
_SETTINGS: Final = """\
[core]
	repositoryFormatVersion = 1
	bare = false
	logAllRefUpdates = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
[user]
	name = Remit
	email = remit@localhost
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[fetch]
	recurseSubmodules = false
[push]
	recurseSubmodules = no
	gpgSign = false
[log]
	showSignature = false
[safe]
	directory = *
"""
_TAKEN: Final = regex(
    r"(?:extensions\.(?:objectformat|refstorage)|core\.(?:autocrlf|eol|filemode|ignorecase|safecrlf|symlinks))"
    r"\n([\w-]+)"
)
_NONE: Final = "none"
_OURS: Final = {
    "GIT_ALLOW_PROTOCOL": _NONE,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""Variables of what reaches no remote: the settings of the user and the machine do not count either."""
_ALL: Final = {
    "GIT_EDITOR": "true",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_PROTOCOLS: Final = "file:git:http:https:ssh"
_TELLING: Final = regex(r"^(?:fatal|error|remote|ssh|! )|not found|denied|refused", re.IGNORECASE)
_REMEDIES: Final = (
    (".lock': File exists", "Another git may be at work there; remove the file if none is."),
    ("LFS", "Remit does not run git-lfs: `git lfs push --all` uploads what it keeps."),
    ("git-lfs", "Install git-lfs, or have the repository do without it."),
    ("promisor", "The repository is a partial clone, and Remit fetches nothing for it: `git fetch --refetch`."),
    ("unable to read", "Is the repository a partial clone, or damaged? `git fsck` says."),
)


class Repository(msgspec.Struct, frozen=True):
    """A git repository with a checkout."""

    top: Path
    """The folder of the checkout."""
    own: Path
    """The git folder of the checkout."""
    common: Path
    """The git folder of the repository."""


def repository_at(folder: Path) -> Repository:
    """Return the repository whose checkout holds a folder. Raise ProviderError."""
    start = folder.resolve()
    for top in (start, *start.parents):
        mark = top / ".git"
        own = top / _path_in(mark, "gitdir:") if mark.is_file() else mark
        if (own / "HEAD").is_file():
            shared = own / "commondir"
            return Repository(top, own, own / _path_in(shared) if shared.is_file() else own)
    reason_text = f"{folder} is no git repository. Run it where the code is, or give the repository."
    raise ProviderError(reason_text, cause=Code.env_unavailable)


class Git:
    """git in a room of its own."""

    def __init__(self, room: Path, repository: Repository, tree: Path, env: Mapping[str, str]) -> None:
        self.index = room / "index"
        """The index, which no other program has written."""
        self.repository = repository
        self.tree = tree
        self._env = {
            **environment(os.environ, env),
            **_ALL,
            "GIT_DIR": str(room),
            "GIT_INDEX_FILE": str(self.index),
            "GIT_WORK_TREE": str(tree),
        }

    async def __call__(
        self, *words: str, refusal: str | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> str:
        """Return what git printed, with more variables. Raise ProviderError, or return `refusal` if one is given."""
        child = await self._ended(words, env or {}, stdin)
        if child.exit_status == 0:
            return child.out.data.decode(errors="replace").rstrip("\n")
        if refusal is not None:
            return refusal
        reason_text = reason(child.shown(child.err)) or child.why_ended
        raise ProviderError(f"git {words[0]}: {reason_text}", cause=Code.env_unavailable)

    async def items(self, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> list[str]:
        """Return what git printed, each item of which ends with NUL. Raise ProviderError."""
        child = await self._ended(words, env or {}, stdin)
        if child.exit_status != 0 or child.out.truncated:
            reason_text = "it says too much" if child.out.truncated else reason(child.shown(child.err))
            raise ProviderError(f"git {words[0]}: {reason_text}", cause=Code.env_unavailable)
        return [os.fsdecode(item) for item in child.out.data.split(b"\0") if item]

    async def commit_of(self, name: str) -> str:
        """Return the commit that a name stands for; empty if it has none."""
        return await self("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", refusal="")

    async def changed(self, base: str, head: str) -> list[str]:
        """Return the paths in which a commit differs from another one."""
        return await self.items("diff", "--name-only", "--no-renames", "-z", base, head, "--")

    def _command(self, words: tuple[str, ...]) -> list[str]:
        """Return the command; what reaches a remote starts programs, such as ssh, and they end with it."""
        command = ["git", *words]
        return command if self._env["GIT_ALLOW_PROTOCOL"] == _NONE else reaped(command, _GRACE_S)

    async def _ended(self, words: tuple[str, ...], env: Mapping[str, str], stdin: bytes) -> ChildProcess:
        """Run git to its end, and to that of all that it started."""
        child = ChildProcess(tail_bytes=_OUTPUT, grace_s=_GRACE_S * 2)
        try:
            await child.start(self._command(words), env={**self._env, **env}, cwd=str(self.index.parent))
        except OSError as error:
            raise _missing(error) from error
        child.write(stdin)
        child.close_stdin()
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await child.ended()
        except TimeoutError as error:
            raise ProviderError(f"git {words[0]} did not end", cause=Code.env_unavailable) from error
        finally:
            await child.close()
        return child


@asynccontextmanager
async def git_on(
    folder: Path, tree: Path | None = None, *, remote: str = "", env: Mapping[str, str] | None = None
) -> AsyncIterator[Git]:
    """Give a git for the repository that holds a folder, within the block; `tree` is the checkout that it works on.

    It starts nothing. It reaches the remote that is named and no other, by the settings of the user and with more
    variables. Raise ProviderError.
    """
    with ExitStack() as stack:
        room, repository = await uncut(asyncio.to_thread(stack.enter_context, _room(folder, remote)))
        means = {"GIT_ALLOW_PROTOCOL": _PROTOCOLS, **(env or {})} if remote else {**_OURS, "HOME": str(room)}
        yield Git(room, repository, tree or room, means)


async def git(folder: Path, *words: str, refusal: str | None = None) -> str:
    """Run git once. Raise ProviderError, or return `refusal` if one is given."""
    try:
        async with git_on(folder) as run:
            return await run(*words, refusal=refusal)
    except ProviderError:
        if refusal is None or shutil.which("git") is None:
            raise
        return refusal


async def changed_by(repository: Path, commit: str, beside: str) -> list[str]:
    """Return the paths that a commit of a repository changes beside another one; none if it is not there."""
    known = await commit_of(repository, commit)
    base = await git(repository, "merge-base", beside, known, refusal="") if known else ""
    if not base:
        return []
    async with git_on(repository) as run:
        return await run.changed(base, known)


async def commit_of(repository: Path, name: str) -> str:
    """Return the commit that a name stands for in a repository; empty if it has none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return await git(repository, *words, refusal="")


async def is_within(repository: Path, commit: str, other: str) -> bool:
    """Return whether a commit is among those that stand behind another one, or is it."""
    return await git(repository, "rev-list", "--count", commit, "--not", other, refusal="") == "0"


def present_commit(folder: Path) -> str:
    """Return the first digits of the commit at which a checkout stands. Raise ProviderError."""
    with _room(folder) as (room, _):
        env = {**_OURS, **_ALL, "HOME": str(room), "GIT_DIR": str(room)}
        return _read(("rev-parse", "--verify", "--short=12", "HEAD"), room, env).strip()


def reason(output: str) -> str:
    """Return why a git did not do it: the lines that tell, without secrets, and what to do if that is known."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("hint:")]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    text = mask("; ".join(telling[:2] + telling[2:][-2:]))
    remedy = next((remedy for clue, remedy in _REMEDIES if clue in output), "")
    return f"{text}. {remedy}" if remedy else text


@contextmanager
def _room(folder: Path, remote: str = "") -> Iterator[tuple[Path, Repository]]:
    """Make a room for a repository; it is gone after the block. Raise ProviderError.

    One that reaches a remote lies in the repository, so that conditions on places in the user's settings hold.
    """
    repository = repository_at(folder)
    with tempfile.TemporaryDirectory(prefix="remit-git-", dir=repository.common if remote else None) as place:
        room = Path(place)
        (room / "info").mkdir()
        for name in _LINKED:
            (room / name).symlink_to(repository.common.resolve() / name)
        (room / "HEAD").write_bytes((repository.own / "HEAD").read_bytes())
        (room / "config").write_text(_settings(repository, room, remote), encoding="utf-8", errors="surrogateescape")
        yield room, repository


def _settings(repository: Repository, room: Path, remote: str) -> str:
    file = repository.common / "config"
    listing = ("config", "--file", str(file), "--no-includes", "--null", "--list")
    listing_text = _read(listing, room, {**_OURS, "HOME": str(room)}) if file.exists() else ""
    settings = [_SETTINGS]
    for item in listing_text.split("\0"):
        if _TAKEN.fullmatch(item):
            name, _, value = item.partition("\n")
            settings.append(f"[{name.partition('.')[0]}]\n\t{name.partition('.')[2]} = {value}\n")
        for use in ("url", "pushurl"):
            if remote and item.startswith(f"remote.{remote}.{use}\n"):
                address = _address(item.partition("\n")[2], repository)
                settings.append(f"[remote {_quoted(remote)}]\n\t{use} = {_quoted(address)}\n")
    return "".join(settings)


def _address(url: str, repository: Repository) -> str:
    """Return the address of a remote. Raise ProviderError for one in the repository: it would bring its hooks."""
    path = url.removeprefix("file://")
    if "://" in path or ":" in path.partition("/")[0]:
        return url
    place = (repository.top / path).resolve()
    if place.is_relative_to(repository.top):
        reason_text = f"the remote {place} lies in the repository itself, and its hooks would be started"
        raise ProviderError(reason_text, cause=Code.permission_denied)
    return str(place)


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise ProviderError("the settings of the repository name a remote that cannot be", cause=Code.InvalidInput)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read(words: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> str:
    """Return what a git prints that only reads. Raise ProviderError."""
    whole = {**environment(os.environ, {}), **env}
    try:
        ended = subprocess.run(["git", *words], cwd=cwd, env=whole, capture_output=True, check=False, timeout=_READ_S)  # noqa: S603, S607 - the git of this machine
    except OSError as error:
        raise _missing(error) from error
    except subprocess.TimeoutExpired as error:
        raise ProviderError(f"git {words[0]} did not end", cause=Code.env_unavailable) from error
    if ended.returncode:
        reason_text = reason(ended.stderr.decode(errors="replace"))
        raise ProviderError(f"git {words[0]}: {reason_text}", cause=Code.env_unavailable)
    return os.fsdecode(ended.stdout)


def _path_in(file: Path, key: str = "") -> str:
    return os.fsdecode(file.read_bytes()[:4_096]).removeprefix(key).strip()


def _missing(error: OSError) -> ProviderError:
    return ProviderError(f"git cannot be run: {error.strerror or error}", cause=Code.env_unavailable)
