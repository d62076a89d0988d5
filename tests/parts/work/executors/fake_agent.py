"""A coding agent of a few lines: it plays one scene, and says so in the words of the agent whose name it is given.

    python fake_agent.py NAME SCENE [ARGUMENT]…

It finds its MCP server where that agent finds it, and works with its tools if there are any.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any, Self, cast

HOME = Path(os.environ["HOME"])
ORDERS = f"""
cd sub && git init -q . && echo q > q && git add q && git -c user.name=a -c user.email=b commit -qm q &&
echo '* filter=e' > .gitattributes && git config filter.e.process 'id > {Path(__file__).with_name("caught")}; exit 1' &&
sleep 1 && echo w > q
"""
"""What has a git that looks into this submodule start a program."""


def main(name: str, scene: str) -> int:
    """Play a scene; return the exit status."""
    agent = AGENTS[name]
    agent("begin", "")
    if scene in {"401", "500", "fail"}:
        agent("failed", f"HTTP {scene}")
        return int(name != "aider" or scene == "fail")  # aider itself ends well whatever happens
    if scene == "asks" and not ask():
        agent("failed", "its model refused")
        return 1
    if scene in {"setsid", "leave"}:
        later = "import time; time.sleep(300); open('late.txt', 'w').write('late')"
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", later], start_new_session=True)
        Path("survivor.new").write_text(str(child.pid))
        Path("survivor.new").rename("survivor.txt")
    if scene in {"hang", "leave"}:
        signal.pause()
    if scene == "sleep":
        signal.signal(signal.SIGTERM, lambda *_: lie_and_leave(agent))
        signal.pause()
    if scene == "flood":
        for _ in range(6):
            say(type="noise", text="x" * 1_000_000)
    denied = 0
    resumed = converse() if name == "claude" else False
    if scene != "lie" and (scene != "again" or resumed):
        denied = edit(name, scene)
    if scene == "cut":
        return 0
    agent("denied" if denied or (scene == "denied" and name == "claude") else "done", "All is done.")
    return 0


def ask() -> bool:
    """Ask the model as claude does; return whether it answered."""
    body = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
    url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:  # noqa: S310 - the test's
            return bool(json.load(response)["content"])
    except urllib.error.HTTPError as error:
        sys.stderr.write(error.read().decode())
        return False


def converse() -> bool:
    """Keep the conversation as claude does; return whether it goes on with one."""
    place = HOME / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())) / "s-1.jsonl"
    resumed = sys.argv[sys.argv.index("--resume") + 1] == "s-1" if "--resume" in sys.argv else False
    assert place.exists() == resumed, place
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a") as file:
        file.write("{}\n")
    return resumed


def edit(name: str, scene: str) -> int:
    """Mend the clock, with the tools that there are; return how many calls were refused."""
    server = server_of(name)
    if not server:
        Path("clock.txt").write_text("mended\n")
        return int(scene == "denied")
    with Mcp(server) as mcp:
        assert all(tool.startswith(("fs__", "worktree__")) for tool in mcp.tools), mcp.tools
        if scene == "denied":
            assert mcp.call("worktree__exec", command=["true"])["isError"]
        if scene == "orders":
            mcp.call("worktree__exec", command=["sh", "-c", ORDERS])
            mcp.call("worktree__status")
        if scene == "tool sleeps":
            mcp.call("worktree__exec", command=["sh", "-c", "echo $$ > new; mv new survivor.txt; exec sleep 86400"])
        mcp.call("fs__write", path="clock.txt", content="mended\n")
        done = mcp.call("worktree__exec", command=["cat", "clock.txt"]) if scene == "edit" else None
        assert done is None or done["structuredContent"]["stdout"] == "mended\n", done
    return 0


def server_of(name: str) -> list[str]:
    """Return the command of the MCP server that the agent of this name is told of."""
    if name == "claude":
        servers = json.loads((HOME / "mcp.json").read_text())["mcpServers"]
    elif name == "gemini":
        servers = json.loads((HOME / ".gemini/settings.json").read_text()).get("mcpServers", {})
    elif name == "codex":
        servers = tomllib.loads((HOME / ".codex/config.toml").read_text()).get("mcp_servers", {})
    elif name == "opencode":
        servers = json.loads(Path(os.environ["OPENCODE_CONFIG"]).read_text()).get("mcp", {})
    else:
        return []
    found = servers.get("remit")
    if not found:
        return []
    return found["command"] if isinstance(found["command"], list) else [found["command"], *found["args"]]


class Mcp:
    """A client of one MCP server, on its stdin and stdout."""

    def __init__(self, command: list[str]) -> None:
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._stdin, self._stdout = cast("IO[str]", self._child.stdin), cast("IO[str]", self._child.stdout)
        self._count = 0

    def __enter__(self) -> Self:
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
        self.ask("initialize", told)
        self._send({"method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stdin.close()
        self._child.wait()

    def call(self, name: str, **args: Any) -> Any:
        """Call a tool; return the result."""
        return self.ask("tools/call", {"name": name, "arguments": args, "_meta": {"progressToken": 1}})

    def ask(self, method: str, params: Any) -> Any:
        """Return the result of a request."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        for line in self._stdout:
            message = json.loads(line)
            if message.get("id") == self._count:
                return message["result"]
        raise AssertionError("the server is gone")

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._stdin.flush()


def lie_and_leave(agent: Any) -> None:
    """Say that all went well, as some agents do when they are told to end."""
    agent("done", "All is done.")
    sys.stdout.flush()
    os._exit(0)


def write(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say(**event: Any) -> None:
    """Print an event."""
    write(json.dumps(event))


def claude(what: str, text: str) -> None:
    """Speak as claude does."""
    if what == "begin":
        say(type="system", subtype="init", session_id="s-1")
        say(type="assistant", message={"content": [{"type": "text", "text": "I look."}]})
        return
    usage = {"input_tokens": 60, "output_tokens": 42}
    denials = [{"tool_name": "WebFetch"}] if what == "denied" else []
    end = {"total_cost_usd": 0.5, "usage": usage, "permission_denials": denials, "result": text, "session_id": "s-1"}
    say(type="result", subtype="success", is_error=what == "failed", **end)


def codex(what: str, text: str) -> None:
    """Speak as codex does."""
    if what == "begin":
        say(type="thread.started", thread_id="s-1")
        say(type="item.completed", item={"type": "agent_message", "text": "I look."})
    elif what == "failed":
        say(type="turn.failed", error={"message": text})
    else:
        say(type="turn.completed", usage={"input_tokens": 60, "output_tokens": 42})


def gemini(what: str, text: str) -> None:
    """Speak as gemini does."""
    if what == "begin":
        say(type="init", session_id="s-1")
        say(type="message", role="assistant", content="I look.")
        return
    if what == "denied":
        say(type="tool_result", status="error", error={"type": "policy_violation"})
    stats = {"input_tokens": 60, "output_tokens": 42}
    fine = what != "failed"
    say(
        type="result",
        status="success" if fine else "error",
        stats=stats,
        **({} if fine else {"error": {"message": text}}),
    )


def opencode(what: str, text: str) -> None:
    """Speak as opencode does."""
    if what == "begin":
        say(type="text", sessionID="s-1", part={"text": "I look."})
    elif what == "failed":
        say(type="error", sessionID="s-1", error={"data": {"message": text}})
    else:
        if what == "denied":
            state = {"status": "error", "error": "The user has specified a rule which prevents you from using this"}
            say(type="tool_use", sessionID="s-1", part={"tool": "bash", "state": state})
        say(type="step_finish", sessionID="s-1", part={"reason": "tool-calls", "tokens": {"input": 20, "output": 20}})
        say(
            type="step_finish",
            sessionID="s-1",
            part={"reason": "stop", "tokens": {"input": 40, "output": 22}, "cost": 0.5},
        )


def aider(what: str, text: str) -> None:
    """Speak as aider does: for people."""
    if what == "begin":
        write("I look.")
    elif what == "failed":
        write(f"litellm.AuthenticationError: {text}")
    else:
        write(f"{text}\nTokens: 60 sent, 42 received. Cost: $0.50 message, $0.50 session.")


AGENTS = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode, "aider": aider}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
