"""Whether an agent asks the gate: it is run once before a scripted model on loopback, which wants one marked call.

The guard refuses that call with words that the model then reads: who reads them knows that the gate was asked. Without
them the command was run, which does nothing. The key is none, and the model's address is this machine's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

from remit.mcp_config.config_file import read_text, remove, replace_text
from remit.mcp_config.connection_record import ConnectionRecord, digest_of, put_together
from remit.parts.hooks.guard import ASKED, MARKER
from remit.parts.hooks.hook import AgentName, is_shell
from remit.parts.hooks.places import file_of, off_lines

_UNTRUSTED: Final = (
    "Codex is not on the PATH here, and runs only hooks that were trusted: trust them in it, with /hooks"
)
_CHANGED: Final = "it did not take the trust in the hooks"


class AppServer:
    """A conversation with `codex app-server`, in JSON-RPC over its pipes."""

    def __init__(self, program: str, cwd: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the agent that is connected
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            text=True,
        )
        self._last = 0

    def __enter__(self) -> Self:
        self.call("initialize", {"clientInfo": {"name": "remit", "title": "Remit", "version": "1"}})
        self._send({"method": "initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return what it answers. Raises OSError if it does not."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        for line in self._process.stdout or ():
            message = json.loads(line)
            if message.get("id") == self._last:
                if "error" in message:
                    raise OSError(f"codex app-server: {message['error'].get('message')}")
                return message["result"]
        raise OSError("codex app-server ended")

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()


def trust_hooks(file: Path, records: Path, cwd: Path) -> list[str]:
    """Have Codex trust the hooks in a file that are Remit's; what is left to do. Raises OSError."""
    program = shutil.which("codex")
    if program is None:
        return [_UNTRUSTED]
    settings = file.with_name("config.toml")
    record = ConnectionRecord(records, settings)
    before = read_text(settings) if settings.exists() else None
    with AppServer(program, cwd) as server:
        ours = _ours(server, file, cwd)
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in ours}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        if not ours or any(hook["trustStatus"] != "trusted" for hook in _ours(server, file, cwd)):
            raise OSError(_CHANGED)
    if record.read() is None:
        record.keep(put_together(None, settings, "codex", before, read_text(settings), ()))
    return []


def doubted(file: Path, cwd: Path) -> list[str]:
    """Return which of the hooks in a file that are Remit's Codex does not trust. Raises OSError."""
    program = shutil.which("codex")
    if program is None or not file.is_file():
        return []
    with AppServer(program, cwd) as server:
        ours = [(hook["eventName"], hook["trustStatus"]) for hook in _ours(server, file, cwd)]
    return [f"{file}: {name}: the hook is {status}, not trusted" for name, status in ours if status != "trusted"]


def _ours(server: AppServer, file: Path, cwd: Path) -> list[dict[str, Any]]:
    listed = server.call("hooks/list", {"cwds": [str(cwd)]})["data"]
    hooks = [hook for each in listed for hook in each["hooks"]]
    return [hook for hook in hooks if hook["sourcePath"] == str(file) and " guard ask codex." in str(hook["command"])]


def untrust(file: Path, records: Path) -> None:
    """Take the trust back, so that Codex' settings are as they were; if they were changed since, it stays."""
    settings = file.with_name("config.toml")
    record = ConnectionRecord(records, settings)
    connection = record.read()
    if connection is None or digest_of(read_text(settings)) != connection.digest:
        return
    if connection.original is None:
        remove(settings)
    else:
        replace_text(settings, connection.original)
    record.forget()


Answer = Literal["asked", "not asked", "not installed", "no model call", "begin not seen"]
_LIMIT_S: Final = 60
_ARGS: Final[Mapping[AgentName, tuple[str, ...]]] = {
    "claude": ("-p", "go", "--allowedTools", "Bash"),
    "codex": (
        *("exec", "--skip-git-repo-check", "-s", "read-only", "-c", 'model_provider="probe"', "-c", 'model="probe-1"'),
        *(
            "-c",
            'model_providers.probe={name="probe",base_url="$URL/v1",wire_api="responses",env_key="OPENAI_API_KEY"}',
        ),
        "go",
    ),
    "gemini": ("-p", "go", "--skip-trust", "--yolo"),
    "opencode": ("run", "go"),
    "qwen": ("-p", "go", "--yolo", "--auth-type", "openai"),
    "copilot": ("-p", "go", "--allow-all-tools"),
}
_ENV: Final = {
    "ANTHROPIC_BASE_URL": "$URL",
    "ANTHROPIC_API_KEY": "probe",
    "ANTHROPIC_MODEL": "claude-sonnet-4-5",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "OPENAI_BASE_URL": "$URL/v1",
    "OPENAI_API_KEY": "probe",
    "OPENAI_MODEL": "probe-1",
    "GOOGLE_GEMINI_BASE_URL": "$URL",
    "GEMINI_API_KEY": "probe",
    "GEMINI_MODEL": "gemini-2.5-pro",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_CONFIG_CONTENT": json.dumps(
        {
            "provider": {
                "probe": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": "$URL/v1", "apiKey": "probe"},
                    "models": {"m": {}},
                }
            },
            "model": "probe/m",
            "small_model": "probe/m",
        }
    ),
    "COPILOT_OFFLINE": "true",
    "COPILOT_PROVIDER_BASE_URL": "$URL/v1",
    "COPILOT_PROVIDER_API_KEY": "probe",
    "COPILOT_MODEL": "probe-1",
}


class ProbeFinding(NamedTuple):
    """The answer of one run of an agent."""

    agent: AgentName
    where: str
    """The folder that it ran in; `an empty folder` for one of its own."""
    answer: Answer
    detail: str = ""
    """The lines that switch its hooks off, or what it printed last."""


def probe(agent: AgentName, project: Path, env: Mapping[str, str]) -> Iterator[ProbeFinding]:
    """Run an agent in an empty folder and in a project, and say whether it asked."""
    program = shutil.which(agent, path=env.get("PATH"))
    if program is None:
        yield ProbeFinding(agent, "", "not installed")
        return
    with tempfile.TemporaryDirectory(prefix="remit-guard-") as empty:
        for folder, where in ((Path(empty), "an empty folder"), (project, str(project))):
            answer, output = _run(program, agent, folder, env)
            reason = "" if answer == "asked" else "; ".join(_causes(agent, folder, env)) or output[-200:]
            yield ProbeFinding(agent, where, answer, reason)


def _causes(agent: AgentName, folder: Path, env: Mapping[str, str]) -> list[str]:
    causes = off_lines(agent, folder, env)
    if agent == "codex":
        with suppress(OSError):
            causes += doubted(file_of(agent, env), folder)
    return causes


def _run(program: str, agent: AgentName, folder: Path, env: Mapping[str, str]) -> tuple[Answer, str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        model: Any = server
        model.is_asked = model.called = False
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        own = {name: value.replace("$URL", url) for name, value in _ENV.items()}
        try:
            ran = subprocess.run(  # noqa: S603 - the agent that is looked at
                [program, *(word.replace("$URL", url) for word in _ARGS[agent])],
                cwd=folder,
                env={**env, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LIMIT_S,
                check=False,
            )
            output = ran.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            output = f"it did not end within {_LIMIT_S} s"
        server.shutdown()
    return "asked" if model.is_asked else "not asked" if model.called else "no model call", " ".join(output.split())


class _Model(BaseHTTPRequestHandler):
    """The model: it speaks the wire that it is asked on, and wants the marked call until it has read an answer."""

    def do_POST(self) -> None:
        """Answer a question."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server: Any = self.server
        server.is_asked = server.is_asked or ASKED.encode() in body
        message, path = json.loads(body or b"{}"), self.path.partition("?")[0]
        name = next((name for name in _names(message) if is_shell(name)), "")
        call: dict[str, Any] = {"cmd" if name == "exec_command" else "command": MARKER, "description": "look"}
        # Qwen's tool demands it; Claude refuses what it does not know.
        if "is_background" in str(message.get("tools")):
            call["is_background"] = False
        wants = (name, json.dumps(call)) if name and MARKER.encode() not in body else None
        server.called = server.called or wants is not None
        events = _events(path, wants)
        stream = message.get("stream") or "stream" in path
        data = b"".join(events) if stream else events[-1].partition(b"data: ")[2]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _names(message: Mapping[str, Any]) -> Iterator[str]:
    for tool in message.get("tools") or ():
        for each in tool.get("functionDeclarations", [tool.get("function", tool)]):
            yield str(each.get("name", ""))


def _events(path: str, wants: tuple[str, str] | None) -> list[bytes]:
    """Return an answer in the events of a wire: a call of a tool with its arguments, or a word."""
    name, args = wants or ("", "")
    if path.endswith("/messages"):
        block = (
            {"type": "tool_use", "id": "toolu_probe", "name": name, "input": {}}
            if wants
            else {"type": "text", "text": ""}
        )
        delta = {"type": "input_json_delta", "partial_json": args} if wants else {"type": "text_delta", "text": "done"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
        end = {"stop_reason": "tool_use" if wants else "end_turn", "stop_sequence": None}
        return _named(
            {"type": "message_start", "message": {**start, "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": usage},
            {"type": "message_stop"},
        )
    if path.endswith("/responses"):
        text = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
        item = (
            {"type": "function_call", "id": "f", "call_id": "call_probe", "name": name, "arguments": args}
            if wants
            else text
        )
        done = {"id": "r", "status": "completed", "output": [item], "usage": _tokens("input_tokens", "output_tokens")}
        return _named(
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        )
    if "enerateContent" in path:
        part = {"functionCall": {"name": name, "args": json.loads(args)}} if wants else {"text": "done"}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return [
            _data({"candidates": [candidate], "usageMetadata": _tokens("promptTokenCount", "candidatesTokenCount")})
        ]
    call = {"index": 0, "id": "call_probe", "type": "function", "function": {"name": name, "arguments": args}}
    message: dict[str, Any] = {"role": "assistant", "content": None if wants else "done"}
    message |= {"tool_calls": [call]} if wants else {}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    reason = "tool_calls" if wants else "stop"
    return [
        _data({**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        _data(
            {
                **chunk,
                "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
                "usage": _tokens("prompt_tokens", "completion_tokens"),
            }
        ),
        b"data: [DONE]\n\n",
    ]


def _tokens(*names: str) -> dict[str, int]:
    total = "totalTokenCount" if "TokenCount" in names[0] else "total_tokens"
    return {**dict.fromkeys(names, 1), total: 2}


def _data(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


def _named(*events: Mapping[str, Any]) -> list[bytes]:
    return [f"event: {event['type']}\n".encode() + _data(event) for event in events]
