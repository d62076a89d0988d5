"""A message of an agent's hook in one language for all agents, and the answer in the agent's own.

The agents say the same things in different words. What a tool is follows from its name alone, in each of them:

    shell   runs a command                `command`, the `programs` that it names, whether it is `interactive`
    write   changes a file                `path`, and for people `diff`
    read    looks at files                `path`
    fetch   reaches a host                `url`
    spawn   starts another agent
    mcp     calls a tool of an MCP server
    plan    keeps notes of its own, and touches nothing
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from remit.errors import UsageError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import MAX_WIRE, wire_name

AgentName = Literal["claude", "codex", "gemini", "opencode", "qwen", "copilot"]
Moment = Literal["begin", "before", "permit", "after", "failed", "stop", "end"]
CALLS: Final[frozenset[Moment]] = frozenset(("before", "permit", "after", "failed"))
"""Moments of a call."""
Mode = Literal["observe", "narrow", "gate"]
Effect = Literal["allow", "ask", "deny", "defer", "none"]
AGENTS: Final[tuple[AgentName, ...]] = get_args(AgentName)
_CLAUDE: Final[Mapping[str, Moment]] = {
    "SessionStart": "begin",
    "PreToolUse": "before",
    "PermissionRequest": "permit",
    "PostToolUse": "after",
    "PostToolUseFailure": "failed",
    "SubagentStop": "stop",
    "Stop": "stop",
    "SessionEnd": "end",
}
EVENTS: Final[Mapping[AgentName, Mapping[str, Moment]]] = {
    "claude": _CLAUDE,
    "codex": {"SessionStart": "begin", "PreToolUse": "before", "PostToolUse": "after", "Stop": "stop"},
    "gemini": {
        "SessionStart": "begin",
        "BeforeTool": "before",
        "AfterTool": "after",
        "AfterAgent": "stop",
        "SessionEnd": "end",
    },
    "qwen": {name: moment for name, moment in _CLAUDE.items() if name not in {"SubagentStop", "PermissionRequest"}},
    "copilot": {"sessionStart": "begin", "preToolUse": "before", "postToolUse": "after", "sessionEnd": "end"},
}
"""Events by which agents tell of moments, in their words; the plugin of opencode tells of calls alone."""
PROVIDER: Final = "hooks"
"""The id of the provider of agents' tools."""
_DAY_MS: Final = 86_400_000
_MAX_DIFF: Final = 256 * 1024
"""Bytes of a file of which a change is shown."""
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": ("bash", "shell", "local_shell", "exec_command", "run_shell_command", "powershell", "write_bash"),
    "write": (
        *("write", "edit", "multi_edit", "notebook_edit", "apply_patch", "patch", "write_file", "replace"),
        *("create", "str_replace", "str_replace_editor", "save_memory"),
    ),
    "read": (
        *("read", "glob", "grep", "ls", "list", "view", "rg", "read_file", "read_many_files", "list_directory"),
        *("search_file_content", "grep_search", "notebook_read", "bash_output", "read_bash", "task_output"),
    ),
    "fetch": (
        *("web_fetch", "webfetch", "web_search", "websearch", "google_web_search", "fetch", "fetch_copilot_cli"),
    ),
    "spawn": ("task", "agent", "spawn_agent", "codebase_investigator", "delegate_to_agent"),
    "plan": (
        *("todo_write", "todowrite", "todo_read", "todoread", "write_todos", "update_plan", "report_intent"),
        *("exit_plan_mode", "enter_plan_mode", "ask_user_question", "tool_search", "skill", "kill_shell"),
    ),
}
_KIND_OF: Final = {name: kind for kind, names in _KINDS.items() for name in names}
_LEVELS: Final = {"plan": Level.L0, "read": Level.L0, "write": Level.L1}
_PATHS: Final = ("file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path", "directory")
_COMMANDS: Final = ("command", "cmd", "script")
_URLS: Final = ("url", "uri")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_MCP: Final = re.compile(r"mcp__(.+?)__(.+)|mcp_([a-z0-9-]+)_(.+)", re.IGNORECASE)
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "command": {"x-remit-role": "command"},
        "programs": {"x-remit-role": "content"},
        "interactive": {"type": "boolean"},
        "path": {"x-remit-role": "path"},
        "url": {"x-remit-role": "url"},
        "diff": {"x-remit-role": "content"},
        "content": {"x-remit-role": "content"},
        "old_string": {"x-remit-role": "content"},
        "new_string": {"x-remit-role": "content"},
    },
}


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One message of an agent."""

    agent: AgentName
    moment: Moment
    session: str
    call: str = ""
    """The call in the model's answer; empty: the agent does not say."""
    tool: str = ""
    """The tool in the agent's own words."""
    args: dict[str, Any] = {}
    """Its arguments as the agent gave them."""
    result: Any = None
    error: str = ""
    cwd: str = ""
    mode: str = ""
    """The agent's own mode of asking for permissions, in its words."""
    surface: str = ""
    """Where it runs, in its words; empty: it does not say."""
    turn: str = ""
    subagent: str = ""
    transcript: str = ""
    background: bool = False
    """Whether the call goes on after its end was told."""

    @property
    def words(self) -> dict[str, str]:
        """Return the agent's own words for the call and where it belongs, for the record."""
        named = {"call_id": self.call, "turn": self.turn, "agent": self.subagent, "tool": self.tool}
        return {name: word for name, word in named.items() if word}


class HookVerdict(NamedTuple):
    """The answer to a hook, in one language for all agents."""

    effect: Effect
    reason: str = ""


NONE: Final = HookVerdict("none")
"""Nothing to say: the agent goes on by its own rules."""


def read_hook(tag: str, data: bytes) -> Hook:
    """Read a message under the tag of its hook, `AGENT.MOMENT` or `AGENT.MOMENT:SURFACE`.

    Raises UsageError if it cannot be read.
    """
    name, _, surface = tag.partition(":")
    agent, _, moment = name.partition(".")
    try:
        message = msgspec.json.decode(data, type=dict[str, Any])
        args = _first(message, "tool_input", "toolArgs", "args")
        args = msgspec.json.decode(args) if isinstance(args, str) and args else args
        result = _first(message, "tool_response", "toolResult", "output")
        hook = Hook(
            agent=msgspec.convert(agent, AgentName),
            moment=msgspec.convert(moment, Moment),
            session=str(_first(message, "session_id", "sessionId", "sessionID") or ""),
            call=str(_first(message, "tool_use_id", "callID", "toolCallId") or ""),
            tool=str(_first(message, "tool_name", "toolName", "tool") or ""),
            args=args if isinstance(args, dict) else {} if args is None else {"input": args},
            result=result,
            error=str(message.get("error") or ""),
            cwd=str(message.get("cwd") or ""),
            mode=str(message.get("permission_mode") or ""),
            surface=surface,
            turn=str(_first(message, "prompt_id", "turn_id") or ""),
            subagent=str(message.get("agent_id") or ""),
            transcript=str(message.get("transcript_path") or ""),
        )
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise UsageError(
            f"the hook's message cannot be read: {error}", remedy="Report it: remit guard status."
        ) from error
    if not hook.session or (hook.moment in CALLS and not hook.tool):
        raise UsageError("the hook's message names no session or no tool", remedy="Report it: remit guard status.")
    background = bool(hook.args.get("run_in_background")) and hook.moment == "after"
    return msgspec.structs.replace(hook, background=background, **_failure(hook))


def _failure(hook: Hook) -> dict[str, Any]:
    """Return how a call failed, as far as its agent tells failures apart from results."""
    result = hook.result if isinstance(hook.result, dict) else {}
    if hook.moment == "failed":
        return {"error": hook.error or "the agent says that it failed"}
    if hook.moment != "after":
        return {}
    if isinstance(result.get("error"), str | dict) and result["error"]:
        return {"error": str(result["error"]), "moment": "failed"}
    code = result.get("metadata", {}).get("exit") if isinstance(result.get("metadata"), dict) else None
    return {"error": f"exit {code}", "moment": "failed"} if isinstance(code, int) and code else {}


def _first(message: Mapping[str, Any], *names: str) -> Any:
    return next((message[name] for name in names if message.get(name) is not None), None)


def step_of(hook: Hook) -> tuple[str, str]:
    """Return the name of a hook's tool in the catalog, such as `claude.bash`, and its kind."""
    mcp = _MCP.fullmatch(hook.tool)
    if mcp is not None:
        server, tool = (mcp[1] or mcp[3], mcp[2] or mcp[4])
        return _fitting(f"{hook.agent}.mcp.{_plain(server)}.{_plain(tool)}", hook.tool), "mcp"
    name = _plain(hook.tool)
    return _fitting(f"{hook.agent}.{name}", hook.tool), _KIND_OF.get(name, "other")


def _plain(text: str) -> str:
    return _OTHER.sub("_", _HUMP.sub("_", text).lower()).strip("_") or "tool"


def _fitting(name: str, original: str) -> str:
    """Return a name that models' interfaces take; a longer one ends with a digest of the original."""
    if len(wire_name(name)) <= MAX_WIRE:
        return name
    return f"{name[: MAX_WIRE - 20].rstrip('._')}_{sha256(original.encode()).hexdigest()[:8]}"


def meta_of(name: str, kind: str) -> ToolMeta:
    """Return a tool of an agent; what it does not say is taken at its worst."""
    reads = _LEVELS.get(kind) is Level.L0
    return ToolMeta(
        name=name,
        provider_id=PROVIDER,
        alias=f"agent.{kind}",
        description=f"The agent's own tool {name.partition('.')[2]}.",
        input_schema=_SCHEMA,
        open=True,
        capability_level=_LEVELS.get(kind, Level.L2),
        risk_level=Risk.READ_ONLY if reads else Risk.WRITE if kind == "write" else Risk.UNKNOWN,
        side_effects=not reads,
        requires_confirm=not reads,
        output_trusted=kind in {"write", "plan"},
        timeout_ms=_DAY_MS,
        version="1",
    )


def agents_tools() -> list[ToolMeta]:
    """Return the tools of agents whose names are known, and one for each of their MCP tools and others."""
    names = [*_KIND_OF.items(), ("mcp.server.tool", "mcp"), ("another", "other")]
    return [meta_of(f"{agent}.{name}", kind) for agent in AGENTS for name, kind in names]


def common_args(hook: Hook, kind: str) -> dict[str, Any]:
    """Return a call's arguments with those that rules know by one name: `command`, `path` without links, `url`."""
    args = dict(hook.args)
    path = _first(args, *_PATHS)
    if kind in {"read", "write"} and isinstance(path, str):
        args["path"] = os.path.realpath(Path(hook.cwd or "/") / path)
        if kind == "write" and (diff := diff_of(Path(args["path"]), args)):
            args["diff"] = diff
    for name, others in (("command", _COMMANDS), ("url", _URLS)):
        value = _first(args, *others)
        if value is not None:
            args[name] = " ".join(map(str, value)) if name == "command" and isinstance(value, list) else value
    if kind == "shell":
        command = str(args.get("command", ""))
        args |= {"programs": programs_of(command), "interactive": is_interactive(command)}
    return args


def is_shell(name: str) -> bool:
    """Return whether a tool of this name runs commands."""
    return _KIND_OF.get(_plain(name)) == "shell"


def diff_of(path: Path, args: Mapping[str, Any]) -> str:
    """Return what an edit would make of a file as it is now; empty if that is unknown, or the file is not there yet."""
    try:
        before = path.read_text("utf-8") if path.stat().st_size <= _MAX_DIFF else None
    except (OSError, ValueError):
        return ""
    after = _edited(before, args) if before is not None else None
    if before is None or after is None:
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    return "\n".join(lines)


def _edited(text: str, args: Mapping[str, Any]) -> str | None:
    """Return a text after an edit; None: the edit does not fit it."""
    whole = _first(args, "content", "file_text")
    if isinstance(whole, str):
        return whole
    edits = args["edits"] if isinstance(args.get("edits"), list) else [args]
    for edit in edits:
        old, new = (
            _first(edit, "old_string", "oldString", "old_str"),
            _first(edit, "new_string", "newString", "new_str"),
        )
        if not isinstance(old, str) or not isinstance(new, str) or old not in text:
            return None
        text = text.replace(old, new, -1 if _first(edit, "replace_all", "replaceAll") else 1)
    return text


# --- what a command says that it starts: advice for rules and no fence, for a program does what it likes

_ENDS: Final = frozenset(("(", ")", "{", "}", "!", "then", "do", "else", "if", "while", "until", "time"))
_BEFORE: Final = frozenset(
    ("sudo", "env", "nohup", "nice", "exec", "command", "xargs", "timeout", "setsid", "stdbuf", "npx")
)
"""Programs that start the one that is named after them."""
_SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ksh", "fish"))
_CONSOLES: Final = frozenset(
    ("python", "python3", "node", "irb", "ruby", "perl", "psql", "mysql", "sqlite3", "bc", "cat")
)
_REMOTE: Final = frozenset(("ssh", "telnet", "nc"))
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_NUMBER: Final = re.compile(r"[\d.]+[smhd]?")
_WORD: Final = re.compile(r"[a-z][a-z0-9-]*")
_SIGNS: Final = re.compile(r"[;|&()`\n]+")
_DEPTH: Final = 3


def programs_of(command: str) -> list[str]:
    """Return the programs that a command names, each by its name and with its first word: `git`, `git push`."""
    programs: dict[str, None] = {}
    for program, *rest in _simple(command, _DEPTH):
        programs[program] = None
        if rest and _WORD.fullmatch(rest[0]):
            programs[f"{program} {rest[0]}"] = None
    return list(programs)


def is_interactive(command: str) -> bool:
    """Return whether a command starts a program that others may type into, such as `bash -i` or `python`."""
    return any(_reads_on(program, rest) for program, *rest in _simple(command, _DEPTH))


def _reads_on(program: str, words: list[str]) -> bool:
    plain = [word for word in words if not word.startswith("-")]
    if program in _SHELLS | _CONSOLES:
        options = "".join(word for word in words if word.startswith("-") and not word.startswith("--"))
        return "-i" in words or (not plain and not set(options) & set("cem"))
    return program in _REMOTE and len(plain) == 1


def _simple(command: str, depth: int) -> Iterator[list[str]]:
    """Yield the simple commands in a text, each from its program's name on."""
    try:
        words = shlex.split(_SIGNS.sub(r" \g<0> ", command))
    except ValueError:  # a quote without its end
        words = command.split()
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _ENDS or not word.strip(";|&()`\n"):
            yield from _begun(part, depth)
            part = []
        else:
            part.append(word)


def _begun(words: list[str], depth: int) -> Iterator[list[str]]:
    while words and (_ASSIGNED.fullmatch(words[0]) or words[0].startswith("-") or _NUMBER.fullmatch(words[0])):
        words = words[1:]
    if not words:
        return
    name = words[0].rpartition("/")[2].lstrip("$")
    yield [name, *words[1:]]
    if name in _BEFORE:
        yield from _begun(words[1:], depth)
    if name in _SHELLS and depth and "-c" in " ".join(words[:-1]):
        yield from _simple(words[-1], depth - 1)


# --- the answer


def answer(hook: Hook, verdict: HookVerdict) -> bytes:
    """Write a verdict for the client of a hook: the status that it ends with, and one line that it prints."""
    effect, reason = verdict.effect, " ".join(verdict.reason.split())
    if effect == "none" or (effect == "allow" and hook.agent in {"codex", "opencode"}):
        return b"0\n"
    reply: dict[str, Any]
    if hook.moment == "permit":
        decision = {"behavior": effect} | ({"message": reason} if effect == "deny" else {})
        reply = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
        return b"0" + msgspec.json.encode(reply) + b"\n"
    match hook.agent:
        case "opencode":
            return b"2" + reason.encode() + b"\n"
        case "gemini":
            reply = {"decision": effect, "reason": reason}
        case "copilot":
            reply = {"permissionDecision": effect, "permissionDecisionReason": reason}
        case _:
            reply = {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": effect,
                    "permissionDecisionReason": reason,
                }
            }
    return b"0" + msgspec.json.encode(reply) + b"\n"
