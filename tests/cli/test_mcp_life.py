"""The beginning and the end of `remit mcp wrap` and `serve` where one side is missing: no client, or no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.conftest import Project, hiding
from tests.cli.talking import ENVELOPE, Talk
from tests.patience import PATIENCE_S

SERVED = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call":
        time.sleep(100_000)
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "served", "version": "1"}},
        "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
    }
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        print(json.dumps(answer), flush=True)
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
SILENT = 'import os, sys, time; open(sys.argv[1], "w").write(str(os.getpid())); time.sleep(100_000)'
LATE = """
import json, pathlib, sys
before = pathlib.Path(sys.argv[1])
if not before.exists():
    before.touch()
    sys.exit("not yet")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}, "resources": {}},
                                "serverInfo": {"name": "late", "version": "1"}}
        case "prompts/list":
            answer["result"] = {"prompts": [{"name": "greet"}]}
        case "resources/list":
            answer["result"] = {"resources": [{"uri": "memo://tea", "name": "tea"}]}
        case _:
            answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


def run_alone(project: Project, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, without a client."""
    return subprocess.run(
        project.command(*words),
        cwd=project.folder,
        env=project.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    "words", [["serve"], ["wrap", "--", sys.executable, "-c", SILENT, "begun"]], ids=lambda w: w[0]
)
def test_without_a_client_it_ends_at_once(project: Project, words: list[str]) -> None:
    done = run_alone(project, "mcp", *words)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert not (project.folder / "begun").exists(), "nothing is started for nobody"


@pytest.mark.parametrize("words", [["serve"], ["wrap", "--", "x"]], ids=lambda w: w[0])
def test_a_client_that_went_before_loads_nothing_of_the_protocol(project: Project, words: list[str]) -> None:
    stdin, theirs = os.pipe()
    os.close(theirs)
    with os.fdopen(stdin, "rb") as hung_up:
        done = subprocess.run(
            hiding("mcp mcp_types", *words),
            cwd=project.folder,
            env=project.env,
            stdin=hung_up,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["serve"], ["wrap", "--", "x"]], ids=lambda w: w[0])
def test_wrong_settings_are_refused_also_to_nobody(project: Project, words: list[str]) -> None:
    project.configure("[mcp]\ndrain_ms = 'soon'\n", modules=False)
    done = run_alone(project, "--config", str(project.folder / "remit.toml"), "mcp", *words)
    assert done.returncode == 2
    assert b"SETTINGS_INVALID" in done.stderr


def test_a_client_that_goes_while_the_server_starts_ends_both(project: Project) -> None:
    begun = project.folder / "begun"
    os.mkfifo(begun)
    with Talk(project, "mcp", "wrap", "--", sys.executable, "-c", SILENT, str(begun)) as talk:
        child = int(begun.read_text())
        status, out, err = talk.leave()
    assert (status, out) == (0, "")
    assert "the client went before it was served" in err
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.parametrize(
    ("command", "words", "method", "params"),
    [
        (["./no-such-program"], "cannot be started: No such file or directory: ./no-such-program", "initialize", HELLO),
        (
            [sys.executable, "-c", "raise SystemExit('out of tea')"],
            "exit code 1; it last wrote: out of tea",
            "server/discover",
            {"_meta": ENVELOPE},
        ),
    ],
    ids=["missing", "broken"],
)
def test_a_server_that_cannot_start_fails_the_wrap_with_its_last_words(
    project: Project, command: list[str], words: str, method: str, params: dict[str, object]
) -> None:
    with Talk(project, "mcp", "wrap", "--name", "gone", "--", *command) as talk:
        assert words in talk.ask(method, params)["error"]["message"]
        talk.process.wait(timeout=PATIENCE_S)  # by itself: the client has not gone
        status, out, err = talk.leave()
    assert (status, out) == (1, "")
    assert "error: TOOL_UNAVAILABLE: the MCP server gone: " in err
    assert words in err


def test_over_http_a_server_that_cannot_start_fails_the_wrap_too(project: Project) -> None:
    with Talk(project, "mcp", "wrap", "--name", "gone", "--http", "--port", "0", "--", "./no-such-program") as talk:
        talk.process.wait(timeout=PATIENCE_S)
        status, _, err = talk.leave()
    assert status == 1
    assert "cannot be started" in err


def test_a_server_whose_first_start_fails_brings_its_prompts_and_resources(project: Project) -> None:
    with Talk(project, "mcp", "wrap", "--", sys.executable, "-c", LATE, str(project.folder / "before")) as talk:
        welcome = talk.hello()["result"]
        assert welcome["serverInfo"]["name"] == "late"
        assert set(welcome["capabilities"]) == {"prompts", "resources"}
        assert talk.ask("prompts/list")["result"]["prompts"] == [{"name": "greet"}]
        assert [each["name"] for each in talk.ask("resources/list")["result"]["resources"]] == ["tea"]
        assert talk.leave()[0] == 0


def test_what_was_asked_before_the_end_of_input_is_answered(project: Project) -> None:
    asked: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    patient = {"REMIT_MCP_DRAIN_MS": str(int(PATIENCE_S * 1_000))}
    status, answers, err = piped(project, asked, "wrap", "--", sys.executable, "-c", SERVED, env=patient)
    assert status == 0, err
    assert [answer["id"] for answer in answers] == [1, 2]
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["wait"]


@pytest.mark.parametrize("command", ["wrap", "serve"])
def test_what_was_asked_waits_for_a_server_that_takes_longer_to_start_than_an_answer_may(
    project: Project, command: str
) -> None:
    slow = [sys.executable, "-c", f"import time; time.sleep(2.5)\n{SERVED}"]
    project.configure(f"[[mcp.servers]]\nname = 'slow'\ncommand = {json.dumps(slow)}\n", modules=False)
    asked: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    words = ["wrap", "--", *slow] if command == "wrap" else ["serve"]
    status, answers, err = piped(project, asked, *words, env={"REMIT_MCP_DRAIN_MS": "2000"})
    assert status == 0, err
    assert [answer["id"] for answer in answers] == [1, 2]
    names = {"wait"} if command == "wrap" else {"mcp__slow__wait"}
    assert names <= {tool["name"] for tool in answers[1]["result"]["tools"]}


def test_a_client_that_has_said_all_hears_why_the_first_start_failed(project: Project) -> None:
    asked: list[dict[str, Any]] = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}]
    patient = {"REMIT_MCP_DRAIN_MS": str(int(PATIENCE_S * 1_000))}
    before = str(project.folder / "before")
    status, answers, _ = piped(project, asked, "wrap", "--", sys.executable, "-c", LATE, before, env=patient)
    assert status == 1
    assert "it last wrote: not yet" in answers[0]["error"]["message"]


def test_a_call_that_is_not_answered_in_time_is_given_up_at_the_end_of_input(project: Project) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}},
    ]
    status, answers, err = piped(project, asked, "wrap", "--level", "wait=L0", "--", sys.executable, "-c", SERVED)
    assert status == 0, err
    assert 2 not in [answer["id"] for answer in answers]


def test_a_command_for_the_journal_here_refuses_before_anything_starts(project: Project) -> None:
    begun = project.folder / "begun"
    words = ["--server", "http://127.0.0.1:9", "mcp", "wrap", "--", sys.executable, "-c", SILENT, str(begun)]
    done = subprocess.run(
        project.command(*words),
        cwd=project.folder,
        env=project.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0
    assert b"LOCAL_ONLY" in done.stderr
    assert not begun.exists()


def piped(
    project: Project, asked: list[dict[str, Any]], *words: str, env: dict[str, str] | None = None
) -> tuple[int, list[dict[str, Any]], str]:
    """The exit status, the answers and stderr of a command whose input ends behind these messages."""
    done = subprocess.run(
        project.command("mcp", *words),
        cwd=project.folder,
        env={**project.env, **(env or {})},
        input="".join(json.dumps(each) + "\n" for each in asked),
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, [json.loads(each) for each in done.stdout.splitlines()], done.stderr
