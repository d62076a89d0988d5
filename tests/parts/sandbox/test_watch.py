from __future__ import annotations

import os
import threading

import pytest

from remit.parts.sandbox.limits import look
from remit.parts.sandbox.supervisor import wait_after


@pytest.mark.parametrize(
    ("took", "every", "seconds"),
    [(0.0, 0.05, 0.05), (0.02, 0.05, 0.2), (0.5, 0.05, 1.0), (60.0, 0.05, 1.0), (1.0, 1.0, 10.0), (60.0, 1.0, 20.0)],
)
def test_a_workspace_is_measured_seldom_if_that_takes_long_but_soon_enough(
    took: float, every: float, seconds: float
) -> None:
    assert wait_after(took, every) == pytest.approx(seconds)


def test_threads_count_as_processes_do() -> None:
    before, end = look(os.getpid()).pids, threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert look(os.getpid()).pids >= before + 20
    end.set()
    for thread in threads:
        thread.join()
