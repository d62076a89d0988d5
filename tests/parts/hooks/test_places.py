"""Hooks are put into agents' files beside other people's, and taken out byte for byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from remit.errors import SettingsError, UsageError
from remit.mcp_config.connection_record import put_together
from remit.parts.hooks.hook import AGENTS, AgentName
from remit.parts.hooks.places import HookClient, connected, file_of, off_switches, taken_out, with_hooks_on

CLIENT: Final = HookClient(("/g/client", "/g/socket", "580"), ("/bin/remit", "guard", "ask"), 580)
FILE: Final = Path("/home/ann/file")
JSON_AGENTS: Final = [agent for agent in AGENTS if agent != "opencode"]
OTHERS: Final = {"matcher": "Bash", "hooks": [{"type": "command", "command": "their guard"}]}
TEXTS: Final = {
    "none": None,
    "empty": "",
    "object": "{}",
    "others": json.dumps({"hooks": {"PreToolUse": [OTHERS], "BeforeTool": [OTHERS], "preToolUse": [OTHERS]}}, indent=4),
    "empty list": '{"hooks": {"PreToolUse": [ ], "BeforeTool": [], "preToolUse": []}, "model": "m"}\r\n',
    "windows": '{\r\n\t"theme": "dark"\r\n}\r\n',
    "two": json.dumps({"hooks": {"PreToolUse": [OTHERS, OTHERS], "Stop": []}}),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_connected_is_taken_out_byte_for_byte(agent: AgentName, text: str) -> None:
    after, changes = connected(agent, TEXTS[text], FILE, CLIENT)
    connection = put_together(None, FILE, agent, TEXTS[text], after, changes)
    assert after != TEXTS[text]
    assert taken_out(connection, after) == TEXTS[text]


@pytest.mark.parametrize("text", ["object", "others", "two"])
@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_what_came_after_ours_stays(agent: AgentName, text: str) -> None:
    before = TEXTS[text]
    after, changes = connected(agent, before, FILE, CLIENT)
    connection = put_together(None, FILE, agent, before, after, changes)
    value = json.loads(after)
    for entries in value["hooks"].values():
        entries.append({"hooks": [{"type": "command", "command": "later"}]})
    rest = json.loads(taken_out(connection, json.dumps(value)) or "{}")
    commands = [entry["hooks"][0].get("command", "") for entries in rest["hooks"].values() for entry in entries]
    assert set(commands) <= {"later", "their guard"}
    assert commands.count("later") == len(changes) + sum(
        event not in {change.name for change in changes} for event in value["hooks"]
    )


def test_a_hook_of_ours_that_was_changed_is_left_alone() -> None:
    after, changes = connected("claude", None, FILE, CLIENT)
    connection = put_together(None, FILE, "claude", None, after, changes)
    with pytest.raises(SettingsError, match="was changed since it was connected"):
        taken_out(connection, after.replace("/g/client", "/other"))


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_before_a_call_a_client_that_is_missing_stops_it(agent: AgentName) -> None:
    _, changes = connected(agent, None, FILE, CLIENT)
    lines = [json.dumps(change.entry) for change in changes]
    assert [f"{agent}.before" in line for line in lines].count(True) == 1
    assert all((" || exit 2" in line) == (f"{agent}.before" in line) for line in lines)


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_an_agent_waits_longer_than_its_client(agent: AgentName) -> None:
    _, changes = connected(agent, None, FILE, CLIENT)
    hook = changes[1].entry.get("hooks", [changes[1].entry])[0]
    limit = hook.get("timeout", hook.get("timeoutSec"))
    assert limit / (1_000 if agent in {"gemini", "qwen"} else 1) == 600


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"a": 1, // no\n"b": 2}', "line 1"),
        ('{"model": 5}', "model"),
        ('{"env": []}', "env"),
        ('{"hooks": 1}', "hooks"),
        ('{"hooks": {"PreToolUse": {}}}', "hooks.PreToolUse[0]"),
        ('{"hooks": {"Stop": [{"matcher": 3, "hooks": []}]}}', "hooks.Stop[0]"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "nonsense"}]}]}}', "hooks.Stop[0]"),
        ("[]", "it"),
    ],
)
def test_a_file_that_claude_would_drop_is_refused_with_the_value(text: str, named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        connected("claude", text, FILE, CLIENT)
    assert named in caught.value.message
    assert "Claude drops" in caught.value.remedy


@pytest.mark.parametrize(
    ("agent", "env", "file"),
    [
        ("claude", {}, "/home/ann/.claude/settings.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        ("codex", {"CODEX_HOME": "/x"}, "/x/hooks.json"),
        ("gemini", {}, "/home/ann/.gemini/settings.json"),
        ("opencode", {}, "/home/ann/.config/opencode/plugin/remit.js"),
        ("qwen", {}, "/home/ann/.qwen/settings.json"),
        ("copilot", {}, "/home/ann/.copilot/hooks/remit.json"),
    ],
)
def test_each_agent_has_its_file(agent: AgentName, env: dict[str, str], file: str) -> None:
    assert file_of(agent, {"HOME": "/home/ann", **env}) == Path(file)


@pytest.mark.parametrize("surface", ["cli", "x /bin/true", "a; exit 0", "`exit 0`", "$(exit 0)", '" /bin/true "'])
def test_a_variable_that_a_repository_sets_does_not_change_what_is_started(surface: str, tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 1\n')
    client.chmod(0o700)
    line = HookClient((str(client), "/s", "5"), ("/remit", "guard", "ask"), 5).words("claude", "before")
    env = {"CLAUDE_CODE_ENTRYPOINT": surface, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, check=False)
    tag = f"claude.before:{surface}"
    assert (done.stdout.splitlines(), done.returncode) == (["/s", "5", tag, "/remit", "guard", "ask", tag], 2)


def test_managed_settings_are_claudes() -> None:
    assert "managed-settings.d" in str(file_of("claude", {}, managed=True))
    with pytest.raises(UsageError):
        file_of("codex", {"HOME": "/"}, managed=True)
    with pytest.raises(UsageError):
        file_of("codex", {})


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude/settings.local.json", '{\n  "disableAllHooks": true\n}'),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
        ("qwen", ".qwen/settings.json", '{\n"disableAllHooks": true}'),
    ],
)
def test_a_line_that_switches_hooks_off_is_named(agent: AgentName, name: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir()
    file.write_text(text)
    [(where, line, said)] = off_switches(agent, tmp_path, {"HOME": "/nowhere"})
    assert (where, line) == (file, 2)
    assert said in text
    file.write_text("{}")
    assert not list(off_switches(agent, tmp_path, {"HOME": "/nowhere"}))


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["claude", "-p", "hi"], ["claude", "--settings", '{"disableAllHooks": false}', "-p", "hi"]),
        (["/usr/bin/codex", "exec", "hi"], ["/usr/bin/codex", "-c", "features.hooks=true", "exec", "hi"]),
        (["gemini"], ["gemini"]),
    ],
)
def test_an_agent_is_run_with_its_hooks_on(words: list[str], made: list[str]) -> None:
    assert with_hooks_on(words, AGENTS, {}) == made


@pytest.mark.parametrize(
    ("words", "env", "named"),
    [
        (["claude", "--bare"], {}, "--bare"),
        (["claude", "--settings={}"], {}, "--settings"),
        (["codex", "--disable", "hooks"], {}, "--disable"),
        (["codex", "-c", "features.hooks=false"], {}, "features.hooks"),
        (["opencode", "--pure"], {}, "--pure"),
        (["claude"], {"CLAUDE_CODE_SIMPLE": "1"}, "CLAUDE_CODE_SIMPLE"),
        (["aider"], {}, "aider is not connected"),
    ],
)
def test_what_would_switch_hooks_off_is_refused(words: list[str], env: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        with_hooks_on(words, AGENTS, env)


def test_the_plugin_names_nothing_that_is_left_open() -> None:
    text, changes = connected("opencode", None, FILE, CLIENT)
    assert not changes
    assert json.dumps("/g/socket") in text
    assert not {"SOCKET", "SECONDS", "STARTER"} & set(text.split())
