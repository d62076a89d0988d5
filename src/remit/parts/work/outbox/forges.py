"""GitHub, Forgejo and GitLab: what they share, and where each differs in paths, names and forms.

Pull requests of GitHub, Forgejo and GitLab: of a branch, each forge takes one that is open at most.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlsplit

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.http.guard import LOOPBACK
from remit.parts.work.comment import MAX_BODY, marked, marker_of
from remit.parts.work.outbox.client import ForgeClient
from remit.parts.work.outbox.port import Issue, Posted, Pull, PullForm, PullState
from remit.parts.work.references import IssueRef

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.work.workflow import OutboxTable


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
            mutation = {"query": _READY if pull.draft else _DRAFT, "variables": {"id": row["node_id"]}}
            reply = await self._client.send("POST", self._client.beside("graphql"), mutation)
            if isinstance(reply, dict) and reply.get("errors"):
                raise ProviderError(f"GitHub: {reply['errors']}"[:300], cause=Code.InvalidInput)
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


_NEWEST: Final = 100
"""Issues that are looked through for one that was opened under a key."""
_GREY: Final = "#ededed"


class RemoteForge:
    """The issues of one project on a forge: what every dialect does alike."""

    name: ClassVar[str]
    home: ClassVar[str] = ""
    """The API's address of the forge's public place, if it has one."""
    page: ClassVar[Mapping[str, str]] = {"per_page": "100"}
    order: ClassVar[Mapping[str, str]] = {"sort": "created", "direction": "desc"}
    number: ClassVar[str] = "number"
    text: ClassVar[str] = "body"
    notes: ClassVar[str] = "comments"
    author: ClassVar[str] = "user"
    login: ClassVar[str] = "login"
    link: ClassVar[str] = "html_url"
    opened: ClassVar[str] = "open"
    requests: ClassVar[type[GitHubPulls]] = GitHubPulls

    def __init__(self, project: str, base: str, token: str, clock: Clock, account: str = "") -> None:
        self._project = project
        self._client = ForgeClient(base or self.home, self.credentials(token), clock)
        self._account = account

    # --- what differs

    @staticmethod
    def credentials(token: str) -> dict[str, str]:
        """Return the header that carries a token."""
        return {"authorization": f"Bearer {token}"} if token else {}

    def path(self, *rest: str) -> str:
        """Return a path below the project's."""
        return "/".join(("repos", self._project, *rest))

    def query(self, labels: Sequence[str], state: str) -> dict[str, str]:
        """Return what a list of issues is asked for with."""
        return {"state": state, **({"labels": ",".join(labels)} if labels else {})}

    def is_issue(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row is an issue: a pull request is none."""
        return not row.get("pull_request")

    async def new(self, title: str, body: str, labels: Sequence[str]) -> dict[str, Any]:
        """Return the form of a new issue."""
        return {"title": title, "body": body, "labels": list(labels)}

    async def change(self, path: str, labels: Sequence[str] | None, assignee: str | None, closed: bool | None) -> None:
        """Change what is given, in one request or two."""
        form: dict[str, Any] = {} if labels is None else {"labels": list(labels)}
        await self._patch(path, form, assignee, closed)

    async def _patch(self, path: str, form: dict[str, Any], assignee: str | None, closed: bool | None) -> None:
        if assignee is not None:
            form["assignees"] = [assignee] if assignee else []
        if closed is not None:
            form["state"] = "closed" if closed else "open"
        if form:
            await self._client.send("PATCH", path, form)

    # --- the port

    @property
    def pulls(self) -> GitHubPulls:
        """Return the pull requests of the project."""
        return self.requests(self._client, self._project, self.path)

    async def list_issues(self, *, labels: Sequence[str] = (), state: str = "open", limit: int = 100) -> list[Issue]:
        issues = []
        async for row in self._listed(labels, state):
            issues.append(self._issue(row))
            if len(issues) == limit:
                break
        return issues

    async def get_issue(self, issue: IssueRef) -> Issue:
        """Return an issue."""
        row = await self._client.get(self._path(issue))
        if not isinstance(row, dict) or not self.is_issue(row):
            raise ProviderError(f"{issue} is no issue.", cause=Code.not_found)
        return self._issue(row)

    async def create_issue(self, title: str, body: str, labels: Sequence[str], *, key: str) -> IssueRef:
        """Open an issue; once for each key, which its text carries as a comment that is not shown."""
        trigger = f"issue:{sha256(key.encode()).hexdigest()[:32]}"
        me, marker, looked = await self._me(), marker_of(trigger), 0
        async for row in self._listed((), "all"):
            if marker in (row.get(self.text) or "") and self._wrote(row, me):
                return IssueRef(self._project, row[self.number])
            looked += 1
            if looked == _NEWEST:
                break
        form = await self.new(title, marked(body, trigger), labels)
        row = await self._client.send("POST", self.path("issues"), form)
        return IssueRef(self._project, row[self.number])

    async def comments(self, issue: IssueRef) -> list[Posted]:
        """Return the comments of a thread, the lowest id first."""
        me = await self._me()
        rows = [row async for row in self._client.rows(f"{self._path(issue)}/{self.notes}", **self.page)]
        comments = [self._posted(row, me) for row in rows if not row.get("system")]
        return sorted(comments, key=lambda posted: int(posted.reference))

    async def find(self, issue: IssueRef, marker: str, *, in_doubt: bool = False) -> Posted | None:
        """Return the comment of ours with the lowest id that carries a marker: lists lag, searches more so."""
        for pause in (0.0, *LAGS_S) if in_doubt else (0.0,):
            await self._client.pause(pause)
            comment = (each for each in await self.comments(issue) if each.own and marker in each.body)
            if (posted := next(comment, None)) is not None:
                return posted
        return None

    async def append_event(self, issue: IssueRef, body: str, *, trigger: str) -> Posted:
        """Write a comment; its marker stands in `body`."""
        _ = trigger
        if len(body) > MAX_BODY:
            raise ProviderError(f"A comment takes {MAX_BODY:,} characters.", cause=Code.InvalidInput)
        row = await self._client.send("POST", f"{self._path(issue)}/{self.notes}", {"body": body})
        return self._posted(row, await self._me())

    async def mutate_issue(
        self,
        issue: IssueRef,
        *,
        labels: Sequence[str] | None = None,
        assignee: str | None = None,
        closed: bool | None = None,
    ) -> Issue:
        """Change labels, assignee or standing; only what differs is sent."""
        before = await self.get_issue(issue)
        await self.change(
            self._path(issue),
            None if labels is None or {*labels} == {*before.labels} else labels,
            None if assignee == before.assignee else assignee,
            None if closed is None or closed == (before.state == "closed") else closed,
        )
        return await self.get_issue(issue)

    # --- reading

    def _path(self, issue: IssueRef) -> str:
        if issue.project != self._project:
            raise ProviderError(f"This outbox is that of {self._project}; {issue} is elsewhere.", cause=Code.not_found)
        return self.path("issues", str(issue.number))

    async def _listed(self, labels: Sequence[str], state: str) -> AsyncIterator[dict[str, Any]]:
        query = {**self.query(labels, state), **self.order, **self.page}
        async for row in self._client.rows(self.path("issues"), **query):
            if self.is_issue(row):
                yield row

    async def _me(self) -> str:
        """Return the login that we write as."""
        if not self._account:
            self._account = str((await self._client.get("user"))[self.login])
        return self._account

    def _wrote(self, row: Mapping[str, Any], me: str) -> bool:
        return (row.get(self.author) or {}).get(self.login) == me

    def _posted(self, row: Mapping[str, Any], me: str) -> Posted:
        body = row.get("body") or ""
        return Posted(reference=str(row["id"]), body=body, at=_moment(row["created_at"]), own=self._wrote(row, me))

    def _issue(self, row: Mapping[str, Any]) -> Issue:
        named = (label if isinstance(label, str) else label["name"] for label in row.get("labels") or ())
        assignee = next((user[self.login] for user in row.get("assignees") or ()), "")
        reference = str(IssueRef(self._project, row[self.number]))
        return Issue(
            issue_ref=reference,
            title=row["title"],
            body=row.get(self.text) or "",
            labels=tuple(sorted(named)),
            assignee=assignee,
            state="open" if row["state"] == self.opened else "closed",
            url=row.get(self.link) or "",
            read_up_to=row.get("updated_at") or "",
        )


class GitHub(RemoteForge):
    """GitHub, and GitHub Enterprise at an address of its own."""

    name = "github"
    home = "https://api.github.com"


class Forgejo(RemoteForge):
    """Forgejo and Gitea: the paths of GitHub, and labels by number."""

    name = "forgejo"
    page: ClassVar[Mapping[str, str]] = {"limit": "50"}
    order: ClassVar[Mapping[str, str]] = {"type": "issues"}
    requests: ClassVar[type[GitHubPulls]] = ForgejoPulls

    @staticmethod
    def credentials(token: str) -> dict[str, str]:
        return {"authorization": f"token {token}"} if token else {}

    async def new(self, title: str, body: str, labels: Sequence[str]) -> dict[str, Any]:
        return {"title": title, "body": body, "labels": await self._numbers(labels)}

    async def change(self, path: str, labels: Sequence[str] | None, assignee: str | None, closed: bool | None) -> None:
        if labels is not None:
            await self._client.send("PUT", f"{path}/labels", {"labels": await self._numbers(labels)})
        await self._patch(path, {}, assignee, closed)

    async def _numbers(self, labels: Sequence[str]) -> list[int]:
        """Return the numbers of labels; those that the project lacks are made."""
        known = {}
        if labels:
            known = {row["name"]: row["id"] async for row in self._client.rows(self.path("labels"), **self.page)}
        for label in labels:
            if label not in known:
                created = await self._client.send("POST", self.path("labels"), {"name": label, "color": _GREY})
                known[label] = created["id"]
        return [known[label] for label in labels]


class GitLab(RemoteForge):
    """GitLab: projects in nested groups, numbers called iid, comments called notes."""

    name = "gitlab"
    home = "https://gitlab.com/api/v4"
    order: ClassVar[Mapping[str, str]] = {"order_by": "created_at", "sort": "desc"}
    number = "iid"
    text = "description"
    notes = "notes"
    author = "author"
    login = "username"
    link = "web_url"
    opened = "opened"
    requests: ClassVar[type[GitHubPulls]] = GitLabPulls

    @staticmethod
    def credentials(token: str) -> dict[str, str]:
        return {"private-token": token} if token else {}

    def path(self, *rest: str) -> str:
        return "/".join(("projects", quote(self._project, safe=""), *rest))

    def query(self, labels: Sequence[str], state: str) -> dict[str, str]:
        return super().query(labels, "opened" if state == "open" else state)

    async def new(self, title: str, body: str, labels: Sequence[str]) -> dict[str, Any]:
        return {"title": title, "description": body, "labels": ",".join(labels)}

    async def change(self, path: str, labels: Sequence[str] | None, assignee: str | None, closed: bool | None) -> None:
        form: dict[str, Any] = {} if labels is None else {"labels": ",".join(labels)}
        if assignee is not None:
            people = await self._client.get("users", username=assignee) if assignee else []
            if assignee and not people:
                raise ProviderError(f"{self.name} knows no user {assignee!r}.", cause=Code.InvalidInput)
            form["assignee_ids"] = [person["id"] for person in people[:1]]
        if closed is not None:
            form["state_event"] = "close" if closed else "reopen"
        if form:
            await self._client.send("PUT", path, form)


FORGES: Final[Mapping[str, type[RemoteForge]]] = {kind.name: kind for kind in (GitHub, GitLab, Forgejo)}


def open_forge(table: OutboxTable, environ: Mapping[str, str], clock: Clock) -> RemoteForge:
    """Return the forge that workflow.toml names. Raise UsageError (WORK_INVALID)."""
    kind = FORGES[table.backend]
    variable = table.token_env or f"{table.backend.upper()}_TOKEN"
    base = table.url or kind.home
    host = urlsplit(base).hostname or ""
    if not table.repo or not base:
        lacking = "url" if table.repo else "repo"
        raise _invalid(f"[outbox] names no {lacking}", "Write repo = 'owner/name', and the url of its API.")
    if not host or not (base.startswith("https://") or (base.startswith("http://") and host in LOOPBACK)):
        raise _invalid("[outbox] url must begin with https://, except on this machine", "Use https.")
    if not environ.get(variable):
        raise _invalid(f"the outbox needs a token in {variable}, which is not set", f"Set {variable}.")
    return kind(table.repo, base, environ[variable], clock, table.account)


def _invalid(reason: str, remedy: str) -> UsageError:
    return UsageError(reason, code=Code.WORK_INVALID, remedy=remedy)


def _moment(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * SECOND)
