import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from remit.errors import UsageError
from remit.settings.table import documented, table
from remit.wiring.schemas import REMIT_TOML, schema_text

DEPLOYED = sorted(Path(__file__).parents[2].glob("deploy/**/remit.toml"))


def validator(file: str) -> Any:
    return jsonschema_rs.validator_for(msgspec.json.decode(schema_text(file)))


def test_every_setting_is_described_with_its_default() -> None:
    properties = msgspec.json.decode(schema_text(REMIT_TOML))["properties"]
    for row, doc in zip(table().values(), documented(), strict=True):
        section = properties[row.section]
        form = section.get("properties") or section["anyOf"][1]["properties"]
        assert form[row.name]["description"] == doc.meaning
        assert form[row.name]["default"] == msgspec.json.decode(row.default_text)


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


def test_another_file_is_refused() -> None:
    with pytest.raises(UsageError):
        schema_text("Cargo.toml")
