"""Each way of being connected, for tests of what holds on all of them."""

from __future__ import annotations

import pytest

from tests.mcp_server.links import LINKS, Link


@pytest.fixture(params=LINKS, ids=lambda link: f"{link.transport}-{link.era}")
def link(request: pytest.FixtureRequest) -> Link:
    """One way of being connected."""
    chosen: Link = request.param
    return chosen
