from typing import Any

import pytest

from scripts.secret_shapes import rows

END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
NAMED = r"""(?i)[\w.-]{0,50}?(?:acme)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""


@pytest.mark.parametrize(
    ("regex", "lines"),
    [
        (r"ghp_[0-9a-zA-Z]{36}", ["acme-key ghp_ A-Za-z0-9 36"]),
        (
            rf"\b(acme_(?:test|live)_[a-f0-9]{{16}}){END}",
            [f"acme-key acme_{kind}_ 0-9a-f 16" for kind in ("test", "live")],
        ),
        (rf"\b(?:ghu|ghs)_[0-9]{{36}}{END}", ["acme-key ghs_ 0-9 36", "acme-key ghu_ 0-9 36"]),
        (r"\bacme\.(?i)[a-z0-9]{8}\.[a-z0-9]{9}\b", ["acme-key acme. A-Za-z0-9. 18"]),
        (rf"{NAMED}(tfp_[a-z0-9\-_\.=]{{59}}){END}", ["acme-key tfp_ A-Za-z0-9.=_- 59"]),
        (rf"{NAMED}([a-z0-9]{{32}}){END}", []),
        (r"ab[0-9]{40}", []),
        (r"acme_[0-9]{4}", []),
    ],
)
def test_a_rule_with_a_fixed_beginning_gives_its_beginning_characters_and_length(regex: str, lines: list[str]) -> None:
    rule: dict[str, Any] = {"id": "acme-key", "regex": regex}
    assert list(rows([rule])) == lines


def test_rules_about_what_is_public_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(rows([{"id": "acme-public-key", "regex": "ghp_[0-9]{40}"}, {"id": "acme-file", "path": "x"}])) == []
    assert capsys.readouterr().err.splitlines() == ["left out: acme-public-key", "left out: acme-file"]
