"""The beginning and the end of `remit mcp wrap` and `serve` where one side is missing: no client, or no server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Project
from tests.cli.talking import ENVELOPE, Talk
from tests.patience import PATIENCE_S

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


@pytest.mark.parametrize(
    "words", [["serve"], ["wrap", "--", sys.executable, "-c", SILENT, "begun"]], ids=lambda w: w[0]
)
def test_without_a_client_it_ends_at_once(project: Project, words: list[str]) -> None:
    done = subprocess.run(
        project.command("mcp", *words),
        cwd=project.folder,
        env=project.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr


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
