"""docs/models.md says what is in the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from remit.jobs.answers import ModelAnswer
from remit.models.faults import FAULTS
from remit.models.names import PROVIDERS, parse
from remit.models.port import SHORT_S
from remit.models.registry import KEYS
from remit.models.reply import Stop
from remit.models.script import ScriptStep, load

PAGE = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
WHEN = {"now": "now", "at": "at the time that the provider names", "none": "no"}


def _part(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def _rows(title: str) -> list[list[str]]:
    lines = re.findall(r"^\| (`.*) \|$", _part(title), re.MULTILINE)
    return [[cell.strip("`") for cell in line.split(" | ")] for line in lines]


def test_every_provider_is_named_with_its_keys() -> None:
    rows = _rows("Names")
    assert [name.partition(":")[0] for name, _, _ in rows] == list(PROVIDERS)
    for name, _, keys in rows:
        assert set(re.findall(r"[A-Z_]{6,}", keys)) == set(
            KEYS.get(parse(name.replace("URL", "http://h")).provider, ())
        )


def test_every_reason_to_stop_is_listed() -> None:
    assert [row[0] for row in _rows("An answer is whole or does not exist")] == list(get_args(Stop))


def test_every_fault_is_listed_with_what_it_means() -> None:
    rows = [[name, fault.code.name, WHEN[fault.retry], fault.billed] for name, fault in FAULTS.items()]
    assert _rows("Faults") == rows


def test_the_pause_on_the_page_is_the_one_in_force() -> None:
    assert f"up to {SHORT_S:g} seconds" in PAGE


@pytest.mark.parametrize("title", ["A scripted model"])
def test_the_script_of_the_page_is_one_and_every_key_is_listed(title: str, tmp_path: Path) -> None:
    script = re.findall(r"```yaml\n(.*?)```", _part(title), re.DOTALL)[0]
    (tmp_path / "s.yaml").write_text(script)
    assert load(parse("scripted:s.yaml"), tmp_path).name.model == "s.yaml"
    assert len(yaml.safe_load(script)) == 3
    assert {row[0] for row in _rows(title)} == set(ScriptStep.__struct_fields__)


def test_an_answer_on_the_page_has_the_attributes_that_are_read_and_listed() -> None:
    read = set(re.findall(r"\banswer\.(\w+)", PAGE))
    table = PAGE.partition("| attribute of the answer |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert {"text", "value"} <= read <= listed
    assert listed == {*ModelAnswer.__struct_fields__, "text"}
