"""The hosts of a program of the operator's own that may have private addresses."""

from __future__ import annotations

import pytest

from remit.parts.sandbox.enclosure import _direct, _private


@pytest.mark.parametrize(
    ("entry", "places"),
    [
        ("127.0.0.1:18777", ("127.0.0.1:18777",)),
        ("Models.Internal", ("models.internal:80", "models.internal:443")),
        ("*.internal:8000", ()),
        ("*", ()),
    ],
)
def test_a_host_that_is_named_whole_may_have_a_private_address(entry: str, places: tuple[str, ...]) -> None:
    assert _private((entry,)) == places


def test_a_model_on_this_machine_is_reached_through_the_proxy() -> None:
    assert _direct(("10.0.0.5:8000",)) == {}
    assert _direct(("127.0.0.1:18777",)) == {"no_proxy": "localhost", "NO_PROXY": "localhost"}
