"""This process's streams at its beginning and its end; nothing that still runs may keep a command from ending."""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
from pathlib import Path
from typing import Final, Never

from remit.cli import exit_codes

_DESCRIPTORS: Final = {"stdout": 1, "stderr": 2}


def prepare() -> None:
    """Give the process both streams, and let characters that their encoding lacks become question marks."""
    for name in _DESCRIPTORS:
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the process began
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - it lasts as long as we do
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def leave(status: int) -> Never:
    """End the process. Threads that tools left behind (Python cannot stop one) are not waited for.

    Python does not collect what is loaded before it ends: that takes a third of a second, for which others would wait.
    """
    lost = [name for name in _DESCRIPTORS if not _flushed(name)]
    if lost and status == exit_codes.OK:
        status = exit_codes.ERROR
    if threading.active_count() > 1:
        os._exit(status)
    gc.freeze()
    sys.exit(status)


def _flushed(name: str) -> bool:
    """Write what a stream still holds; whether nothing was lost. That its reader went away loses nothing."""
    try:
        getattr(sys, name).flush()
    except (OSError, ValueError) as error:
        # Python's own flush at the end would complain once more.
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, _DESCRIPTORS[name])
        os.close(sink)
        return isinstance(error, OSError) and error.errno == errno.EPIPE
    return True
