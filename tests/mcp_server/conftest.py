"""Each way of being connected, for tests of what holds on all of them."""

from __future__ import annotations

import pytest

from tests.mcp_server.links import LINKS, Link


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Clients and servers take a while to meet: calls within one process stand for the rest where it must be quick."""
    for item in items:
        if item.path.parent.name == "mcp_server" and not (item.path.name == "test_calls.py" and "lines" in item.name):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=LINKS, ids=lambda link: f"{link.transport}-{link.era}")
def link(request: pytest.FixtureRequest) -> Link:
    """One way of being connected."""
    chosen: Link = request.param
    return chosen
