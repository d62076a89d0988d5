"""The end of this process: nothing that still runs may keep a command from ending."""

from __future__ import annotations

import os
import sys
import threading
from typing import Never


def leave(status: int) -> Never:
    """End the process. Threads that tools left behind (Python cannot stop one) are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever read it is gone: nothing is left to say to them
            _silence(stream.fileno())
    if threading.active_count() > 1:
        os._exit(status)
    sys.exit(status)


def _silence(descriptor: int) -> None:
    """Let what is still buffered go nowhere, so that Python's own flush at the end does not complain."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, descriptor)
    os.close(sink)
