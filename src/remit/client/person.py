"""The person who asks a server: it knows people by their tokens, so that no request speaks for another person."""

from __future__ import annotations

from remit.codes import Code
from remit.errors import UsageError


def only_oneself(by: str) -> None:
    """Raise UsageError (LOCAL_ONLY) if a request is to be made in another person's name."""
    if by:
        why = f"a server identifies you by your token; you cannot answer for {by!r:.80}"
        raise UsageError(why, code=Code.LOCAL_ONLY, remedy="Omit the name, or use that person's token.")
