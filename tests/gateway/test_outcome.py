"""The outcome of a call, in words."""

from __future__ import annotations

import pytest

from remit.codes import Code
from remit.gateway.outcome import failed, refused, status_of


@pytest.mark.parametrize("code", Code)
def test_the_code_table_decides_the_status(code: Code) -> None:
    expected = code.status if code.status in {"blocked", "failed", "pending"} else "failed"
    assert refused(code, "why").status == status_of(code) == expected
    assert failed(code, "why").status == ("blocked" if code.status == "blocked" else "failed")


def test_without_a_reason_the_codes_meaning_is_one() -> None:
    assert refused(Code.POLICY_DENIED, "").reason == Code.POLICY_DENIED.meaning


def test_words_are_one_line_without_secrets_whoever_chose_them() -> None:
    for outcome in (
        refused(Code.POLICY_DENIED, "a\nb token=hunter2hunter2", "x\ty"),
        failed(Code.RUN_TIMEOUT, "a\nb", "x\ty"),
    ):
        assert outcome.reason.startswith("a b")
        assert (outcome.remedy, "hunter2" in outcome.reason) == ("x y", False)
    assert len(refused(Code.POLICY_DENIED, "x" * 5_000).reason) == 1_000
