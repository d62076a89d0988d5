"""An agent that speaks the Agent Client Protocol, for tests: `acp_agent.py MODE [VERSION]`.

Told to create a file, it asks first, and heeds the answer, unless its mode says otherwise. It uses the standard library
alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[4]))
from tests.parts.work.executors.fake_agent import Mcp

MODE = sys.argv[1]
VERSION = sys.argv[2] if len(sys.argv) > 2 else "1.0"
SESSION = "s-1"
LOADED: list[str] = []
"""The sessions that it went on with."""
SERVERS: list[dict[str, Any]] = []
"""The MCP servers that it was handed."""
PACK = Path(os.environ.get("REMIT_CONTEXT_PACK", "."))
ONCE = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
GREEDY = [ONCE[0], ONCE[2]]


def send(**message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(kind: str, **more: Any) -> None:
    """Tell what goes on."""
    send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": kind, **more}})


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the client; its answer."""
    send(id=100, method=method, params={"sessionId": SESSION, **params})
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message.get("id") == 100 and "method" not in message:
            return message
        if message.get("method") == "session/cancel":
            Path(os.environ["HOME"], "cancelled").touch()
    raise SystemExit(3)


def permitted(title: str) -> bool:
    """Ask whether a command may be run."""
    call = {"toolCallId": "t-1", "kind": "execute", "title": title, "rawInput": {"command": title}}
    update("tool_call", toolCallId="t-1", title=title, status="pending")
    options = GREEDY if MODE == "greedy" else ONCE
    outcome = ask("session/request_permission", {"toolCall": call, "options": options})["result"]["outcome"]
    with Path(os.environ["HOME"], "answers").open("a") as answers:
        answers.write(json.dumps(outcome) + "\n")
    return outcome.get("optionId") in {"once", "always"}


def conversation() -> Path:
    """Return where it keeps its conversation, as claude does."""
    return Path(os.environ["HOME"], ".claude/projects", re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())), "s-1.jsonl")


def edit(_number: int = 1) -> None:
    """Do the work."""
    if MODE == "unasked" or permitted("echo mended > clock.txt"):
        Path("clock.txt").write_text("mended\n")


def hang(_number: int) -> None:
    """Do nothing for ever."""
    Path("up.txt").write_text("up")
    signal.pause()


def wait(_number: int) -> None:
    """Ask, whatever the answer, and note it."""
    permitted("wait")


def hurry(_number: int) -> None:
    """Ask a great deal, and do the work without an answer."""
    for number in range(50):
        call = {"toolCallId": f"t-{number}", "kind": "execute", "title": f"question {number}"}
        given = {"sessionId": SESSION, "toolCall": call, "options": ONCE}
        send(id=200 + number, method="session/request_permission", params=given)
    Path("clock.txt").write_text("mended\n")


def cut(_number: int) -> None:
    """End in the middle, and well."""
    os._exit(0)


def leave(_number: int) -> None:
    """Leave a process in a session of its own."""
    late = f"sleep 300 && echo late > {Path('late.txt').absolute()}"
    survivor = subprocess.Popen(["/usr/bin/setsid", "sh", "-c", late], stdin=subprocess.DEVNULL)
    Path("survivor.txt").write_text(str(survivor.pid))
    if MODE == "leave":
        signal.pause()


def flood(_number: int) -> None:
    """Say a great deal."""
    for _ in range(60):
        update("agent_message_chunk", content={"type": "text", "text": "x" * 100_000})


def lie(_number: int) -> None:
    """Say that all is well, and do nothing."""
    names = {"issue_ref": os.environ["REMIT_ISSUE_REF"], "run_id": os.environ["REMIT_RUN_ID"]}
    (PACK / "work_result.json").write_text(json.dumps(names | {"status": "ok", "summary": "All tests pass."}))


def reach(_number: int) -> None:
    """Ask for a file of the client's, and for a terminal."""
    answers = [
        ask(method, {"path": "/etc/passwd", "content": "x"}) for method in ("fs/write_text_file", "terminal/create")
    ]
    Path(os.environ["HOME"], "reached").write_text(json.dumps(answers))
    edit()


def overlong(_number: int) -> None:
    """Write a message that does not end."""
    sys.stdout.write('{"jsonrpc":"2.0","method":"' + "x" * 17_000_000)
    sys.stdout.flush()
    signal.pause()


def chatter(_number: int) -> None:
    """Talk for ever."""
    while True:
        update("agent_message_chunk", content={"type": "text", "text": "More."})


def forget(number: int) -> None:
    """Leave a result that lacks its status, until it is asked for."""
    if number == 1:
        edit()
    run = f"IssueRef: {os.environ['REMIT_ISSUE_REF']}\nRunId: {os.environ['REMIT_RUN_ID']}\n"
    (PACK / "work_result.txt").write_text(run + ("Status: ok\nTests: n/a\n\nMended." if number > 1 else ""))


def use(_number: int = 1) -> None:
    """Work with the tools of the server alone, and report each call; without a server there is nothing to work with."""
    for server in SERVERS:
        with Mcp([server["command"], *server["args"]]) as mcp:
            assert all(tool.startswith(("fs__", "worktree__")) for tool in mcp.tools), mcp.tools
            if MODE != "tools-asks" or permitted("fs__write"):
                mcp.call("fs__write", path="clock.txt", content="mended\n")
                update("tool_call", toolCallId="c-1", title="write", status="completed")
            mcp.call("worktree__exec", command=["cat", "clock.txt"])
            update("tool_call_update", toolCallId="c-2", status="completed")
        if MODE == "tools-strays":
            Path("more.txt").write_text("more")
            update("tool_call_update", toolCallId="c-3", status="completed")


def again(_number: int) -> None:
    """Work only when it goes on with what was said before, and report what was done then as done now."""
    if LOADED:
        edit()


MODES: dict[str, Callable[[int], None]] = {
    "hang": hang,
    "waits": wait,
    "hurries": hurry,
    "cut": cut,
    "setsid": leave,
    "leave": leave,
    "flood": flood,
    "lie": lie,
    "reaches": reach,
    "long": overlong,
    "endless": chatter,
    "forgets": forget,
    "again": again,
    "tools": use,
    "tools-asks": use,
    "tools-strays": use,
    "tools-cut": cut,
}
"""The others edit."""


def prompt(text: str, number: int) -> dict[str, Any]:
    """Work on a prompt; the answer."""
    update("agent_message_chunk", content={"type": "text", "text": f"I am at it ({MODE})."})
    if "refused.txt" in text and not MODE.startswith("tools"):
        if MODE == "unasked" or permitted("touch refused.txt"):
            Path("refused.txt").touch()
        return {"stopReason": "end_turn"}
    MODES.get(MODE, edit)(number)
    update("usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"})
    reason = "refusal" if MODE == "fail" else "end_turn"
    return {"stopReason": reason, "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}}


def main() -> None:
    """Serve until stdin ends."""
    prompts = 0
    sys.stdout.write("this line is no message\n")
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {}
        match message.get("method"):
            case "initialize":
                answer = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": []}
                answer["agentInfo"] = {"name": "test", "version": VERSION}
                if MODE == "locked":
                    send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
                    continue
            case "session/new":
                SERVERS[:] = message["params"]["mcpServers"]
                answer = {"sessionId": SESSION}
                conversation().parent.mkdir(parents=True, exist_ok=True)
                conversation().touch()
            case "session/load":
                SERVERS[:] = message["params"]["mcpServers"]
                LOADED.append(message["params"]["sessionId"])
                update("agent_message_chunk", content={"type": "text", "text": "What I said before."})
                update("tool_call_update", toolCallId="c-0", status="completed")
                if not conversation().exists() or VERSION == "forgets":
                    send(id=message["id"], error={"code": -32002, "message": "no such session"})
                    LOADED.clear()
                    continue
            case "session/prompt":
                prompts += 1
                answer = prompt(message["params"]["prompt"][0]["text"], prompts)
            case _:
                continue
        send(id=message["id"], result=answer)


main()
