"""docs/untrusted.md says what the code does, and its example says what the page shows."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from remit.journal.kinds import UntrustedArgument
from remit.origins.arguments import arguments_of
from remit.origins.roles import KEYWORD, ROLES
from remit.policy.rules import Policy
from remit.settings.sections.calls import PolicySettings
from remit.settings.table import table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/untrusted.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    example = str(ROOT / "examples/python/mailbox.py")
    ran = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == blocks("")[0]


def test_every_role_is_listed() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("What is looked at"), re.MULTILINE) == list(ROLES)


def test_the_schema_of_the_page_has_the_roles_that_it_says() -> None:
    schema: dict[str, Any] = json.loads(blocks("json")[0])
    assert KEYWORD in blocks("json")[0]
    assert [one.path for one in arguments_of(schema, {"amount": 9, "memo": "https://x.example"})] == ["amount"]


def test_the_settings_and_the_rule_of_the_page_are_valid() -> None:
    settings, rules = (tomllib.loads(block) for block in blocks("toml"))
    assert {f"tools.{name}" for name in settings["tools"]} <= set(table())
    assert [rule.taint for rule in Policy.parse(rules["policy"]["rules"]).rules] == ["deny"]
    assert f'and is `"{PolicySettings().taint}"`' in section("Rules")


def test_every_field_of_the_record_is_listed_with_the_meaning_in_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", section("In the record"), re.MULTILINE))
    (tree,) = ast.parse(inspect.getsource(UntrustedArgument)).body
    assert isinstance(tree, ast.ClassDef)
    said = {
        field.target.id: ast.literal_eval(below.value)
        for field, below in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr)
    }
    assert rows == said
    assert list(rows) == list(UntrustedArgument.__struct_fields__)


def test_the_code_of_the_page_is_a_recipe() -> None:
    names: dict[str, object] = {}
    exec(blocks("python")[0], names)  # noqa: S102 - our own page
    assert getattr(names["one_call"], "name", "") == "one_call"
