"""A row of the table of codes."""

from __future__ import annotations

from typing import Final, NamedTuple

BLOCKED: Final = "blocked"
FAILED: Final = "failed"
PENDING: Final = "pending"
ERROR: Final = "error"
HEALTH: Final = "health"
NOTE: Final = "note"


class Row(NamedTuple):
    """One row of the table."""

    status: str
    """`blocked`, `failed` or `pending` (an outcome), `error` (raised), `health` (readiness), `note` (recorded beside a result)."""
    http: int
    """The HTTP status of the answer."""
    retryable: bool
    """Whether the caller should make the same call again; what a refusal waits for has to be fixed first."""
    meaning: str


class Reserved(Row):
    """A row that the contracts name and that Remit does not use yet.

    It is reserved for a feature to come, or for your own provider or executor to give as a `cause`.
    """

    __slots__ = ()
