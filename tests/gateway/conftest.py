"""Fixtures of the gateway's tests."""

from __future__ import annotations

import pytest

from tests.gateway import samples


@pytest.fixture(autouse=True)
def ran() -> list[object]:
    """What the sample tools were called with in this test."""
    samples.ran.clear()
    return samples.ran
