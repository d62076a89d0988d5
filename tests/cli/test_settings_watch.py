"""remit.toml read again by commands that stay up: real processes, real servers, one real client that is connected."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client

from tests.cli.conftest import Project
from tests.cli.talking import Talk, text_of
from tests.mcp_server.links import text_of as links_text
from tests.patience import PATIENCE_S

SPOKEN = """
import json, os, sys
own = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                      "serverInfo": {"name": "spoken", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": own, "inputSchema": {"type": "object"}}]}
        case "prompts/list":
            result = {"prompts": [{"name": own}]}
        case "tools/call":
            gate = message["params"]["arguments"].get("gate")
            if gate:
                open(gate + ".begun", "w").close()
                open(gate).read()
            result = {"content": [{"type": "text", "text": str(os.getpid())}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
UNKNOWN = -32602
TOOLS_CHANGED = "notifications/tools/list_changed"


def table(name: str, own: str, more: str = "") -> str:
    """The table of a server with one tool, which may run."""
    command = json.dumps([sys.executable, "-c", SPOKEN, own])
    return f"[[mcp.servers]]\nname = '{name}'\ncommand = {command}\nlevel = 'L0'\n{more}\n"


def until(stderr: IO[Any], words: str) -> list[str]:
    """Lines of the log up to one with these words; a process that never writes them is ended by the test's time."""
    lines = []
    for line in stderr:
        lines.append(line if isinstance(line, str) else line.decode())
        if words in lines[-1]:
            return lines
    raise AssertionError("".join(lines))


def logged(talk: Talk, words: str) -> list[str]:
    assert talk.process.stderr is not None
    return until(talk.process.stderr, words)


def shown(talk: Talk) -> list[str]:
    return sorted(tool["name"] for tool in talk.ask("tools/list")["result"]["tools"] if "__" in tool["name"])


def noticed(talk: Talk, method: str) -> None:
    """Wait until the client is told this."""
    while all(notice.get("method") != method for notice in talk.notices):
        talk.notices.append(talk.line())
    talk.notices.clear()


@pytest.fixture
def talk(project: Project) -> Iterator[Talk]:
    project.configure(table("first", "one"), modules=False)
    with Talk(project, "mcp", "serve") as talk:
        talk.hello()
        assert [name for name in shown(talk) if name.startswith("mcp__")] == ["mcp__first__one"]
        yield talk


def of_servers(talk: Talk) -> list[str]:
    return [name for name in shown(talk) if name.startswith("mcp__")]


def pid(talk: Talk, name: str) -> int:
    return int(text_of(talk.call(name)))


def test_servers_are_added_changed_and_removed_while_a_client_is_connected(project: Project, talk: Talk) -> None:
    first = pid(talk, "mcp__first__one")
    project.configure(table("first", "one") + table("second", "two"), modules=False)
    noticed(talk, TOOLS_CHANGED)
    assert of_servers(talk) == ["mcp__first__one", "mcp__second__two"]
    second = pid(talk, "mcp__second__two")
    prompts = talk.ask("prompts/list")["result"]["prompts"]
    assert sorted(prompt["name"] for prompt in prompts) == ["mcp__first__one", "mcp__second__two"]

    project.configure(table("first", "one") + table("second", "three", "strict = true"), modules=False)
    noticed(talk, TOOLS_CHANGED)
    logged(talk, "MCP servers changed: second")
    project.here("mcp", "pin", "second")  # what it offers has changed, so that a person looks at it
    noticed(talk, TOOLS_CHANGED)
    assert of_servers(talk) == ["mcp__first__one", "mcp__second__three"]
    assert pid(talk, "mcp__second__three") != second
    gone(second)

    project.configure(table("first", "one"), modules=False)
    noticed(talk, TOOLS_CHANGED)
    assert of_servers(talk) == ["mcp__first__one"]
    assert talk.ask("tools/call", {"name": "mcp__second__three"})["error"]["code"] == UNKNOWN
    assert pid(talk, "mcp__first__one") == first  # the one whose table stayed was not touched


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_calls_under_way_end_before_their_server_does(project: Project, talk: Talk, how: str) -> None:
    before = pid(talk, "mcp__first__one")
    gate = project.folder / "gate"
    os.mkfifo(gate)
    os.mkfifo(f"{gate}.begun")
    arguments = {"name": "mcp__first__one", "arguments": {"gate": str(gate)}}
    talk.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": arguments})
    Path(f"{gate}.begun").read_text()  # it is under way
    project.configure(table("first", "one", "env = { ROLE = 'clerk' }") if how == "changed" else "", modules=False)
    gate.write_text("")
    slow = next(answer for answer in iter(talk.line, None) if answer.get("id") == "slow")
    assert int(text_of(slow["result"])) == before
    logged(talk, f"MCP servers {how}: first")
    if how == "changed":
        assert pid(talk, "mcp__first__one") != before
    gone(before)


def test_a_server_that_is_still_connecting_by_a_wrong_table_is_given_up_for_the_right_one(project: Project) -> None:
    silent = json.dumps([sys.executable, "-c", "import time; time.sleep(100_000)"])
    project.configure(f"[[mcp.servers]]\nname = 'first'\nlevel = 'L0'\ncommand = {silent}\n", modules=False)
    with Talk(project, "mcp", "serve") as talk:
        talk.hello()
        project.configure(table("first", "one"), modules=False)
        assert pid(talk, "mcp__first__one")


def test_a_broken_file_keeps_the_settings_and_the_next_good_one_counts(project: Project, talk: Talk) -> None:
    before = pid(talk, "mcp__first__one")
    for broken, code in (
        (table("first", "one") + "[[mcp.servers]\n", "SETTINGS_INVALID: "),
        (table("first", "one") + table("first", "two"), "the name is taken"),
        ("[mcp]\nno_such = 1\n", "no setting mcp.no_such"),
        (table("first", "one") + "[[policy.rules]]\nid = 'x'\neffect = 'perhaps'\n", "POLICY_INVALID: "),
    ):
        project.configure(broken, modules=False)
        assert code in logged(talk, "is not read, and the settings from before hold: ")[-1]
        assert pid(talk, "mcp__first__one") == before
    (project.folder / "remit.toml").unlink()
    assert "No such file" in logged(talk, "is not read")[-1]
    assert pid(talk, "mcp__first__one") == before
    project.configure(table("second", "two"), modules=False)
    noticed(talk, TOOLS_CHANGED)
    assert of_servers(talk) == ["mcp__second__two"]


def test_rules_decide_by_what_the_file_says_now_and_each_decision_names_them(project: Project, talk: Talk) -> None:
    pid(talk, "mcp__first__one")
    rule = "[[policy.rules]]\nid = 'closed'\neffect = 'deny'\ntools = ['mcp.first.*']\n"
    project.configure(table("first", "one") + rule, modules=False)
    noticed(talk, TOOLS_CHANGED)
    assert of_servers(talk) == []
    assert talk.call("mcp__first__one")["isError"]
    project.configure(table("first", "one"), modules=False)
    noticed(talk, TOOLS_CHANGED)
    pid(talk, "mcp__first__one")
    talk.leave()
    (session,) = project.here("sessions", "--json").json
    events = map(json.loads, project.here("trace", session["session"], "--events", "--json").out.splitlines())
    hashes = [event["data"]["policy_hash"] for event in events if event["data"].get("policy_hash")]
    assert len(set(hashes)) == 2
    assert hashes[0] == hashes[-1]


def gone(process: int) -> None:
    """Check that a server has ended: it was waited for before the next one began."""
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@contextmanager
def apart(project: Project, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command without a terminal, as a service manager starts it."""
    command = project.command(*words)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(
        command, cwd=project.folder, env=project.env, text=True, start_new_session=True, **pipes
    ) as process:
        try:
            yield process
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
        finally:
            process.kill()


def health(url: str) -> dict[str, Any]:
    """The settings, as `/health` shows them."""
    state: dict[str, Any] = httpx2.get(f"{url}/health").json()["optional"]["settings"]
    return state


async def test_a_server_is_added_over_http_while_a_client_is_connected(project: Project) -> None:
    project.configure(table("first", "one"), modules=False)
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    with apart(project, "mcp", "serve", "--http", "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        async with Client(url, mode="legacy", message_handler=hear) as client:
            assert "mcp__first__one" in {tool.name for tool in (await client.list_tools()).tools}
            project.configure(table("first", "one") + table("second", "two"), modules=False)
            process.send_signal(signal.SIGHUP)  # at once
            async with asyncio.timeout(PATIENCE_S):
                await changed.wait()
            assert "mcp__second__two" in {tool.name for tool in (await client.list_tools()).tools}
            assert int(links_text(await client.call_tool("mcp__second__two", {})))


def test_serve_says_in_its_health_and_its_log_what_it_does_not_read(project: Project) -> None:
    project.configure(table("first", "one"), modules=False)
    with apart(project, "serve", "--port", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert health(url)["ready"]
        project.configure("[mcp", modules=False)
        until(process.stderr, "SETTINGS_INVALID")
        state = health(url)
        assert (state["ready"], "SETTINGS_INVALID" in state["detail"]) == (False, True)
        project.configure(table("second", "two") + "[jobs]\nconcurrency = 3\n", modules=False)
        assert "need a restart: jobs.concurrency" in until(process.stderr, "restart")[-1]
        state = health(url)
        assert (state["ready"], "jobs.concurrency" in state["detail"]) == (False, True)
        servers = project.here("--server", url, "mcp", "list", "--json").json["servers"]
        assert [row["name"] for row in servers] == ["second"]
        keys = httpx2.get(f"{url}/health").json()["optional"].keys()
        assert {"mcp", "mcp.second"} <= keys
        assert "mcp.first" not in keys
        assert [row["outdated"] for row in project.here("workers", "--json").json] == [True]
        project.configure(table("second", "two"), modules=False)
        process.send_signal(signal.SIGHUP)
        while not health(url)["ready"]:
            pass
        assert [row["outdated"] for row in project.here("workers", "--json").json] == [False]


def test_a_change_that_is_not_trusted_is_not_read_before_it_is(project: Project) -> None:
    del project.env["REMIT_TRUST"]
    project.configure(table("first", "one"), modules=False)
    assert project.here("trust", "--yes").status == 0
    with Talk(project, "mcp", "serve") as talk:
        talk.hello()
        assert of_servers(talk) == ["mcp__first__one"]
        project.configure(table("first", "one") + table("second", "two"), modules=False)
        assert "FOLDER_NOT_TRUSTED" in logged(talk, "is not read")[-1]
        assert of_servers(talk) == ["mcp__first__one"]
        assert project.here("trust", "--yes").status == 0
        noticed(talk, TOOLS_CHANGED)
        assert of_servers(talk) == ["mcp__first__one", "mcp__second__two"]


@pytest.fixture
def _heeded() -> Iterator[None]:
    """Have processes heed SIGHUP: under nohup they begin with it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_heeded")
def test_a_worker_reads_it_too_and_ends_by_the_signal_at_a_terminal_alone(project: Project) -> None:
    project.configure(table("first", "one"), modules=False)
    with apart(project, "worker") as process:
        assert process.stderr is not None
        until(process.stderr, "runs plans")
        for name in ("second", "third"):
            project.configure(table(name, "two"), modules=False)
            until(process.stderr, f"MCP servers added: {name}")
            process.send_signal(signal.SIGHUP)
    with project.terminal("worker") as terminal:
        terminal.expect("runs plans")
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.end() == 0
