"""The answer about a file of a format of others: `valid`, `invalid` or `undecidable`, as their corpora want it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["valid", "invalid", "undecidable"]
STATUSES: dict[Verdict, int] = {"valid": 0, "invalid": 1, "undecidable": 2}
"""The exit status of each verdict."""


class CheckAnswer(NamedTuple):
    """The answer of a check."""

    verdict: Verdict
    code: str | None
    """Why it is not valid, for programs; None: it is."""
    words: str
    """The same for people."""
    records: int = 0
    """The number of records that were checked."""
