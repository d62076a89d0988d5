"""What a TOOL ticket came to: go on, defer or block (contract: tickets, "ToolVerdict")."""

from __future__ import annotations

from typing import Any, Final, Literal, Self, get_args

import msgspec

Status = Literal["PROCEED", "DEFER", "BLOCK"]
STATUSES: Final[tuple[str, ...]] = get_args(Status)
MAX_REASON: Final = 512
"""Characters of a reason."""


class ToolVerdict(msgspec.Struct, frozen=True):
    """A status and, if it needs one, a reason of at most 512 characters."""

    status: Status
    reason: str = ""

    @classmethod
    def read(cls, value: Any) -> Self | None:
        """The verdict a value holds: an object, or the bare status. Return None for anything else."""
        if isinstance(value, str):
            value = {"status": value}
        try:
            found = msgspec.convert(value, cls)
        except msgspec.ValidationError:
            return None
        return found if len(found.reason) <= MAX_REASON else None

    @classmethod
    def of_run(cls, status: str, reason: str = "") -> Self:
        """The verdict of a run: ok proceeds, everything else is deferred."""
        return cls("PROCEED" if status == "ok" else "DEFER", reason[:MAX_REASON])
