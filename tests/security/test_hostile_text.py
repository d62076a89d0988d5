"""Plans and settings from strangers: each ends at once, with a coded error and a place (reviews s09/Y, s09/T)."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.jobs.plans.problem import InvalidPlanError
from remit.jobs.plans.source import load_plan
from remit.settings import load

HEAD = "version: 1\nname: p\nnodes:\n"
NODE = "  - id: a\n    tool: fs.read\n    args:\n"
CHAIN = "".join(f"  - id: n{one}\n    tool: fs.read\n    needs: [n{(one + 1) % 2000}]\n" for one in range(2000))
PLANS = {
    "Y01 billion laughs": "a: &a [x,x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20)),
    "Y02 a tag that runs": HEAD + "  - !!python/object/apply:os.system [id]\n",
    "Y03 merge key": "x: &x {tool: fs.read}\n" + HEAD + "  - id: a\n    <<: *x\n",
    "Y04 a million levels": HEAD + "  - " + "[" * 1_000_000,
    "Y05 braces": "{" * 900_000,
    "Y06 60,000 values": HEAD + NODE + "      a: [" + "1," * 60_000 + "1]\n",
    "Y07 five megabytes": HEAD + "#" * 5_000_000,
    "Y08 a key twice": HEAD + "  - id: a\n    tool: fs.read\n    tool: fs.write\n",
    "Y09 infinity": HEAD + NODE + "      a: .inf\n",
    "Y09 not a number": HEAD + NODE + "      a: .nan\n",
    "Y09 1e999": HEAD + NODE + "      a: 1e999\n",
    "Y09 10^400": HEAD + NODE + "      a: 1" + "0" * 400 + "\n",
    "Y10 2,001 nodes": HEAD + "".join(f"  - id: n{one}\n    tool: fs.read\n" for one in range(2001)),
    "Y11 2,000 that wait for each other": HEAD + CHAIN,
    "Y12 a reference of 500 kB": HEAD + NODE + "      path: ${" + "a" * 500_000 + "\n",
    "Y13 Python's inside": HEAD + NODE + "      path: ${inputs.__class__.__mro__}\n",
    "Y14 private use": HEAD + NODE + "      path: \ue000{a}\n",
    "Y16 NUL": HEAD + "  - id: \x00a\n",
    "Y17 200,000 comments": HEAD + "#\n" * 200_000,
    "Y18 a key of 900 kB": "? " + "k" * 900_000 + "\n: 1\n",
    "Y19 escape sequences": HEAD + '  - id: "a\\e[2J\\u202e"\n    tool: fs.read\n',
}
TOMLS = {
    "T01 100,000 brackets": "x = " + "[" * 100_000,
    "T03 an integer of 5,000 digits": "x = " + "9" * 5_000,
    "T04 a megabyte of keys": "[policy]\n" + "".join(f"k{one} = 1\n" for one in range(60_000)),
    "T05 two megabytes": "#" * 2_000_000,
    "T06 table and array": "[mcp]\n[[mcp]]\n",
    "T07 two byte order marks": "\ufeff\ufeff[app]\n",
    "T08 half a character": '[app]\nprincipal = "\\ud800"\n',
    "T09 not a number": "[jobs]\ndrain_seconds = nan\n",
    "T10 date": "[app]\nprincipal = 2024-01-01\n",
    "T11 escapes in a key": '"\\u001b[2J\\u202e" = 1\n',
}


@pytest.mark.parametrize("name", PLANS)
def test_a_hostile_plan_is_refused_with_a_place(tmp_path: Path, name: str) -> None:
    place = tmp_path / "plan.yaml"
    place.write_text(PLANS[name], encoding="utf-8")
    with pytest.raises(InvalidPlanError) as raised:
        load_plan(place)
    assert "plan.yaml:" in str(raised.value) or "Y07" in name
    assert len(str(raised.value)) < 20_000


def test_a_plan_in_another_encoding_is_refused(tmp_path: Path) -> None:  # Y15
    place = tmp_path / "plan.yaml"
    place.write_bytes((HEAD + NODE).encode("utf-16"))
    with pytest.raises(InvalidPlanError, match="UTF-8"):
        load_plan(place)


@pytest.mark.parametrize("name", TOMLS)
def test_hostile_settings_are_refused_with_a_place(tmp_path: Path, name: str) -> None:
    (tmp_path / "remit.toml").write_text(TOMLS[name], encoding="utf-8")
    with pytest.raises(SettingsError, match=r"remit\.toml"):
        load(cwd=tmp_path, env={})


@pytest.mark.parametrize(
    "text",
    [
        '[app]\nprincipal = "a\\nb:c"\n',  # T12
        "".join(f'[[policy.rules]]\nid = "r{one}"\neffect = "deny"\ntools = ["x.*"]\n' for one in range(5_000)),  # T13
        '[[policy.rules]]\nid = "g"\neffect = "deny"\nwhen = { path = { glob = "' + "a*" * 30_000 + '" } }\n',  # T14
    ],
)
def test_odd_settings_are_read_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "remit.toml").write_text(text, encoding="utf-8")
    assert load(cwd=tmp_path, env={}).file is not None
