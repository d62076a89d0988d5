"""W3C Trace Context: what is taken from a client, and what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.http.trace_context import TraceContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header", [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"cc-{TRACE}-{SPAN}-01-what-comes"]
)
def test_a_trace_that_a_client_names_is_gone_on_with(header: str) -> None:
    context = TraceContext.of(header)
    assert context.named
    assert context.trace_id == TRACE
    assert context.span_id != SPAN, "the server's span is its own"
    assert context.header == f"00-{TRACE}-{context.span_id}-01"


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_the_standard_calls_invalid_begins_a_new_trace(header: str) -> None:
    one, other = TraceContext.of(header), TraceContext.of(header)
    assert not one.named
    assert len({one.trace_id, other.trace_id, TRACE}) == 3


@given(st.text())
def test_any_header_gives_a_trace_in_the_standard_form(header: str) -> None:
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", TraceContext.of(header).header)
