"""One thing that is wrong with a value."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.codes import Code

MAX_TEXT: Final = 200
"""Characters of a message or a path; what is wrong with a value never quotes the value."""


class SchemaProblem(NamedTuple):
    """Where a value does not satisfy its schema, and why."""

    code: Code
    """`missing`, `type_mismatch` or `unknown_field` (contract: tickets, "Gates")."""
    path: str
    """JSON pointer (RFC 6901) to the offender; empty for the whole value."""
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'} {self.message}"


def cut(text: str) -> str:
    """A text of at most MAX_TEXT characters."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
