from __future__ import annotations

import pytest

from remit.process.child import reason_of


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "its process has ended"),
        (0, "its process ended with exit code 0"),
        (7, "its process ended with exit code 7"),
        (-9, "its process was ended by SIGKILL"),
        (-200, "its process ended with exit code -200"),
    ],
)
def test_an_exit_status_is_said_in_words(status: int | None, words: str) -> None:
    assert reason_of(status) == words
