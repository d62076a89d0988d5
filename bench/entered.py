"""The functions of Remit that a thread enters, in order; `python -m bench.entered COMMAND…` counts those of a process.

It loads nothing of Remit itself, so that every file that a command loads is counted.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from types import FrameType
from typing import Final, NoReturn

_SOURCE: Final = "/src/remit/"


class Walk:
    """The functions of Remit that were entered, in order; a module that is loaded counts as one."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, str]] = []
        """File and function."""

    def begin(self) -> None:
        """Follow this thread, and those that begin from now on."""
        threading.setprofile(self._follow)
        sys.setprofile(self._follow)

    def end(self) -> None:
        """Follow nothing more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _follow(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            place = file.rfind(_SOURCE)
            if place >= 0:
                self.entered.append((file[place + len(_SOURCE) :], frame.f_code.co_qualname))

    @property
    def files(self) -> int:
        """Files that were entered."""
        return len({file for file, _ in self.entered})

    @property
    def moves(self) -> int:
        """Times that a function of another file than the last one's was entered."""
        return len(self.visits()) - 1

    def visits(self) -> list[tuple[str, list[str]]]:
        """Return the file of each visit, with the functions that were entered there."""
        visits: list[tuple[str, list[str]]] = []
        for file, name in self.entered:
            if not visits or visits[-1][0] != file:
                visits.append((file, []))
            visits[-1][1].append(name)
        return visits


def main() -> None:
    """Run a command of Remit, and say at its end how many files it entered, however it ends."""
    walk, leave = Walk(), os._exit

    def tell() -> None:
        walk.end()
        print(f"files: {walk.files}", file=sys.stderr, flush=True)

    def tell_and_leave(status: int) -> NoReturn:
        tell()
        leave(status)

    os._exit = tell_and_leave  # a command leaves so where threads of tools still run
    sys.argv[0] = "remit"
    walk.begin()
    try:
        import_module("remit.cli").main()
    finally:
        tell()


if __name__ == "__main__":
    main()
