"""The end of a command's process."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

HELD: Final = """
import atexit
from remit.cli.root import leave

class Held:
    def __del__(self):
        print("taken apart")

held = Held()
held.itself = held
del held
atexit.register(print, "bye")
leave(3)
"""


def test_what_is_loaded_is_not_taken_apart_at_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "bye\n", "")
