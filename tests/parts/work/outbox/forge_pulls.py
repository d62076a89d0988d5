"""The pull requests of the forge in memory: one of a branch is open at most, and drafts are said as each forge does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from aiohttp import web

_MARKS: Final = {"forgejo": "WIP: ", "gitlab": "Draft: "}
_STATES: Final = {"open": "opened"}


class PullRows:
    """Pull requests of one project."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.rows: dict[int, dict[str, Any]] = {}
        self.remote: Path | None = None
        """The bare repository behind the forge, which a branch has to be in; None: it is not looked at."""
        self.opened = asyncio.Event()
        """Set once there is one."""
        self.drafts = True
        """Whether the forge takes drafts."""
        self.readies = True
        """Whether it lets a draft be made ready."""

    def add_routes(self, app: web.Application, base: str) -> None:
        """Serve them."""
        part = "merge_requests" if self.dialect == "gitlab" else "pulls"
        app.router.add_get(f"{base}/{part}", self._list)
        app.router.add_post(f"{base}/{part}", self._new)
        for method in ("GET", "PATCH", "PUT"):
            app.router.add_route(method, f"{base}/{part}/{{number}}", self._one)
        app.router.add_post("/graphql", self._graphql)

    def is_draft(self, number: int) -> bool:
        """Return whether one is a draft, as the forge tells it."""
        row = self.rows[number]
        mark = _MARKS.get(self.dialect)
        return bool(row["draft"]) if mark is None else row["title"].startswith(mark)

    async def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("head", request.query.get("source_branch", ""))
        assert request.query["state"] == _STATES.get("open", "open") or self.dialect != "gitlab"
        rows = [
            self._shown(row)
            for row in self.rows.values()
            if row["state"] == "open" and (self.dialect == "forgejo" or wanted.endswith(row["branch"]))
        ]
        return web.json_response(rows)

    async def _new(self, request: web.Request) -> web.Response:
        form = await request.json()
        branch = form.get("head", form.get("source_branch"))
        if self.remote is not None and not (self.remote / "refs" / "heads" / branch).exists():
            return web.json_response({"message": "Validation Failed: head"}, status=422)
        if any(row["branch"] == branch and row["state"] == "open" for row in self.rows.values()):
            status = 422 if self.dialect == "github" else 409
            return web.json_response({"message": "A pull request already exists"}, status=status)
        if form.get("draft") and not self.drafts:
            why = "Draft pull requests are not supported in this repository."
            return web.json_response({"message": why}, status=422)
        number = len(self.rows) + 1
        self.rows[number] = {
            "number": number,
            "branch": branch,
            "target": form.get("base", form.get("target_branch")),
            "title": form["title"],
            "body": form.get("body", form.get("description", "")),
            "draft": form.get("draft", False),
            "state": "open",
        }
        self.opened.set()
        return web.json_response(self._shown(self.rows[number]), status=201)

    async def _one(self, request: web.Request) -> web.Response:
        row = self.rows[int(request.match_info["number"])]
        form = await request.json() if request.method != "GET" else {}
        assert "draft" not in form, "no form of a change has it"
        row["title"] = form.get("title", row["title"])
        row["body"] = form.get("body", form.get("description", row["body"]))
        return web.json_response(self._shown(row))

    async def _graphql(self, request: web.Request) -> web.Response:
        if not self.readies:
            return web.json_response({"message": "Not Found"}, status=404)
        asked = await request.json()
        row = self.rows[int(asked["variables"]["id"].removeprefix("PR_"))]
        row["draft"] = "convertPullRequestToDraft" in asked["query"]
        return web.json_response({"data": {}})

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        url = f"https://g/pulls/{row['number']}"
        if self.dialect == "gitlab":
            return {
                "iid": row["number"],
                "id": row["number"] + 90_000,
                "title": row["title"],
                "description": row["body"],
                "source_branch": row["branch"],
                "target_branch": row["target"],
                "state": _STATES.get(row["state"], row["state"]),
                "web_url": url,
            }
        merged = {"merged_at": "2026-02-14T10:00:00Z"} if row["state"] == "merged" else {}
        return {
            "number": row["number"],
            "node_id": f"PR_{row['number']}",
            "title": row["title"],
            "body": row["body"],
            "draft": row["draft"],
            "head": {"ref": row["branch"]},
            "base": {"ref": row["target"]},
            "state": "open" if row["state"] == "open" else "closed",
            "html_url": url,
            **merged,
        }
