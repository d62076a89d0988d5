"""What a provider is told of the call it serves."""

from __future__ import annotations

import re

import pytest

from remit.gateway.context import trace_of
from remit.ids import new_id, trace_id


def test_the_calls_of_a_stream_share_a_trace_which_is_its_identifiers() -> None:
    job = new_id("job")
    assert trace_of(f"job/{job}") == trace_of(f"job/{job}/inbox") == trace_id(job)
    assert trace_of(f"job/{new_id('job')}") != trace_id(job)


@pytest.mark.parametrize("stream", ["session", "session/by-hand", "a/b/c", ""])
def test_a_stream_that_somebody_named_by_hand_has_a_trace_too(stream: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", trace_of(stream))
    assert trace_of(stream) != trace_of(stream + "x")
