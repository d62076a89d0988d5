"""git, without hooks, without prompts, and without what a repository could have it start."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.child import Child
from remit.process.environment import environment

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


async def changed_by(repository: Path, commit: str, beside: str) -> list[str]:
    """Return the paths that a commit of a repository changes beside another one; none if it is not there."""
    known = await commit_of(repository, commit)
    base = await git(repository, "merge-base", beside, known, refusal="") if known else ""
    names = await git(repository, "diff", "--name-only", "--no-renames", "-z", base, known, "--") if base else ""
    return [name for name in names.split("\0") if name]


async def commit_of(repository: Path, name: str) -> str:
    """Return the commit that a name stands for in a repository; empty if it has none."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return await git(repository, *asked, refusal="")


async def is_within(repository: Path, commit: str, other: str) -> bool:
    """Return whether a commit is among those that stand behind another one, or is it."""
    return await git(repository, "rev-list", "--count", commit, "--not", other, refusal="") == "0"


async def git(folder: Path, *words: str, refusal: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run git in a folder, with more variables; return what it printed.

    Raise ProviderError, or return `refusal` if one is given.
    """
    child = Child(tail_bytes=_OUTPUT)
    whole = {**environment(os.environ, {}), **_ENV, **(env or {})}
    try:
        await child.start(["git", *_QUIET, "-C", str(folder), *words], env=whole)
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
