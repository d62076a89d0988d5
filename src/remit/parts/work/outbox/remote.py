"""The git remote of a repository: what is pushed there, and what others left there.

A branch is only ever moved forward. The one exception is a snapshot, which Remit pushed while a run was under way: what
the run commits takes its place. git compares what we saw there as it writes, so no one else's push is ever lost.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.work.references import IssueRef
from remit.parts.work.workflow import OutboxTable, read_workflow, repository_of
from remit.process.git import commit_of, git, git_on, is_within

if TYPE_CHECKING:
    from remit.parts.work.store import WorkStore
    from remit.settings import Settings

SNAPSHOT: Final = "Remit-Snapshot"
"""The trailer of a commit that was made while a program was at work."""
_PLACES: Final = {"github": "github.com", "gitlab": "gitlab.com"}
_USERS: Final = {"github": "x-access-token"}
_PASSED: Final = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "SSL_CERT_FILE", "XDG_CONFIG_HOME", "https_proxy", "HTTPS_PROXY")
"""Variables by which git reaches a remote as the user does."""


def branch_of(table: OutboxTable, issue: IssueRef) -> str:
    """Return the branch to which the work on an issue is pushed."""
    return f"{table.branches}{issue.number}"


class Pushed(msgspec.Struct, frozen=True):
    """The end of a push."""

    commit: str
    written: bool
    """False: it stood there before."""


class Pushes:
    """Pushes what runs have done up to now."""

    def __init__(self, settings: Settings, store: WorkStore) -> None:
        self._settings = settings
        self._store = store

    async def __call__(self, issue: IssueRef, run_id: str, commit: str) -> tuple[str, Pushed]:
        """Push a commit of the active run; return the branch of the issue too. Raise ProviderError."""
        workflow = read_workflow(self._settings)
        if not workflow.outbox.remote:
            raise ProviderError("[outbox] of workflow.toml names no remote", cause=Code.InvalidInput)
        if (await self._store.unit(issue)).active != run_id:
            raise ProviderError(f"{run_id} is not the active run of {issue}", cause=Code.stale_run)
        order = await self._store.order(issue, run_id)
        branch = branch_of(workflow.outbox, issue)
        remote = GitRemote(repository_of(workflow, self._settings.folder, order.role), workflow.outbox)
        return branch, await remote.push(branch, commit)


class GitRemote:
    """One remote of a repository."""

    def __init__(self, repository: Path, table: OutboxTable, environ: Mapping[str, str] = os.environ) -> None:
        self.name = table.remote
        self._repository = repository
        self._env = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
        self._env |= {name: environ[name] for name in _PASSED if name in environ} | _credentials(table, environ)

    async def tip(self, branch: str) -> str:
        """Return the commit at which a branch stands there; empty for none. Raise ProviderError."""
        output = await self._git("ls-remote", "--", self.name, f"refs/heads/{branch}")
        return output.partition("\t")[0]

    async def default(self) -> str:
        """Return the branch that the remote shows first; empty if it does not say. Raise ProviderError."""
        output = await self._git("ls-remote", "--symref", "--", self.name, "HEAD")
        first = output.partition("\t")[0]
        return first.removeprefix("ref: refs/heads/") if first.startswith("ref: refs/heads/") else ""

    async def fetch(self, branch: str) -> str:
        """Return the commit at which a branch stands there, and have it here; empty for none. Raise ProviderError."""
        commit = await self.tip(branch)
        if commit and not await commit_of(self._repository, commit):
            await self._git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self.name, commit)
        return commit

    async def push(self, branch: str, commit: str) -> Pushed:
        """Have a branch stand at a commit there. Raise ProviderError (lease_conflict) if others have pushed to it."""
        before = await self.fetch(branch)
        if before == commit:
            return Pushed(commit, written=False)
        if before and not await self.gives_way(before, commit):
            reason = f"{branch} of {self.name} has commits of others; the next run begins there"
            raise ProviderError(reason, cause=Code.lease_conflict)
        lease = f"--force-with-lease=refs/heads/{branch}:{before}"
        await self._git("push", "--quiet", "--no-verify", lease, "--", self.name, f"{commit}:refs/heads/{branch}")
        return Pushed(commit, written=True)

    async def gives_way(self, before: str, commit: str) -> bool:
        """Return whether nothing is lost if a branch moves from one commit to another."""
        if await is_within(self._repository, before, commit):
            return True
        form = ("--format=%(trailers:key=" + SNAPSHOT + ",valueonly)", "--no-patch", before)
        if not (await git(self._repository, "show", *form, refusal="")).strip():
            return False
        return await is_within(self._repository, f"{before}^", commit)

    async def _git(self, *words: str) -> str:
        async with git_on(self._repository, remote=self.name, env=self._env) as run:
            return await run(*words)


def _credentials(table: OutboxTable, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what has git show the token to the forge, and to no one else: it stands in no command line."""
    host = urlsplit(table.url).netloc if table.url.startswith("https://") else _PLACES.get(table.backend, "")
    token = environ.get(table.token_env or f"{table.backend.upper()}_TOKEN", "")
    if not host or not token or table.backend == "local":
        return {}
    user = _USERS.get(table.backend, "oauth2")
    shown = base64.b64encode(f"{user}:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.https://{host}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {shown}",
    }
