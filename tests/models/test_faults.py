from __future__ import annotations

import pytest

from remit.clock import SECOND
from remit.models.faults import FAULTS, ModelFault, retry_after

NOW = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 60.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e300"}, 86_400.0 * 31),
    ],
)
def test_the_wait_that_a_provider_wants_is_read_from_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


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
