"""Two requests are the same by the listed rules, and by nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from remit.parts.model_gateway.canonical import RULES, Identity, first_difference, identity

ROOTS: Final = {"/home/ann/shop": "<work>", "/home/ann": "<home>"}


def of(body: Any, **how: Any) -> Identity:
    """Return what a request is."""
    return identity("POST", "/v1/messages", json.dumps(body).encode(), roots=ROOTS, **how)


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def told(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": text, **more}]}]}


SAME: Final[list[tuple[str, Any, Any]]] = [
    ("fields", {"metadata": {"user_id": "a"}}, {"metadata": {"user_id": "b"}}),
    ("fields", {"client_metadata": {"turn": 1}, "prompt_cache_key": "x"}, {}),
    ("cache marks", {"system": [{"text": "a", "cache_control": {"type": "ephemeral"}}]}, {"system": [{"text": "a"}]}),
    ("item ids", {"input": [{"type": "reasoning", "id": "rs_1"}]}, {"input": [{"type": "reasoning", "id": "rs_2"}]}),
    ("ids", {"messages": [{"tool_call_id": "call_a"}]}, {"messages": [{"tool_call_id": "call_b"}]}),
    ("ids", {"messages": [{"signature": "EqQB"}]}, {"messages": [{"signature": "Abc"}]}),
    ("roots", said("in /home/ann/shop"), said("in <work>")),
    ("roots", said("memory of -home-ann-shop"), said("memory of <work>")),
    ("dates", said("Today's date is 2026-11-25."), said("Today's date is 2027-01-02.")),
    ("dates", said("Today's date is Wednesday, November 25, 2026"), said("Today's date is Friday, January 1, 2027")),
    ("dates", said("Today's date: Wed Nov 25 2026"), said("Today's date: Fri Jan 01 2027")),
    ("dates", said("The current month is November 2026."), said("The current month is May 2027.")),
    ("dates", said("<current_date>2026-11-25</current_date>"), said("<current_date>2026-12-01</current_date>")),
    ("dates", said("<timezone>Europe/Bern</timezone>"), said("<timezone>UTC</timezone>")),
    ("uuids", said("6f1c2c1e-7a3b-4f0e-9f5a-0b8d7a6c5e4f"), said("11111111-7a3b-4f0e-9f5a-0b8d7a6c5e4f")),
    ("wrappers", told("Chunk ID: 2a0113\nok"), told("Chunk ID: ffff\nok")),
    ("wrappers", told("Wall time: 0.0023 seconds\nok"), told("Wall time: 1.5 seconds\nok")),
    ("wrappers", told("Process Group PGID: 22884"), told("Process Group PGID: 7")),
    ("lists", {"tools": [{"enum": ["a", "b"]}]}, {"tools": [{"enum": ["b", "a"]}]}),
    ("lists", said("(Available: 'a', 'b')"), said("(Available: 'b', 'a')")),
    ("lists", said("<skill>a</skill>\n<skill>b</skill>"), said("<skill>b</skill>\n<skill>a</skill>")),
]


@pytest.mark.parametrize(("rule", "one", "other"), SAME)
def test_a_rule_takes_away_what_a_client_makes_up(rule: str, one: Any, other: Any) -> None:
    assert of(one).digest == of(other).digest
    rules = of(one).rules | of(other).rules
    assert rule in rules
    assert rules <= RULES.keys()


DIFFERENT: Final[list[tuple[Any, Any]]] = [
    (said("on 2026-11-25"), said("on 2026-11-26")),
    (said("hi"), said("ho")),
    (
        {"messages": [{"tool_call_id": "a"}, {"tool_call_id": "a"}]},
        {"messages": [{"tool_call_id": "a"}, {"tool_call_id": "b"}]},
    ),
    (
        {"messages": [{"type": "tool_use", "input": {"id": "1"}}]},
        {"messages": [{"type": "tool_use", "input": {"id": "2"}}]},
    ),
    ({"messages": [{"functionCall": {"args": {"id": "1"}}}]}, {"messages": [{"functionCall": {"args": {"id": "2"}}}]}),
    ({"tools": [{"parameters": {"user": 1}}]}, {"tools": [{"parameters": {"user": 2}}]}),
    ({"stream": True}, {"stream": False}),
    (told("a"), told("b")),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_was_asked_stays(one: Any, other: Any) -> None:
    assert of(one).digest != of(other).digest


def test_the_order_of_keys_does_not_count() -> None:
    one, other = b'{"a":{"id":"x"},"b":{"id":"y"}}', b'{"b":{"id":"p"},"a":{"id":"q"}}'
    assert identity("POST", "/x", one).digest == identity("POST", "/x", other).digest


def test_method_route_and_model_count() -> None:
    requests = [("POST", "/x", b'{"model":"m"}'), ("POST", "/y", b'{"model":"m"}'), ("PUT", "/x", b'{"model":"m"}')]
    digests = {identity(*request).digest for request in (*requests, ("POST", "/x", b'{"model":"n"}'))}
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (told("a"), told("b"), True),
        (told("a", is_error=True), told("a", is_error=False), False),
        (told("Exit code 0"), told("Exit code 3"), False),
        (
            {"input": [{"type": "function_call_output", "output": "a"}]},
            {"input": [{"type": "function_call_output", "output": "b"}]},
            True,
        ),
        ({"messages": [{"role": "tool", "content": "a"}]}, {"messages": [{"role": "tool", "content": "b"}]}, True),
        (
            {"x": [{"functionResponse": {"name": "t", "response": {"o": 1}}}]},
            {"x": [{"functionResponse": {"name": "t", "response": {"o": 2}}}]},
            True,
        ),
    ],
)
def test_results_set_aside_keep_their_exit_code_and_error_flag(one: Any, other: Any, same: bool) -> None:
    assert (of(one, results="aside").digest == of(other, results="aside").digest) is same
    assert of(one).digest != of(other).digest


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_object_counts_by_its_bytes(body: bytes) -> None:
    found = identity("POST", "/x", body)
    assert (found.value, found.digest == identity("POST", "/x", body + b" ").digest) == (None, False)


def test_a_stream_may_be_left_out() -> None:
    assert of({"stream": True}, streams=False).digest == of({}, streams=False).digest


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "$.a[1].b"),
        ({"a": [1]}, {"a": [1, 2]}, "$.a[1]"),
        ({"a": 1}, {"b": 1}, "$.a"),
    ],
)
def test_the_first_difference_has_its_place(one: Any, other: Any, path: str) -> None:
    found = first_difference(one, other)
    assert found is not None
    assert found.path == path
    assert first_difference(one, one) is None


def test_a_long_text_is_shown_where_it_differs() -> None:
    found = first_difference("x" * 1_000 + "one", "x" * 1_000 + "two")
    assert found is not None
    assert (found.recorded[-3:], found.now[-3:]) == ("one", "two")
    assert len(found.recorded) < 100
