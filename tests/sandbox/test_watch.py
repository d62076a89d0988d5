from __future__ import annotations

import pytest

from remit.sandbox.watch import wait_after


@pytest.mark.parametrize(
    ("took", "every", "seconds"),
    [(0.0, 0.05, 0.05), (0.02, 0.05, 0.2), (0.5, 0.05, 1.0), (60.0, 0.05, 1.0), (1.0, 1.0, 10.0), (60.0, 1.0, 20.0)],
)
def test_a_workspace_is_measured_seldom_if_that_takes_long_but_soon_enough(
    took: float, every: float, seconds: float
) -> None:
    assert wait_after(took, every) == pytest.approx(seconds)
