"""The coding agents that Remit knows by their command line: one row each. What was measured stands in docs/work.md.

Versions are those that the suite runs.

The row of a coding agent that is known by its command line.

It says with which words the program is started in each mode, what it finds in its home, how a line of its output
counts, and which files of a repository it would start programs by.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.mcp_config import own_tools
from remit.mcp_config.own_tools import SERVER
from remit.parts.work.executors.port import TurnUsage
from remit.parts.work.workflow import Mode
from remit.regex import regex

RESUME: Final = "{resume}"
"""The place of the words of `Cli.resume`."""


class AgentModel(msgspec.Struct, frozen=True):
    """The model that an agent speaks to."""

    name: str
    """Empty: the agent's own choice."""
    url: str
    """Empty: its maker's."""
    key: str


class Home(msgspec.Struct, frozen=True):
    """The circumstances that the files of a home are written for."""

    model: AgentModel
    mode: Mode
    """`governed`: its own tools are off; `ask`: it asks before it uses them."""
    tools: tuple[str, ...] = ()
    """The command of Remit's MCP server; empty: the agent has none, or is told of it in another way."""


class WordTally:
    """Sums up an agent's words up to now."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the event that ends a turn was said."""
        self.fault = ""
        self.denied = 0
        self.session = ""
        self.usage = TurnUsage()

    def add(self, usage: Any, tokens_in: str, tokens_out: str, cost: float = 0.0) -> None:
        """Count what a step took, by the names that the agent has for it."""
        counts = usage if isinstance(usage, dict) else {}
        self.usage = TurnUsage(
            input_tokens=self.usage.input_tokens + int(counts.get(tokens_in) or 0),
            output_tokens=self.usage.output_tokens + int(counts.get(tokens_out) or 0),
            cost_usd=self.usage.cost_usd + cost,
        )


LINE: Final = "line"
"""The key under which a line that is for people stands in an event."""
Read = Callable[[WordTally, dict[str, Any]], str]
"""Takes in an event, a JSON object of one line; returns what is shown of it. A line for people is shown as it is."""


class Cli(msgspec.Struct, frozen=True):
    """One coding agent."""

    name: str
    version: str
    install: str
    key: str
    """The variable that holds its key."""
    hosts: tuple[str, ...]
    """Where its maker serves its model."""
    wire: str
    """The provider whose wire it speaks to a model with an address of its own."""
    args: Mapping[Mode, tuple[str, ...]]
    env: Mapping[str, str]
    """Variables with `{url}`, `{model}`, `{key}` and `{home}` in them; one that would be empty is left out."""
    files: Callable[[Home], Mapping[str, str]]
    """The files of its home."""
    read: Read
    starts: tuple[str, ...]
    """Patterns of files in a repository by which it starts programs."""
    closed: bool
    """Whether its flags keep it from that."""
    resume: tuple[str, ...] = ()
    """The words for continuing a conversation, with `{session}` in them; they stand where `args` have `RESUME`."""
    conversation: str = ""
    """The pattern of a conversation's file in its home, with `{session}` and `{place}`; empty: none can go on."""
    maker_wire: bool = True
    """Whether it speaks that wire to its maker's models too."""
    place: Callable[[Path], str] = lambda _: ""
    """Its name for the folder that it works in, where conversations are kept by it."""


def _command(words: tuple[str, ...]) -> dict[str, Any]:
    program, *args = words
    return {"command": program, "args": args}


# --- claude


def _claude_files(home: Home) -> dict[str, str]:
    servers = {SERVER: _command(home.tools)} if home.tools else {}
    return {"mcp.json": json.dumps({"mcpServers": servers})}


def _claude_read(tally: WordTally, event: dict[str, Any]) -> str:
    match event.get("type"):
        case "system" if event.get("subtype") == "init":
            tally.session = str(event.get("session_id") or "")
        case "system" if event.get("subtype") == "api_retry":
            return f"asks its model again: {event.get('error_status')} {event.get('error')}"
        case "assistant":
            return _blocks(event)
        case "result":
            tally.ended = True
            tally.denied = len(event.get("permission_denials") or ())
            tally.add(event.get("usage"), "input_tokens", "output_tokens", float(event.get("total_cost_usd") or 0))
            if event.get("is_error"):
                tally.fault = str(event.get("result") or event.get("subtype") or "it says so")
        case _:
            pass
    return ""


def _blocks(event: dict[str, Any]) -> str:
    message = event.get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    shown = [_block(block) for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return "\n".join(text for text in shown if text)


def _block(block: dict[str, Any]) -> str:
    if block.get("type") == "tool_use":
        return f"→ {block.get('name')} {json.dumps(block.get('input'))}"
    return str(block.get("text") or "")


CLAUDE: Final = Cli(
    name="claude",
    version="2.1.197",
    install="npm install --global @anthropic-ai/claude-code@2.1.197",
    key="ANTHROPIC_API_KEY",
    hosts=("api.anthropic.com",),
    wire="anthropic",
    args={
        # A list after --allowedTools would take the prompt for a tool.
        "governed": (
            *(RESUME, "-p", "{prompt}", "--output-format", "stream-json", "--verbose"),
            *("--setting-sources", "user", "--strict-mcp-config", "--mcp-config", "{home}/mcp.json"),
            *("--tools", "", "--allowedTools", f"mcp__{SERVER}"),
        ),
        "free": (
            *(RESUME, "-p", "{prompt}", "--output-format", "stream-json", "--verbose"),
            *("--setting-sources", "user", "--strict-mcp-config", "--mcp-config", "{home}/mcp.json"),
            *("--allowedTools", "Bash,Edit,Write,Read,Glob,Grep"),
        ),
    },
    env={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "{key}",
        "ANTHROPIC_MODEL": "{model}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_TIMEOUT": "120000",
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TOOL_TIMEOUT": "3600000",
    },
    files=_claude_files,
    read=_claude_read,
    starts=(".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".claude/hooks/**/*"),
    closed=True,
    resume=("--resume", "{session}"),
    conversation=".claude/projects/{place}/{session}.jsonl",
    place=lambda folder: re.sub(r"[^A-Za-z0-9]", "-", str(folder)),
)


# --- codex


def _codex_files(home: Home) -> dict[str, str]:
    lines = ['approval_policy = "never"', "check_for_update_on_startup = false"]
    if home.model.name:
        lines.append(f"model = {json.dumps(home.model.name)}")
    if home.model.url:
        lines += ['model_provider = "served"', "", "[model_providers.served]", 'name = "served"']
        lines += [f"base_url = {json.dumps(home.model.url)}", 'wire_api = "responses"', 'env_key = "OPENAI_API_KEY"']
    if home.tools:
        program, *args = home.tools
        lines += ["", f"[mcp_servers.{SERVER}]", f"command = {json.dumps(program)}", f"args = {json.dumps(args)}"]
        # Required: otherwise its first question may leave before the server has told of its tools.
        lines += [
            "required = true",
            "startup_timeout_sec = 120",
            "tool_timeout_sec = 3600",
            'default_tools_approval_mode = "approve"',
        ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _codex_read(tally: WordTally, event: dict[str, Any]) -> str:
    item = event.get("item")
    item = item if isinstance(item, dict) else {}
    match event.get("type"):
        case "thread.started":
            tally.session = str(event.get("thread_id") or "")
        case "turn.completed":
            tally.ended = True
            tally.add(event.get("usage"), "input_tokens", "output_tokens")
        case "turn.failed":
            error = event.get("error")
            tally.ended, tally.fault = True, str(error.get("message") if isinstance(error, dict) else error)
        case "item.completed" if item.get("type") == "agent_message":
            return str(item.get("text") or "")
        case "item.started" if item.get("type") in {"command_execution", "mcp_tool_call"}:
            return f"→ {item.get('command') or item.get('tool')}"
        case _:
            pass
    return ""


CODEX: Final = Cli(
    name="codex",
    version="0.169.0",
    install="npm install --global @openai/codex@0.169.0",
    key="OPENAI_API_KEY",
    hosts=("api.openai.com",),
    wire="openai",
    args={
        "governed": (
            *("exec", "--json", "--skip-git-repo-check", "-s", "read-only"),
            *(word for name in own_tools.CODEX for word in ("--disable", name)),
            *("-c", 'web_search="disabled"', RESUME, "{prompt}"),
        ),
        # Remit's sandbox is around it, in which its own cannot start; it could not commit from there either.
        "free": ("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", RESUME, "{prompt}"),
    },
    env={"OPENAI_API_KEY": "{key}", "CODEX_HOME": "{home}/.codex"},
    files=_codex_files,
    read=_codex_read,
    starts=(".codex/config.toml", ".codex/hooks.json"),
    closed=True,
    resume=("resume", "{session}"),
    conversation=".codex/sessions/*/*/*/rollout-*-{session}.jsonl",
)


# --- gemini


def _gemini_files(home: Home) -> dict[str, str]:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    if home.mode == "governed":
        settings["tools"] = {"exclude": list(own_tools.GEMINI)}
    if home.tools:
        settings["mcpServers"] = {SERVER: {**_command(home.tools), "trust": True, "timeout": 3_600_000}}
    return {".gemini/settings.json": json.dumps(settings)}


def _gemini_read(tally: WordTally, event: dict[str, Any]) -> str:
    match event.get("type"):
        case "init":
            tally.session = str(event.get("session_id") or "")
        case "message" if event.get("role") == "assistant":
            return str(event.get("content") or "")
        case "tool_use":
            return f"→ {event.get('tool_name')} {json.dumps(event.get('parameters'))}"
        case "tool_result" if _gemini_denied(event):
            tally.denied += 1
        case "result":
            tally.ended = True
            tally.add(event.get("stats"), "input_tokens", "output_tokens")
            if event.get("status") != "success":
                error = event.get("error")
                tally.fault = str(error.get("message") if isinstance(error, dict) else error or "it says so")
        case _:
            pass
    return ""


def _gemini_denied(event: dict[str, Any]) -> bool:
    error = event.get("error")
    kind = str(error.get("type") if isinstance(error, dict) else "")
    return event.get("status") == "error" and kind in {"policy_violation", "tool_not_registered", "permission_denied"}


GEMINI: Final = Cli(
    name="gemini",
    version="0.61.0",
    install="npm install --global @google/gemini-cli@0.61.0",
    key="GEMINI_API_KEY",
    hosts=("generativelanguage.googleapis.com",),
    wire="google",
    args={
        "governed": (RESUME, "-p", "{prompt}", "-o", "stream-json", "--skip-trust"),
        "free": (RESUME, "-p", "{prompt}", "-o", "stream-json", "--skip-trust", "--yolo"),
    },
    env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}", "GEMINI_MODEL": "{model}"},
    files=_gemini_files,
    read=_gemini_read,
    starts=(".gemini/settings.json", ".gemini/extensions/**/*"),
    closed=True,
    resume=("--resume", "{session}"),
    conversation=".gemini/tmp/{place}/chats/session-*-{session:.8}.jsonl",
    place=lambda folder: folder.name,
)


# --- opencode


def _opencode_files(home: Home) -> dict[str, str]:
    settings: dict[str, Any] = {"autoupdate": False, "share": "disabled"}
    if home.model.url:
        name = home.model.name or "default"
        options = {"baseURL": home.model.url, "apiKey": "{env:OPENCODE_KEY}"}
        served = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {name: {}}}
        settings |= {"provider": {"served": served}, "model": f"served/{name}", "small_model": f"served/{name}"}
    elif home.model.name:
        settings["model"] = home.model.name
    if home.tools:
        settings["mcp"] = {SERVER: {"type": "local", "command": [*home.tools], "enabled": True, "timeout": 3_600_000}}
    use = "ask" if home.mode == "ask" else "allow"
    own = {"edit": use, "bash": use, "webfetch": "deny"}
    settings["permission"] = {"*": "deny", f"{SERVER}_*": "allow"} if home.mode == "governed" else own
    return {"opencode.json": json.dumps(settings)}


def _opencode_read(tally: WordTally, event: dict[str, Any]) -> str:
    part = event.get("part")
    part = part if isinstance(part, dict) else {}
    tally.session = str(event.get("sessionID") or tally.session)
    match event.get("type"):
        case "step_finish":
            tally.ended = part.get("reason") == "stop"
            tally.add(part.get("tokens"), "input", "output", float(part.get("cost") or 0))
        case "error":
            tally.fault = json.dumps(event.get("error"))[:500]
        case "text":
            return str(part.get("text") or "")
        case "tool_use":
            return _opencode_call(tally, part)
        case _:
            pass
    return ""


def _opencode_call(tally: WordTally, part: dict[str, Any]) -> str:
    state = part.get("state")
    state = state if isinstance(state, dict) else {}
    if state.get("status") == "error" and "prevents you from using" in str(state.get("error")):
        tally.denied += 1
    return f"→ {part.get('tool')} {json.dumps(state.get('input'))}"


OPENCODE: Final = Cli(
    name="opencode",
    version="1.18.33",
    install="npm install --global opencode-ai@1.18.33",
    key="OPENCODE_API_KEY",
    hosts=("opencode.ai", "models.dev"),
    wire="openai",
    args={
        "governed": ("run", "--pure", "--format", "json", "{prompt}"),
        "free": ("run", "--pure", "--format", "json", "{prompt}"),
    },
    env={
        "OPENCODE_CONFIG": "{home}/opencode.json",
        "OPENCODE_KEY": "{key}",
        "OPENCODE_API_KEY": "{key}",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    files=_opencode_files,
    read=_opencode_read,
    starts=("opencode.json", "opencode.jsonc", ".opencode", ".opencode/**/*"),
    closed=False,  # a plugin of the repository is started all the same
    maker_wire=False,  # by their names it chooses among all wires
    # No conversation of its goes on: it would work in the folder of the run that began it.
)


# --- aider

_AIDER_USAGE: Final = regex(
    r"Tokens: ([\d.,]+)([kM]?) sent.*?, ([\d.,]+)([kM]?) received\.(?: Cost: \$([\d.]+) message)?"
)
"""The line after each answer of its model that came whole."""
_AIDER_FAULT: Final = regex(r"litellm\.\w+(Error|Exception|Timeout)\b")


def _aider_files(home: Home) -> dict[str, str]:
    return {".aider.conf.yml": f"model: {json.dumps(f'openai/{home.model.name}')}\n"} if home.model.name else {}


def _aider_read(tally: WordTally, event: dict[str, Any]) -> str:
    line = str(event.get(LINE) or "")
    if _AIDER_FAULT.match(line):
        tally.ended, tally.fault = False, line[:500]
    elif counts := _AIDER_USAGE.match(line):
        tally.ended, tally.fault = True, ""
        sent, received = (_counted(counts[at], counts[at + 1]) for at in (1, 3))
        tally.add({"in": sent, "out": received}, "in", "out", float(counts[5] or 0))
    return ""


def _counted(digits: str, scale: str) -> int:
    """Return a number that is written short, such as 2.1k."""
    return int(float(digits.replace(",", "")) * {"": 1, "k": 1_000, "M": 1_000_000}[scale])


AIDER: Final = Cli(
    name="aider",
    version="0.86.2",
    install="python -m pip install aider-chat==0.86.2",
    key="OPENAI_API_KEY",
    hosts=("api.openai.com",),
    wire="openai",
    args={
        # It would say yes to itself to load pages that the issue names, and to run what its model suggests.
        "free": (
            *("--message", "{prompt}", "--yes-always", "--no-pretty", "--no-auto-commits", "--no-check-update"),
            *("--no-analytics", "--no-gitignore", "--no-suggest-shell-commands", "--no-detect-urls"),
            *("--no-show-model-warnings", "--no-show-release-notes"),
        ),
    },
    env={"OPENAI_API_BASE": "{url}", "OPENAI_API_KEY": "{key}", "COLUMNS": "1000"},
    files=_aider_files,
    read=_aider_read,
    starts=(".aider.conf.yml", ".env"),
    closed=False,  # it reads its settings there, which can name a program that it runs
)

CLIS: Final[Mapping[str, Cli]] = {cli.name: cli for cli in (CLAUDE, CODEX, GEMINI, OPENCODE, AIDER)}
