"""What a settings file would have untrusted text decide, and is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.settings import load
from remit.trust.claims import SettingsClaim, claims


def claimed(folder: Path, text: str) -> tuple[SettingsClaim, ...]:
    (folder / "remit.toml").write_text(text, encoding="utf-8")
    return claims(load(cwd=folder, env={}), {})


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (
            '[policy]\ntaint = "allow"',
            SettingsClaim("policy.taint", "let untrusted text decide what the calls of agents reach"),
        ),
        (
            '[tools]\ntrusted_output = ["mcp.mail.*", "fs.*"]',
            SettingsClaim("tools.trusted_output", "trust what these tools return: mcp.mail.*, fs.*"),
        ),
        (
            '[tools]\nalways_trusted_output = ["crm.*"]',
            SettingsClaim("tools.always_trusted_output", "trust what these tools return, whatever text went in: crm.*"),
        ),
        (
            '[[policy.rules]]\nid = "pay"\neffect = "allow"\ntools = ["bank.pay"]\ntaint = "allow"',
            SettingsClaim("policy.rules", "allow without asking, by rule pay: bank.pay, whatever text they come from"),
        ),
    ],
)
def test_believing_untrusted_text_takes_trust_in_the_folder(tmp_path: Path, text: str, claim: SettingsClaim) -> None:
    assert claimed(tmp_path, text) == (claim,)


@pytest.mark.parametrize("text", ['[policy]\ntaint = "deny"', '[tools]\nuntrusted_output = ["fs.*"]'])
def test_believing_less_takes_none(tmp_path: Path, text: str) -> None:
    assert claimed(tmp_path, text) == ()
