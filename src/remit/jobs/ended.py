"""How a pass over a job ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from remit.journal.kinds import ErrorInfo


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker's pass came to."""

    how: Literal["completed", "failed", "cancelled", "parked", "stuck", "lost"]
    """`stuck`: the code of this process cannot go on with the job; `lost`: another worker holds it."""
    encoded: bytes = b"null"
    """What the recipe returned, as JSON."""
    error: ErrorInfo | None = None


def error_info(error: BaseException, step: str = "") -> ErrorInfo:
    """An exception as it is recorded: its code where it has one, its words, and what to do."""
    code = getattr(error, "code", None)
    name = getattr(code, "name", None) or "JOB_FAILED"
    kind = type(error).__name__
    message = getattr(error, "message", None) or (f"{kind}: {error}" if str(error) else kind)
    step = getattr(error, "step", "") or step
    return ErrorInfo(code=str(name), message=str(message), remedy=str(getattr(error, "remedy", "")), step=step)
