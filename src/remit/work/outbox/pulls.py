"""Pull requests of GitHub, Forgejo and GitLab: of a branch, each forge takes one that is open at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.work.outbox.client import ForgeClient
from remit.work.outbox.port import Pull, PullForm, PullState

LAGS_S: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds between looks for something that may have been written: lists show it late."""

_CHANGE: Final = "mutation($id: ID!) {{ {}(input: {{pullRequestId: $id}}) {{ clientMutationId }} }}"
_READY: Final = _CHANGE.format("markPullRequestReadyForReview")
_DRAFT: Final = _CHANGE.format("convertPullRequestToDraft")


class GitHubPulls:
    """Pull requests of GitHub: whether one is a draft is changed by GraphQL alone."""

    part: ClassVar[str] = "pulls"
    number: ClassVar[str] = "number"
    method: ClassVar[str] = "PATCH"

    def __init__(self, client: ForgeClient, project: str, path: Callable[..., str]) -> None:
        self._client = client
        self._project = project
        self._path = path

    async def get(self, number: int) -> Pull:
        return self._pull(await self._client.get(self._path(self.part, str(number))))

    async def find(self, branch: str, *, in_doubt: bool = False) -> Pull | None:
        for pause in (0.0, *LAGS_S) if in_doubt else (0.0,):
            await self._client.pause(pause)
            async for row in self._client.rows(self._path(self.part), **self.query(branch)):
                if self.branch(row) == branch:
                    return self._pull(row)
        return None

    async def open(self, branch: str, target: str, form: PullForm) -> Pull:
        sent = {**self.ends(branch, target), **self.form(form)}
        try:
            return self._pull(await self._client.send("POST", self._path(self.part), sent))
        except ProviderError as error:
            if not form.draft or "draft" not in str(error).lower():
                raise
        return self._pull(await self._client.send("POST", self._path(self.part), {**sent, "draft": False}))

    async def change(self, pull: Pull, form: PullForm) -> Pull:
        if (pull.title, pull.body) != (form.title, form.body):
            texts = {"title": form.title, "body": form.body}
            await self._client.send("PATCH", self._path(self.part, str(pull.number)), texts)
        if pull.draft != form.draft:
            row = await self._client.get(self._path(self.part, str(pull.number)))
            asked = {"query": _READY if pull.draft else _DRAFT, "variables": {"id": row["node_id"]}}
            said = await self._client.send("POST", self._client.beside("graphql"), asked)
            if isinstance(said, dict) and said.get("errors"):
                raise ProviderError(f"GitHub: {said['errors']}"[:300], cause=Code.InvalidInput)
        return await self.get(pull.number)

    # --- what differs

    def query(self, branch: str) -> dict[str, str]:
        """Return what the list is asked for with."""
        owner = self._project.partition("/")[0]
        return {"state": "open", "head": f"{owner}:{branch}", "per_page": "100"}

    def ends(self, branch: str, target: str) -> dict[str, Any]:
        """Return the two branches of a new one."""
        return {"head": branch, "base": target}

    def form(self, form: PullForm) -> dict[str, Any]:
        """Return what is sent of a form."""
        return {"title": form.title, "body": form.body, "draft": form.draft}

    def branch(self, row: Mapping[str, Any]) -> str:
        """Return the branch of one."""
        return str((row.get("head") or {}).get("ref", ""))

    def state(self, row: Mapping[str, Any]) -> PullState:
        """Return where one stands."""
        if row.get("merged_at") or row.get("merged"):
            return "merged"
        return "open" if row["state"] == "open" else "closed"

    def facts(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what one says."""
        return {"title": row["title"], "draft": bool(row.get("draft")), "body": row.get("body") or ""}

    def _pull(self, row: Mapping[str, Any]) -> Pull:
        url = row.get("html_url") or row.get("web_url") or ""
        return Pull(number=row[self.number], url=url, state=self.state(row), **self.facts(row))


class ForgejoPulls(GitHubPulls):
    """Pull requests of Forgejo and Gitea: a draft is one whose title says so."""

    mark: ClassVar[str] = "WIP: "

    async def change(self, pull: Pull, form: PullForm) -> Pull:
        if (pull.title, pull.body, pull.draft) != (form.title, form.body, form.draft):
            await self._client.send(self.method, self._path(self.part, str(pull.number)), self.form(form))
        return await self.get(pull.number)

    def query(self, branch: str) -> dict[str, str]:
        _ = branch  # its list takes none
        return {"state": "open", "limit": "50"}

    def form(self, form: PullForm) -> dict[str, Any]:
        return {"title": f"{self.mark if form.draft else ''}{form.title}", "body": form.body}

    def facts(self, row: Mapping[str, Any]) -> dict[str, Any]:
        title = str(row["title"])
        text = {"title": title.removeprefix(self.mark), "body": row.get("body") or row.get("description") or ""}
        return {**text, "draft": title.startswith(self.mark)}


class GitLabPulls(ForgejoPulls):
    """Merge requests of GitLab."""

    part = "merge_requests"
    number = "iid"
    method = "PUT"
    mark = "Draft: "

    def query(self, branch: str) -> dict[str, str]:
        return {"state": "opened", "source_branch": branch}

    def ends(self, branch: str, target: str) -> dict[str, Any]:
        return {"source_branch": branch, "target_branch": target}

    def form(self, form: PullForm) -> dict[str, Any]:
        shared = super().form(form)
        return {"title": shared["title"], "description": shared["body"]}

    def branch(self, row: Mapping[str, Any]) -> str:
        return str(row.get("source_branch", ""))

    def state(self, row: Mapping[str, Any]) -> PullState:
        states: dict[str, PullState] = {"opened": "open", "merged": "merged"}
        return states.get(row["state"], "closed")
