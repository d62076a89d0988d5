"""The client as the server behind `remit mcp wrap` and `serve` sees it: its capabilities, and its roots."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Project
from tests.cli.talking import ENVELOPE, Talk, text_of

ASKER = [sys.executable, str(Path(__file__).parents[1] / "mcp_server" / "servers" / "asker.py")]
APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
ROOTS = {"roots": {"listChanged": True}}
DECLARED = {**APPS, **ROOTS, "elicitation": {"form": {}}, "sampling": {"tools": {}}, "experimental": {"acme/x": {}}}
WRAP = ("mcp", "wrap", "--level", "heard=L0")
NOTES, WORK = ({"uri": f"file:///{name}", "name": name} for name in ("notes", "work"))


def hello(talk: Talk, capabilities: dict[str, Any]) -> None:
    """The handshake of the older protocol."""
    info = {"name": "bare", "version": "1"}
    talk.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info})
    talk.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


def give(talk: Talk, *roots: dict[str, str]) -> None:
    """Wait for the question for roots, and answer it."""
    while (asked := talk.line()).get("method") != "roots/list":
        talk.notices.append(asked)
    talk.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})


def heard(talk: Talk, name: str = "heard", roots: int = 0) -> dict[str, Any]:
    """The server's view of the client."""
    return without_tasks(json.loads(text_of(talk.call(name, roots=roots))))


def without_tasks(found: dict[str, Any]) -> dict[str, Any]:
    """The same without the extension for tasks, which Remit declares to servers of 2026-07-28 by itself."""
    for declared in found["declared"]:
        extensions = declared.get("extensions", {})
        if extensions.pop("io.modelcontextprotocol/tasks", None) is not None and not extensions:
            del declared["extensions"]
    return found


def configured(project: Project, more: str = "", setting: str = "") -> None:
    """The server in the project's file."""
    project.configure(
        f"[mcp]\n{setting}\n[[mcp.servers]]\nname = 'asker'\ncommand = {json.dumps([*ASKER, 'legacy'])}\n"
        f"tools = {{ heard = 'L0' }}\n{more}\n"
    )


@pytest.mark.parametrize(
    ("era", "words", "declared", "passed"),
    [
        ("legacy", [], DECLARED, {**APPS, **ROOTS, "elicitation": {"form": {}}, "experimental": {"acme/x": {}}}),
        ("legacy", ["--sampling"], DECLARED, DECLARED),
        ("modern", ["--sampling"], DECLARED, DECLARED),
        ("legacy", ["--sampling"], {"roots": {}}, {"roots": {}}),
        ("modern", ["--sampling"], {}, {}),
    ],
    ids=["all", "sampling of before", "sampling", "roots", "none"],
)
def test_a_wrapped_server_sees_what_its_client_declared(
    project: Project, era: str, words: list[str], declared: dict[str, Any], passed: dict[str, Any]
) -> None:
    with Talk(project, *WRAP, *words, "--", *ASKER, era) as talk:
        hello(talk, declared)
        assert heard(talk)["declared"] == [passed]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_without_a_handshake_declares_with_its_first_request(project: Project, era: str) -> None:
    envelope = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": {**APPS, "elicitation": {}}}
    with Talk(project, *WRAP, "--", *ASKER, era, modern=True) as talk:
        params = {"name": "heard", "arguments": {}, "_meta": envelope}
        found = without_tasks(json.loads(text_of(talk.ask("tools/call", params)["result"])))
    assert found["declared"] == [{**APPS, "elicitation": {}}]


def test_a_server_is_told_the_roots_outside_of_calls_and_when_they_change(project: Project) -> None:
    with Talk(project, *WRAP, "--", *ASKER, "legacy") as talk:
        hello(talk, ROOTS)
        give(talk, NOTES)
        talk.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        give(talk, NOTES, WORK)
        assert heard(talk, roots=2)["roots"] == [{"roots": [NOTES]}, {"roots": [NOTES, WORK]}]


def test_a_server_that_lists_nothing_before_it_has_roots_is_served_and_gets_them(project: Project) -> None:
    with Talk(project, *WRAP, "--", *ASKER, "legacy", "first") as talk:
        hello(talk, ROOTS)
        give(talk, WORK)
        assert heard(talk, roots=2)["roots"] == [{"roots": []}, {"roots": [WORK]}]


def test_no_one_is_asked_for_roots_who_does_not_have_any(project: Project) -> None:
    with Talk(project, *WRAP, "--", *ASKER, "legacy") as talk:
        hello(talk, {})
        found = heard(talk, roots=1)
        assert (found["declared"], talk.notices) == ([{}], [])
        assert found["roots"][0]["code"] == -32600


def test_servers_behind_serve_on_stdio_see_the_one_client(project: Project) -> None:
    configured(project)
    with Talk(project, "mcp", "serve") as talk:
        hello(talk, DECLARED)
        talk.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
        give(talk, NOTES)
        assert heard(talk, "mcp__asker__heard", roots=1) == {
            "declared": [{**APPS, **ROOTS, "experimental": {"acme/x": {}}}],  # questions to people are declined
            "roots": [{"roots": [NOTES]}],
        }


@pytest.mark.parametrize(
    ("more", "setting", "declared"),
    [
        ("", "elicitation = 'forward'", {"elicitation": {"form": {}, "url": {}}}),
        ("", "elicitation = 'defaults'", {"elicitation": {"form": {}}}),
        (
            "client_capabilities = { roots = {}, sampling = {}, extensions = { 'acme/x' = {} } }",
            "",
            {"roots": {}, "extensions": {"acme/x": {}}},
        ),
    ],
    ids=["forward", "defaults", "table"],
)
def test_a_server_that_many_share_is_told_what_the_settings_say(
    project: Project,
    more: str,
    setting: str,
    declared: dict[str, Any],
) -> None:
    configured(project, more, setting)
    done = project.here("mcp", "call", "asker.heard", "{}", "--json").json
    assert json.loads(done["value"])["declared"] == [declared]


def test_a_client_is_told_of_the_task_that_it_listens_to(project: Project) -> None:
    tasks: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    }
    with Talk(project, "mcp", "wrap", "--name", "asker", "--", *ASKER, "legacy", modern=True) as talk:
        call = {"name": "heard", "arguments": {}, "_meta": {**ENVELOPE, **tasks}}
        task = talk.ask("tools/call", call)["result"]["taskId"]
        listen = {"notifications": {"taskIds": [task, "another's"]}, "_meta": {**ENVELOPE, **tasks}}
        talk.send({"jsonrpc": "2.0", "id": "stream", "method": "subscriptions/listen", "params": listen})
        acknowledged, working = talk.line(), talk.line()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
        assert (working["method"], working["params"]["status"]) == ("notifications/tasks", "working")
        assert working["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "stream"}
        (question,) = re.findall(r"c_\w+", working["params"]["statusMessage"])
        assert project.here("--journal", journal(project), "confirm", question, "--approve").status == 0
        while (told := talk.line()["params"])["status"] == "working":
            pass
        assert (told["status"], told["taskId"]) == ("completed", task)
        assert told["result"]["isError"] is False
        undeclared = talk.ask("subscriptions/listen", {"notifications": {"taskIds": [task]}})
        assert undeclared["error"]["code"] == -32021


def journal(project: Project) -> str:
    """Where a wrapped server's calls are recorded."""
    return str(project.folder / ".local" / "share" / "remit" / "journal.db")
