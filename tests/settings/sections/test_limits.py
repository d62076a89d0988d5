from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.settings import load
from remit.settings.sections.calls import LimitSettings, call_limits


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"rate": "x"}, """limits."web.*": rate must be calls in a time (s, min, h or d), as in 60/min"""),
        ({"rate": "-5/h"}, """limits."web.*": rate must be calls in a time (s, min, h or d), as in 60/min"""),
        ({"rate": 3}, """limits."web.*": rate must be calls in a time (s, min, h or d), as in 60/min"""),
        ({"rate": "1/s", "each": "label:"}, """limits."web.*": each must be principal, recipe, tool or label:NAME"""),
        ({"rate": "1/s", "share": "team"}, """limits."web.*": share must be principal, recipe, tool or label:NAME"""),
        ({}, """limits."web.*" limits nothing"""),
    ],
)
def test_a_limit_that_does_not_fit_says_its_form(table: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        call_limits(LimitSettings(tools={"web.*": table}))
    assert caught.value.message == message


@pytest.mark.parametrize("table", [{"rate": "1/s", "burst": "many"}, {"rate": "1/s", "bursts": 3}, {"concurrency": 0}])
def test_a_limit_with_a_value_or_key_of_another_kind_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        call_limits(LimitSettings(tools={"web.*": table}))


def test_the_reader_of_settings_refuses_what_is_no_limit(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text('[limits."web.*"]\nrate = "-5/h"\n')
    with pytest.raises(SettingsError, match="rate must be"):
        load(cwd=tmp_path, env={})
