"""A forge in memory that speaks GitHub, Forgejo and GitLab, and has their troubles."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, Final

from aiohttp import web

from tests.parts.work.outbox.forge_pulls import PullRows

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PROJECTS: Final = {"github": "org/repo", "forgejo": "org/repo", "gitlab": "group/sub/project"}
ME: Final = "remit-bot"
TOKEN: Final = "forge-token"
_AT: Final = "2026-02-14T10:00:00Z"


class QuickClock:
    """A clock on which sleeping takes no time; it keeps how long it was slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._elapsed = 0.0

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        return int((1_771_000_000 + self._elapsed) * 1_000_000)

    def monotonic(self) -> float:
        """Seconds."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
        if seconds > 0:
            self.slept.append(seconds)
            self._elapsed += seconds


class ForgeServer:
    """Issues, comments and labels of one project."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.issues: dict[int, dict[str, Any]] = {}
        self.notes: dict[int, list[dict[str, Any]]] = {}
        self.labels: dict[str, int] = {}
        self.requests: list[tuple[str, str, int]] = []
        """Method, path and status of each request."""
        self.refusals: deque[tuple[str, int, dict[str, str]]] = deque()
        """Method, status and headers of answers to come, instead of what is asked."""
        self.after: deque[int] = deque()
        """Statuses of answers to writes to come, which are done all the same; 0: the connection is cut."""
        self.lag = 0
        """Lists to come that do not show the newest comment."""
        self.bodies_to_come: deque[bytes] = deque()
        """Answers to reads to come, as they are."""
        self.pages_forever = ""
        """The page that each page names as the next: the `same`, or a `new` one."""
        self.url = ""
        self.pulls = PullRows(dialect)
        self._ids = 1000

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ForgeServer]:
        """Serve on loopback."""
        app = web.Application(middlewares=[self._trouble], client_max_size=2_000_000)
        base, one = self._paths()
        app.router.add_get("/user", self._user)
        app.router.add_get("/users", self._users)
        app.router.add_get(f"{base}/labels", self._labels)
        app.router.add_post(f"{base}/labels", self._label)
        app.router.add_get(f"{base}/issues", self._list)
        app.router.add_post(f"{base}/issues", self._new)
        for method in ("GET", "PATCH", "PUT"):
            app.router.add_route(method, one, self._one)
        app.router.add_put(f"{one}/labels", self._put_labels)
        notes = "notes" if self.dialect == "gitlab" else "comments"
        app.router.add_get(f"{one}/{notes}", self._thread)
        app.router.add_post(f"{one}/{notes}", self._comment)
        self.pulls.add_routes(app, base)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    @property
    def bodies(self) -> list[str]:
        """The comments of the first issue."""
        return [note["body"] for note in self.notes.get(1, [])]

    def add_comment(self, number: int, body: str, author: str = ME, **more: Any) -> dict[str, Any]:
        """Add a comment to an issue, of anybody."""
        self._ids += 1
        who = {"login": author, "username": author, "id": 7}
        note = {"id": self._ids, "body": body, "created_at": _AT, "user": who, "author": who, **more}
        self.notes.setdefault(number, []).append(note)
        return note

    def _paths(self) -> tuple[str, str]:
        project = PROJECTS[self.dialect]
        base = f"/projects/{project.replace('/', '%2F')}" if self.dialect == "gitlab" else f"/repos/{project}"
        return base, f"{base}/issues/{{number}}"

    @web.middleware
    async def _trouble(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await self._answer(request, handler)
        self.requests.append((request.method, request.path, answer.status))
        return answer

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if TOKEN not in request.headers.get("authorization", request.headers.get("private-token", "")):
            return web.json_response({"message": "Bad credentials"}, status=401)
        if self.refusals and self.refusals[0][0] == request.method:
            _, status, headers = self.refusals.popleft()
            return web.json_response(
                {"message": "You have exceeded a secondary rate limit"}, status=status, headers=headers
            )
        if self.bodies_to_come and request.method == "GET":
            return web.Response(body=self.bodies_to_come.popleft(), content_type="application/json")
        answer = await handler(request)
        if self.pages_forever and request.method == "GET":
            new = {"page": str(len(self.requests))} if self.pages_forever == "new" else {}
            following = request.rel_url.update_query(new).raw_path_qs
            answer.headers["link"] = f'<{self.url}{following}>; rel="next"'
        if request.method == "GET" and isinstance(answer, web.Response) and answer.body is not None:
            etag = f'"{sha256(bytes(answer.body)).hexdigest()[:20]}"'  # type: ignore[arg-type]
            if request.headers.get("if-none-match") == etag:
                return web.Response(status=304, headers={"etag": etag})
            answer.headers["etag"] = etag
        elif self.after and request.method != "GET":
            status = self.after.popleft()
            if not status and request.transport is not None:
                request.transport.close()
            return web.json_response({"message": "Server Error"}, status=status or 502)
        return answer

    async def _user(self, _: web.Request) -> web.Response:
        return web.json_response({"login": ME, "username": ME, "id": 7})

    async def _users(self, request: web.Request) -> web.Response:
        known = request.query["username"] == "ann"
        return web.json_response([{"id": 5, "username": "ann"}] if known else [])

    async def _labels(self, request: web.Request) -> web.Response:
        return self._paged(request, [{"id": number, "name": name} for name, number in self.labels.items()])

    async def _label(self, request: web.Request) -> web.Response:
        name = (await request.json())["name"]
        self.labels[name] = len(self.labels) + 1
        return web.json_response({"id": self.labels[name], "name": name}, status=201)

    async def _list(self, request: web.Request) -> web.Response:
        wanted = {label for label in request.query.get("labels", "").split(",") if label}
        state = (
            request.query.get("state", "open").removesuffix("ed")
            if self.dialect == "gitlab"
            else request.query["state"]
        )
        state = {"clos": "closed"}.get(state, state)
        rows = [
            self._shown(issue)
            for issue in sorted(self.issues.values(), key=lambda issue: -issue["number"])
            if wanted <= {*issue["labels"]} and state in {"all", issue["state"]}
        ]
        return self._paged(request, rows)

    async def _new(self, request: web.Request) -> web.Response:
        form = await request.json()
        number = max(self.issues, default=0) + 1
        self.issues[number] = {
            "number": number,
            "title": form["title"],
            "body": form.get("body", form.get("description", "")),
            "labels": self._named(form.get("labels", [])),
            "state": "open",
            "assignee": "",
        }
        return web.json_response(self._shown(self.issues[number]), status=201)

    def _found(self, request: web.Request) -> dict[str, Any]:
        number = int(request.match_info["number"])
        if number not in self.issues:
            raise web.HTTPNotFound(text=json.dumps({"message": "Not Found"}), content_type="application/json")
        return self.issues[number]

    async def _one(self, request: web.Request) -> web.Response:
        issue = self._found(request)
        form = await request.json() if request.method != "GET" else {}
        if "labels" in form:
            assert self.dialect != "forgejo", "its form of an issue has no labels"
            issue["labels"] = self._named(form["labels"])
        if "assignees" in form:
            issue["assignee"] = next(iter(form["assignees"]), "")
        if "assignee_ids" in form:
            issue["assignee"] = "ann" if form["assignee_ids"] == [5] else ""
        state = form.get("state") or {"close": "closed", "reopen": "open"}.get(form.get("state_event", ""))
        issue["state"] = state or issue["state"]
        return web.json_response(self._shown(issue))

    async def _put_labels(self, request: web.Request) -> web.Response:
        issue = self._found(request)
        issue["labels"] = self._named((await request.json())["labels"])
        return web.json_response([])

    async def _thread(self, request: web.Request) -> web.Response:
        notes = list(self.notes.get(self._found(request)["number"], []))
        if self.lag:
            self.lag -= 1
            notes = notes[:-1]
        return self._paged(request, notes)

    async def _comment(self, request: web.Request) -> web.Response:
        issue, body = self._found(request), (await request.json())["body"]
        if len(body) > 65_536:
            return web.json_response({"message": "body is too long"}, status=422)
        return web.json_response(self.add_comment(issue["number"], body), status=201)

    def _named(self, labels: Any) -> list[str]:
        if isinstance(labels, str):
            return [label for label in labels.split(",") if label]
        numbers = {number: name for name, number in self.labels.items()}
        return [numbers[label] if isinstance(label, int) else label for label in labels]

    def _shown(self, issue: dict[str, Any]) -> dict[str, Any]:
        who = {"login": ME, "username": ME}
        row: dict[str, Any] = {"title": issue["title"], "updated_at": _AT, "user": who, "author": who}
        person = {"login": issue["assignee"], "username": issue["assignee"]}
        row["assignees"] = [person] if issue["assignee"] else []
        if self.dialect == "gitlab":
            state = "opened" if issue["state"] == "open" else "closed"
            return {
                **row,
                "iid": issue["number"],
                "id": issue["number"] + 70_000,
                "description": issue["body"],
                "labels": issue["labels"],
                "state": state,
                "web_url": "https://g",
            }
        named = [{"name": label} for label in issue["labels"]]
        return {
            **row,
            "number": issue["number"],
            "id": issue["number"] + 70_000,
            "body": issue["body"],
            "labels": named,
            "state": issue["state"],
            "html_url": "https://g",
        }

    def _paged(self, request: web.Request, rows: list[Any]) -> web.Response:
        size = min(int(request.query.get("per_page", request.query.get("limit", "30"))), 50)
        page = int(request.query.get("page", "1"))
        headers = {}
        if page * size < len(rows):
            following = request.url.update_query(page=str(page + 1))
            headers["link"] = f'<{self.url}{following.raw_path_qs}>; rel="next", <{self.url}/x>; rel="last"'
        return web.json_response(rows[(page - 1) * size : page * size], headers=headers)
