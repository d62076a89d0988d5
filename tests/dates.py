"""Another date for the suite: `python -m tests.dates DATE PROGRAM …` runs a program by a clock that is set to it.

DATE is a moment of ISO 8601 with its offset, or days from now: `2028-02-29T12:00:00Z`, `+400`. Only the time of day is
set, by libfaketime: how long things take, and when files were written, is as it is.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from remit.clock import SECOND, SystemClock, instant

_PACKAGE: Final = find_spec("libfaketime")
LIBRARY: Final = (
    None if _PACKAGE is None else Path(str(_PACKAGE.origin)).parent / "vendor/libfaketime/src/libfaketime.so.1"
)
"""What sets the clock of a program; None where it is not installed: it is made for Linux on x86-64."""
_NAMES: Final = ("LD_PRELOAD", "FAKETIME", "FAKETIME_DONT_FAKE_MONOTONIC", "FAKETIME_CACHE_DURATION")
_RUN_S: Final = 86_400
"""How long a date is kept: while libfaketime reads it again, other threads see the machine's."""
DATE_ENV: Final = {name: os.environ[name] for name in _NAMES if name in os.environ}
"""The date of this process, for a child that gets an environment of its own."""


def dated(date: str) -> dict[str, str]:
    """The variables that set the clock of a program to a date. Raises ValueError for a text that is none."""
    at = instant(date)
    ahead = int(date) * 86_400 if at is None else (at - SystemClock().now()) / SECOND
    return dict(zip(_NAMES, (str(LIBRARY), f"{ahead:+.6f}", "1", str(_RUN_S)), strict=True))


if __name__ == "__main__":
    if LIBRARY is None:
        sys.exit("libfaketime is not installed here: it is made for Linux on x86-64.")
    os.execvpe(sys.argv[2], sys.argv[2:], {**os.environ, **dated(sys.argv[1])})  # noqa: S606 - no shell
