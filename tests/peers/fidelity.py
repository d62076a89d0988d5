"""What servers answer, asked directly and through Remit, and where the two differ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.peers import servers
from tests.peers.client import Client

FULL: Final = servers.ROOT / "tests" / "mcp_server" / "servers" / "full.py"
Request = tuple[str, dict[str, Any]]


class Subject(NamedTuple):
    """A server, and what it is asked; its folder holds all of its state."""

    name: str
    command: Callable[[Path], list[str]]
    calls: tuple[Request, ...]
    asks: tuple[Request, ...] = ()
    prepare: Callable[[Path], object] = lambda _folder: None


def repository(folder: Path) -> None:
    """Make a repository of one commit with a fixed date."""
    who = ["-c", "user.name=ann", "-c", "user.email=ann@acme.example", "-c", "init.defaultBranch=main"]
    env = {
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "PATH": "/usr/bin:/bin",
    }
    (folder / "a.txt").write_text("one\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True)  # noqa: S607 - git is where the PATH has it


def call(name: str, /, **args: Any) -> Request:
    return name, args


def prompt(name: str, /, **args: str) -> Request:
    return "prompts/get", {"name": name, "arguments": args}


def lists(*names: str) -> tuple[Request, ...]:
    return tuple((f"{name}/list", {}) for name in names)


def read(uri: str) -> Request:
    return "resources/read", {"uri": uri}


def complete(ref: dict[str, str], name: str, value: str, **others: str) -> Request:
    context = {"context": {"arguments": others}} if others else {}
    return "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **context}


def _full() -> Subject:
    """Return our own server, which answers with what it is asked for: every kind of message."""
    said: tuple[dict[str, Any], ...] = (
        {"content": [{"type": "text", "text": "é\n\u2028"}]},
        {"content": []},
        {"content": [{"type": "text", "text": '{\n  "n": 1\n}'}], "structuredContent": {"n": 1}},
        {"content": [], "structuredContent": {"n": 1}},
        {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
        {"content": [{"type": "resource_link", "uri": "file:///a.pdf", "name": "a", "size": 3}]},
        {"content": [{"type": "text", "text": "x", "_meta": {"a": 1}}], "_meta": {"ui/app": {"at": [1.5]}}},
        {"content": [{"type": "text", "text": "one\n  two\tPASSWORD=x"}], "isError": True},
        {
            "content": [{"type": "text", "text": "no"}],
            "structuredContent": {"why": []},
            "_meta": {"t": 1},
            "isError": True,
        },
        {"content": [], "isError": True},
    )
    failed = {"code": -32050, "message": "quota: used up", "data": {"left": 0, "until": None}}
    return Subject(
        "full",
        lambda _folder: [sys.executable, "-I", "-S", str(FULL)],
        (*(call("say", result=result) for result in said), call("say", error=failed), call("typed", n=1, more=["x"])),
        lists("prompts", "resources"),
    )


SUBJECTS: Final = (
    _full(),
    Subject(
        "everything",
        lambda _folder: servers.everything(),
        (
            call("echo", message="é"),
            call("get-annotated-message", messageType="error", includeImage=True),
            call("get-resource-links", count=2),
            call("get-structured-content", location="Chicago"),
            call("get-sum", a=1, b=2.5),
            call("get-tiny-image"),
            call("get-resource-reference", resourceType="Text", resourceId=-1),
        ),
        (
            *lists("prompts", "resources", "resources/templates"),
            prompt("simple-prompt"),
            prompt("args-prompt", city="Ulm", state="BW"),
            prompt("completable-prompt", department="Sales", name="David"),
            prompt("args-prompt"),
            prompt("no-such-prompt"),
            read("demo://resource/static/document/architecture.md"),
            read("demo://resource/nowhere"),
            complete({"type": "ref/prompt", "name": "completable-prompt"}, "department", "S"),
            complete({"type": "ref/prompt", "name": "completable-prompt"}, "name", "D", department="Sales"),
        ),
    ),
    Subject(
        "filesystem",
        servers.filesystem,
        (
            call("list_directory", path="."),
            call("read_text_file", path="a.txt"),
            call("read_text_file", path="missing"),
            call("read_text_file", path="/etc/passwd"),
            call("write_file", path="b.txt", content="two\n"),
            call("edit_file", path="b.txt", edits=[{"oldText": "three", "newText": "four"}]),
            call("search_files", path=".", pattern="*.txt"),
            call("get_file_info", path="missing"),
            call("directory_tree", path="missing"),
            call("read_media_file", path="missing"),
            call("move_file", source="missing", destination="c.txt"),
            call("list_allowed_directories"),
        ),
        prepare=repository,
    ),
    Subject(
        "memory",
        lambda folder: servers.memory(folder / "graph.jsonl"),
        (
            call("create_entities", entities=[{"name": "ann", "entityType": "person", "observations": ["tea"]}]),
            call("read_graph"),
            call("add_observations", observations=[{"entityName": "bob", "contents": ["x"]}]),
            call("search_nodes", query="tea"),
            call(
                "add_observations",
                observations=[{"entityName": "ann", "contents": [""]}, {"entityName": "", "contents": []}],
            ),
        ),
        (*lists("resources", "resources/templates"), read("memory://knowledge-graph"), read("memory://no")),
    ),
    Subject(
        "git",
        servers.git,
        (
            call("git_status", repo_path="."),
            call("git_log", repo_path=".", max_count=1),
            call("git_show", repo_path=".", revision="nowhere"),
            call("git_branch", repo_path=".", branch_type="local"),
            call("git_checkout", repo_path=".", branch_name="-x"),
            call("git_diff", repo_path=".", target="nowhere"),
            call("git_create_branch", repo_path=".", branch_name="b", base_branch="nowhere"),
        ),
        prepare=repository,
    ),
    Subject(
        "time",
        lambda _folder: servers.time(),
        (
            call("convert_time", source_timezone="UTC", time="10:00", target_timezone="Asia/Tokyo"),
            call("convert_time", source_timezone="UTC", time="ten", target_timezone="Asia/Tokyo"),
            call("convert_time", source_timezone="UTC", time="10:00", target_timezone="Nowhere"),
            call("get_current_time", timezone="Nowhere/At_All"),
        ),
    ),
    Subject(
        "sqlite",
        lambda folder: servers.sqlite(folder / "data.db"),
        (
            call("create_table", query="CREATE TABLE t (a TEXT)"),
            call("write_query", query="INSERT INTO t VALUES ('é')"),
            call("read_query", query="SELECT * FROM t"),
            call("read_query", query="SELEC"),
            call("read_query", query="DELETE FROM t"),
            call("append_insight", insight="more tea"),
        ),
        (
            *lists("prompts", "resources"),
            prompt("mcp-demo", topic="tea"),
            prompt("no-such-prompt"),
            read("memo://insights"),
            read("memo://no"),
        ),
    ),
)


Names = Callable[[str], str]
"""Turns a name of the server, of a tool or a prompt, into the one that clients see."""


class Answers(NamedTuple):
    """What a server says of itself, its tools by name, and its answers in the order of the requests."""

    introduction: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    calls: list[dict[str, Any]]
    asks: list[dict[str, Any]]


async def answers(client: Client, subject: Subject, names: Names = str) -> Answers:
    """Ask a server, or a Remit in front of it, for all that the subject names."""
    introduction = await client.introduction()
    listed = await client.ask("tools/list", {})
    tools = {tool["name"]: tool for tool in listed["tools"]}
    calls = [await client.ask("tools/call", {"name": names(name), "arguments": args}) for name, args in subject.calls]
    asks = [await client.ask(method, _seen(method, params, names)) for method, params in subject.asks]
    return Answers(introduction, tools, calls, asks)


def _seen(method: str, params: dict[str, Any], names: Names) -> dict[str, Any]:
    """A request in the names that clients see."""
    if method == "prompts/get":
        return {**params, "name": names(params["name"])}
    if method == "completion/complete" and params["ref"]["type"] == "ref/prompt":
        return {**params, "ref": {**params["ref"], "name": names(params["ref"]["name"])}}
    return params


def _listed(answer: dict[str, Any], names: Names) -> dict[str, Any]:
    """An answer with its list of prompts, if it is one, in the names that clients see."""
    prompts = answer.get("prompts")
    return (
        answer
        if prompts is None
        else {**answer, "prompts": [{**each, "name": names(each["name"])} for each in prompts]}
    )


class Count(NamedTuple):
    """How many answers of a kind are equal, of how many, and which are not."""

    equal: int
    of: int
    unequal: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.equal} of {self.of}"


def comparison(direct: Answers, through: Answers, subject: Subject, names: Names = str) -> dict[str, Count]:
    """Count what arrives equal, by kind, apart from what Remit adds (`plain`)."""
    calls = [
        (f"{name} {args}", expected, seen)
        for (name, args), expected, seen in zip(subject.calls, direct.calls, through.calls, strict=True)
    ]
    return {
        "introduction": _count([("introduction", _introduced(direct), _introduced(through, direct))]),
        "tools": _count(
            [(name, tool, through.tools.get(names(name), {}) | {"name": name}) for name, tool in direct.tools.items()]
        ),
        "results": _count([row for row in calls if not _failed(row[1])]),
        "errors": _count([row for row in calls if _failed(row[1])]),
        "other answers": _count(
            [
                (f"{method} {params}", _listed(expected, names), seen)
                for (method, params), expected, seen in zip(subject.asks, direct.asks, through.asks, strict=True)
            ]
        ),
    }


def _count(rows: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> Count:
    unequal = tuple(label for label, expected, seen in rows if plain(expected) != plain(seen))
    return Count(len(rows) - len(unequal), len(rows), unequal)


def _failed(answer: dict[str, Any]) -> bool:
    return "error" in answer or answer.get("isError", False)


def _introduced(answers: Answers, before: Answers | None = None) -> dict[str, Any]:
    """Return an introduction without its version of the protocol, and without what Remit adds: it follows `before`.

    Remit's instructions come after the server's; its extension for tasks stands beside the server's.
    """
    told = answers.introduction
    instructions = told.get("instructions", "")
    capabilities = dict(told["capabilities"])
    if before is not None:
        own = before.introduction.get("instructions", "")
        instructions = own if instructions.startswith(own) else instructions
        extensions = dict(capabilities.pop("extensions", {}))
        extensions.pop("io.modelcontextprotocol/tasks", None)
        capabilities |= {"extensions": extensions} if extensions else {}
    return {"serverInfo": told["serverInfo"], "capabilities": capabilities, "instructions": instructions}


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what Remit and the newer era add to it, and its lists in order."""
    ours = ("dev.remit/", "io.modelcontextprotocol/")
    meta = {name: value for name, value in answer.get("_meta", {}).items() if not name.startswith(ours)}
    rest = {
        name: sorted(value, key=str) if name in _LISTS else value
        for name, value in answer.items()
        if name not in _ADDED and not (name == "isError" and value is False)
    }
    return {**rest, **({"_meta": meta} if meta else {})}


_LISTS: Final = frozenset({"prompts", "resources", "resourceTemplates"})
_ADDED: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope", "nextCursor"})
