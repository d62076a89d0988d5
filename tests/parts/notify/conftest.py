from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.parts.notify.servers import Hook, running_hook


@pytest.fixture
def hook() -> Iterator[Hook]:
    with running_hook() as one:
        yield one
