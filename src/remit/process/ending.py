"""Exit statuses in words."""

from __future__ import annotations

import signal
from contextlib import suppress


def reason_of(status: int | None) -> str:
    """How a process ended: `status` is its return code, negative for a signal, None if it is not known."""
    if status is None:
        return "its process has ended"
    if status < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with exit code {status}"
