from __future__ import annotations

from remit.models.faults import FAULTS, ModelFault


def test_every_fault_has_a_code_of_its_own_that_agrees_about_retrying() -> None:
    assert len({fault.code for fault in FAULTS.values()}) == len(FAULTS)
    for fault in FAULTS.values():
        assert fault.code.retryable == (fault.retry != "none")


def test_what_was_never_sent_is_not_billed() -> None:
    assert FAULTS["server"]("x").billed == "maybe"
    assert FAULTS["server"]("x", unsent=True).billed == "no"


def test_a_reason_is_one_line_without_secrets() -> None:
    assert (
        "sk-proj-" not in ModelFault("Incorrect API key: sk-proj-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n").reason
    )
