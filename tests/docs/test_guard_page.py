"""The rules that the page of the guard ships do what it says, and its tables name what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from remit.parts.hooks.hook import AGENTS, Hook, agents_tools, common_args, meta_of, step_of
from remit.policy.decision import Caller, Query
from remit.policy.lint import lint
from remit.policy.rules import Policy
from remit.tools.meta import ToolMeta
from remit.tools.names import key_of

PAGE = (Path(__file__).parents[2] / "docs/guard.md").read_text(encoding="utf-8")
[BLOCK] = re.findall(r"```toml guard\n(.*?)```", PAGE, re.DOTALL)
TOOL = ToolMeta(name="fs.read", provider_id="fs")
POLICY = Policy.parse(tomllib.loads(BLOCK)["policy"]["rules"])


def decided(tool: str, **args: str) -> str:
    hook = Hook(agent="claude", moment="before", session="s", tool=tool, args=dict(args), cwd="/home/ann/shop")
    name, kind = step_of(hook)
    caller = Caller(principal="ann", kind="session")
    return POLICY.decide(
        Query(tool=meta_of(name, kind), key=key_of(name), args=common_args(hook, kind), caller=caller)
    ).rule_id


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("bash -i", "no-interactive-programs"),
        ("bash", "no-interactive-programs"),
        ("ssh host", "no-interactive-programs"),
        ("python3", "no-interactive-programs"),
        ("cd x && claude -p hi", "no-nested-agents"),
        ("bash -c 'codex exec hi'", "no-nested-agents"),
        ("npx gemini", "no-nested-agents"),
        ("git push origin", "ask-before-publishing"),
        ("sudo gh release create", "ask-before-publishing"),
        ("make test | tee log", "everyday-work"),
        ("bash x.sh", "everyday-work"),
        ("python3 -m pytest", "everyday-work"),
    ],
)
def test_a_rule_of_the_page_decides_about_a_command(command: str, rule: str) -> None:
    assert decided("Bash", command=command) == rule


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (".claude/settings.json", "no-settings-of-agents"),
        ("/home/ann/.codex/hooks.json", "no-settings-of-agents"),
        ("../x/.gemini/a/b", "no-settings-of-agents"),
        ("/home/ann/.config/opencode/plugin/remit.js", "no-settings-of-agents"),
        ("src/shop.py", "everyday-work"),
    ],
)
def test_a_rule_of_the_page_decides_about_an_edit(path: str, rule: str) -> None:
    assert decided("Write", file_path=path, content="x") == rule


def test_lint_knows_what_the_rules_of_the_page_name() -> None:
    findings = lint(tomllib.loads(BLOCK)["policy"]["rules"], [TOOL], unlisted=agents_tools())
    assert {finding.kind for finding in findings} == {"unbounded"}


def test_what_cannot_be_governed_is_the_third_heading() -> None:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.MULTILINE)
    assert headings[2] == "What cannot be governed"


def test_every_agent_and_kind_is_in_a_table() -> None:
    kinds = {meta_of("claude.x", kind).alias for kind in ("shell", "write", "read", "fetch", "spawn", "mcp", "plan")}
    rows = "".join(re.findall(r"^\| (`agent\.[^|]*)\|", PAGE, re.MULTILINE))
    assert kinds <= set(re.findall(r"`(agent\.\w+)`", rows))
    assert all(agent in PAGE.lower() for agent in AGENTS)
