"""Messages of six agents read as one, and answers that each of them understands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import UsageError
from remit.parts.hooks.hook import Hook, HookVerdict, answer, common_args, meta_of, read_hook, step_of
from remit.tools.meta import Level

CLAUDE = {"session_id": "s", "tool_use_id": "toolu_1", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def hook(agent: str = "claude", tool: str = "Bash", **more: Any) -> Hook:
    return Hook(agent=agent, moment="before", session="s", tool=tool, **more)  # type: ignore[arg-type]  # a table's text


@pytest.mark.parametrize(
    ("tag", "message", "told"),
    [
        ("claude.before", CLAUDE, ("s", "toolu_1", "Bash", {"command": "ls"})),
        ("codex.before", CLAUDE | {"turn_id": "t"}, ("s", "toolu_1", "Bash", {"command": "ls"})),
        (
            "gemini.before",
            {"session_id": "s", "tool_name": "read_file", "tool_input": {"file_path": "a"}},
            ("s", "", "read_file", {"file_path": "a"}),
        ),
        (
            "opencode.before",
            {"sessionID": "s", "callID": "c", "tool": "bash", "args": {"command": "ls"}},
            ("s", "c", "bash", {"command": "ls"}),
        ),
        (
            "copilot.before",
            {"sessionId": "s", "toolName": "bash", "toolArgs": '{"command": "ls"}'},
            ("s", "", "bash", {"command": "ls"}),
        ),
    ],
)
def test_each_agent_is_read(tag: str, message: dict[str, Any], told: tuple[Any, ...]) -> None:
    read = read_hook(tag, json.dumps(message).encode())
    assert (read.session, read.call, read.tool, read.args) == told


@pytest.mark.parametrize(
    ("tag", "data"),
    [
        ("claude.before", b"no JSON"),
        ("claude.before", b"[]"),
        ("claude.before", b"{}"),
        ("claude.before", b'{"session_id": "s"}'),
        ("claude.never", json.dumps(CLAUDE).encode()),
        ("another.before", json.dumps(CLAUDE).encode()),
        ("copilot.before", b'{"sessionId": "s", "toolName": "bash", "toolArgs": "{"}'),
        ("claude.before", b"[" * 100_000),
    ],
)
def test_a_message_that_cannot_be_read_is_an_error(tag: str, data: bytes) -> None:
    with pytest.raises(UsageError):
        read_hook(tag, data)


@pytest.mark.parametrize(
    ("tag", "result", "error"),
    [
        ("claude.after", {"stdout": "x"}, ""),
        ("claude.failed", None, "Exit code 3"),
        ("gemini.after", {"llmContent": "x", "error": {"message": "no"}}, "no"),
        ("opencode.after", {"output": "x", "metadata": {"exit": 3}}, "exit 3"),
        ("opencode.after", {"output": "x", "metadata": {"exit": 0}}, ""),
    ],
)
def test_a_failure_is_told_from_a_result(tag: str, result: Any, error: str) -> None:
    message = CLAUDE | {"tool_response": result} | ({"error": error} if tag.endswith("failed") else {})
    read = read_hook(tag, json.dumps(message).encode())
    assert (read.moment == "failed") == bool(error)
    assert error in read.error


@pytest.mark.parametrize(
    ("agent", "tool", "name", "kind"),
    [
        ("claude", "Bash", "claude.bash", "shell"),
        ("claude", "WebFetch", "claude.web_fetch", "fetch"),
        ("claude", "MultiEdit", "claude.multi_edit", "write"),
        ("claude", "mcp__files__read_file", "claude.mcp.files.read_file", "mcp"),
        ("codex", "apply_patch", "codex.apply_patch", "write"),
        ("gemini", "run_shell_command", "gemini.run_shell_command", "shell"),
        ("gemini", "mcp_files_read_file", "gemini.mcp.files.read_file", "mcp"),
        ("opencode", "webfetch", "opencode.webfetch", "fetch"),
        ("qwen", "todo_write", "qwen.todo_write", "plan"),
        ("copilot", "str_replace_editor", "copilot.str_replace_editor", "write"),
        ("claude", "Frobnicate!", "claude.frobnicate", "other"),
        ("claude", "…", "claude.tool", "other"),
    ],
)
def test_a_tool_has_a_name_and_a_kind(agent: str, tool: str, name: str, kind: str) -> None:
    assert step_of(hook(agent, tool)) == (name, kind)


def test_a_long_name_stays_apart_from_another_that_begins_alike() -> None:
    names = {step_of(hook(tool=f"mcp__server__{'x' * 80}{end}"))[0] for end in "ab"}
    assert len(names) == 2
    assert all(len(name.replace(".", "__")) <= 64 for name in names)


def test_an_unknown_tool_is_taken_at_its_worst() -> None:
    levels = {kind: meta_of("claude.x", kind).capability_level for kind in ("plan", "read", "write", "shell", "other")}
    assert levels == {
        "plan": Level.L0,
        "read": Level.L0,
        "write": Level.L1,
        "shell": Level.L2,
        "other": Level.L2,
    }


def test_rules_see_paths_without_links(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to("secret")
    args = common_args(hook(tool="Write", args={"file_path": "link/../link/a"}, cwd=str(tmp_path)), "write")
    assert args == {"file_path": "link/../link/a", "path": str(tmp_path / "secret/a")}


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"old_string": "one", "new_string": "uno"}, ["-one", "+uno"]),
        ({"oldString": "o", "newString": "0", "replaceAll": True}, ["-one", "-two", "+0ne", "+tw0"]),
        ({"edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]}, ["+1", "+2"]),
        ({"content": "one\nthree\n"}, ["-two", "+three"]),
        ({"old_string": "four", "new_string": "4"}, []),
        ({"old_string": 4}, []),
    ],
)
def test_an_edit_shows_what_it_would_make_of_the_file(args: dict[str, Any], lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    made = common_args(hook(tool="Edit", args={"file_path": "a", **args}, cwd=str(tmp_path)), "write")
    assert ("diff" in made) == bool(lines)
    assert set(lines) <= set(made.get("diff", "").splitlines())


def test_a_file_that_is_not_there_or_is_no_text_has_no_diff(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\x00")
    for name in ("a", "b"):
        args = {"file_path": name, "content": "x"}
        assert "diff" not in common_args(hook(tool="Write", args=args, cwd=str(tmp_path)), "write")


def test_a_command_names_its_programs() -> None:
    args = common_args(hook(args={"command": ["git", "push"]}), "shell")
    assert args == {"command": "git push", "programs": ["git", "git push"], "interactive": False}


@pytest.mark.parametrize(
    ("agent", "effect", "line"),
    [
        ("gemini", "deny", {"decision": "deny", "reason": "no way"}),
        ("copilot", "allow", {"permissionDecision": "allow", "permissionDecisionReason": "no way"}),
        (
            "claude",
            "deny",
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "no way",
                }
            },
        ),
    ],
)
def test_each_agent_is_answered_in_its_own_words(agent: str, effect: Any, line: dict[str, Any]) -> None:
    said = answer(hook(agent), HookVerdict(effect, "no\nway"))
    assert said[:1] == b"0"
    assert json.loads(said[1:]) == line


def test_what_says_nothing_prints_nothing() -> None:
    assert answer(hook("claude"), HookVerdict("none")) == b"0\n"
    assert answer(hook("codex"), HookVerdict("allow")) == b"0\n", "it takes no bare allow"
    assert answer(hook("opencode"), HookVerdict("deny", "no")) == b"2no\n"
