import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from remit.errors import UsageError
from remit.settings.table import documented, table
from remit.wiring.schemas import REMIT_TOML, schema_text

ROOT = Path(__file__).parents[2]
DEPLOYED = sorted(ROOT.glob("deploy/**/remit.toml"))
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
_BLOCK = re.compile(r"^ *```toml.*?\n(.*?)```", re.DOTALL | re.MULTILINE)
SHOWN = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, text in enumerate(_BLOCK.findall(page.read_text("utf-8")))
] + [pytest.param(path.read_text("utf-8"), id=path.stem) for path in ROOT.glob("examples/**/*.toml")]


def validator(file: str) -> Any:
    return jsonschema_rs.validator_for(msgspec.json.decode(schema_text(file)))


def test_every_setting_is_described_with_its_default() -> None:
    properties = msgspec.json.decode(schema_text(REMIT_TOML))["properties"]
    for row, doc in zip(table().values(), documented(), strict=True):
        section = properties[row.section]
        form = section.get("properties") or section["anyOf"][1]["properties"]
        assert form[row.name]["description"] == doc.meaning
        assert form[row.name]["default"] == msgspec.json.decode(row.default_text)


def test_every_default_fits() -> None:
    form = msgspec.json.decode(schema_text(REMIT_TOML))
    for row in table().values():
        section = form["properties"][row.section]
        setting = (section.get("properties") or section["anyOf"][1]["properties"])[row.name]
        assert jsonschema_rs.is_valid({**setting, "$defs": form["$defs"]}, setting["default"]), row.key


@pytest.mark.parametrize("file", [REMIT_TOML, "workflow.toml"])
def test_every_key_of_a_table_is_described(file: str) -> None:
    tables = msgspec.json.decode(schema_text(file))["$defs"]
    keys = {f"{name}.{key}": form for name, entry in tables.items() for key, form in entry["properties"].items()}
    assert [key for key, form in keys.items() if not form.get("description")] == []


@pytest.mark.parametrize("text", SHOWN)
def test_what_pages_and_examples_show_fits_one_of_them(text: str) -> None:
    shown = json.loads(json.dumps(tomllib.loads(text), default=str))  # the schema has times as JSON writes them
    assert any(validator(file).is_valid(shown) for file in (REMIT_TOML, "workflow.toml"))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("[jobs]\nconcurrency = 4", True),
        ("[jobs]\nconcurrency = 0", False),
        ("[jobs]\nconcurency = 4", False),
        ("[journal]\nurl = 7", False),
        ('[limits."web.*"]\nrate = "60/min"', True),
        ('[limits."web.*"]\nrate = "-5/h"', False),
        ('[limits."web.*"]\npace = "60/min"', False),
        ('[[clients]]\nprincipal = "ann"\nscopes = ["read"]', True),
        ('[[clients]]\nprincipal = "ann"\nscopes = ["write"]', False),
        ("[acme]\nany = 1", True),
        ('[[mcp.servers]]\nname = "a"\ncommand = "npx"\nargs = ["-y", "b"]', True),
        ('[[mcp.servers]]\nname = "a"\ncomand = ["npx"]', False),
        ('[[policy.rules]]\neffect = "ask"\ntools = "fs.*"\nexpires = "2h"', True),
        ('[[policy.rules]]\neffect = "refuse"', False),
        ('[[policy.tests]]\ntool = "fs.read"\nexpect = "allow"\ntaken = { r = { calls = 2, sum = 9.5 } }', True),
        ('[[policy.tests]]\ntool = "fs.read"\nexpects = "allow"', False),
        ('[[policy.tests]]\ntool = "fs.read"\nexpect = "maybe"', False),
        ('[[policy.rules]]\neffect = "ask"\ntool = "fs.*"', False),
    ],
)
def test_remit_toml_is_held_to_its_schema(text: str, *, fits: bool) -> None:
    assert validator(REMIT_TOML).is_valid(tomllib.loads(text)) is fits


@pytest.mark.parametrize("path", DEPLOYED, ids=[path.parent.name for path in DEPLOYED])
def test_files_that_are_deployed_fit(path: Path) -> None:
    validator(REMIT_TOML).validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('[outbox]\nbackend = "github"', True),
        ('[outbox]\nbackend = "jira"', False),
        ("[executors.shell]\ntimeout_seconds = 0", False),
    ],
)
def test_workflow_toml_is_held_to_its_schema(text: str, *, fits: bool) -> None:
    assert validator("workflow.toml").is_valid(tomllib.loads(text)) is fits


@pytest.mark.slow
def test_another_file_is_refused() -> None:
    with pytest.raises(UsageError):
        schema_text("Cargo.toml")
