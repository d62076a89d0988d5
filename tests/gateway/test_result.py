"""What a provider gave, made fit to be recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.codes import Code
from remit.gateway.call_limits import CallLimits
from remit.gateway.result import CheckedResult, ResultCheck, _too_deep, words
from remit.gateway.schema_gate import SchemaGate
from remit.metrics import Registry
from remit.tools.provider import EvidenceCandidate, ToolResult
from remit.tools.tool import Tool, admit
from remit_testing.clock import ManualClock
from tests.gateway.world import meta, odd


def tool(**changes: Any) -> Tool:
    provider = odd(lambda _args, _ctx: None)
    return admit(meta(**changes), provider, closed=True)


def check(result: object, *, of: Tool | None = None, **limits: Any) -> CheckedResult:
    given = CallLimits(**limits)
    return ResultCheck(given, ManualClock(), SchemaGate(given.schema_gate, Registry())).check(of or tool(), result)


def code(result: object, *, of: Tool | None = None, **limits: Any) -> Code | None:
    failure = check(result, of=of, **limits).failure
    return failure.code if failure else None


def nested(levels: int, *, wide: bool = False) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else ([value, 1, "[["] if wide else [value])
    return value


@dataclass
class Hostile:
    """Raises when JSON is made of it."""

    x: int = 1

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no")

    @property
    def __dict__(self) -> Any:  # type: ignore[override] # on purpose
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [object(), {"a": {1, object()}}, {(1, 2): 3}, 1j, "\ud800", msgspec.Raw(b"not json"), msgspec.Raw(b'"\xff"')],
    ids=["object", "in a set", "tuple as key", "complex", "surrogate", "raw", "raw bytes"],
)
def test_what_json_cannot_hold_is_a_failure(value: Any) -> None:
    assert code(ToolResult(value)) is Code.RESULT_NOT_ENCODABLE


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_number_that_is_not_finite_is_a_failure_with_its_place(value: float) -> None:
    failure = check(ToolResult({"count": 0, "rows": [{"mean": value}]})).failure
    assert failure is not None
    assert failure.code is Code.RESULT_NOT_ENCODABLE
    assert "$.rows[0].mean is NaN or infinite" in failure.reason
    assert failure.remedy == "Use None or a string."


def test_a_value_that_raises_when_it_is_looked_at_is_a_failure_or_a_value() -> None:
    checked = check(ToolResult(Hostile()))
    assert checked.failure is None or checked.failure.code is Code.RESULT_NOT_ENCODABLE


@pytest.mark.parametrize("wide", [False, True])
def test_a_value_may_be_as_deep_as_every_reader_takes_and_no_deeper(wide: bool) -> None:
    assert code(ToolResult(nested(200, wide=wide))) is None
    assert code(ToolResult(nested(201, wide=wide))) is Code.RESULT_NOT_ENCODABLE
    assert code(ToolResult(nested(600))) is Code.RESULT_NOT_ENCODABLE


@pytest.mark.parametrize("levels", [201, 600])
def test_what_is_too_deep_in_the_value_of_a_stranger_costs_itself(levels: int) -> None:
    checked = check(ToolResult({"deep": nested(levels), "flat": 1}, (), {"half_pair": 1}))
    assert checked.failure is None
    assert (checked.value["flat"], checked.repaired) == (1, {"half_pair": 1, "too_deep": 1})
    assert not _too_deep(checked.encoded)


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    assert code(ToolResult([[] for _ in range(1_000)])) is None
    assert code(ToolResult(["[" * 1_000, '\\"[[' * 200])) is None


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.recursive(st.none() | st.text('[]{}"\\,'), lambda i: st.lists(i) | st.dictionaries(st.text('[]{}"\\'), i)))
def test_depth_does_not_depend_on_what_strings_hold(value: Any) -> None:
    assert not _too_deep(msgspec.json.encode([value, "[" * 300]))


def test_a_result_of_exactly_the_limit_passes() -> None:
    assert code(ToolResult("x" * 98), max_value_bytes=100) is None
    assert code(ToolResult("x" * 99), max_value_bytes=100) is Code.RESULT_TOO_LARGE


def test_a_result_against_its_schema() -> None:
    strict = tool(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    assert code(ToolResult({"n": 1, "more": True}), of=strict) is None
    failure = check(ToolResult({"n": "one"}), of=strict).failure
    assert failure is not None
    assert (failure.code, failure.status) == (Code.RESULT_INVALID, "failed")
    assert "/n" in failure.reason
    assert "type_mismatch" in failure.reason


def test_a_warning_gate_reports_and_an_open_one_does_not_look(caplog: pytest.LogCaptureFixture) -> None:
    typed = tool(output_schema={"type": "integer"})
    with caplog.at_level(logging.WARNING, "remit.gateway"):
        assert code(ToolResult("x"), of=typed, schema_gate="off") is None
        assert not caplog.text
        checked = check(ToolResult("x"), of=typed, schema_gate="warn")
    assert (checked.failure, checked.value) == (None, "x")
    assert "schema_gate_warn tool=odd.tool boundary=call_result" in caplog.text


@pytest.mark.parametrize("evidence", [5, "text", {"kind": "x"}, iter([1])])
def test_evidence_is_a_list_of_candidates(evidence: Any) -> None:
    assert code(ToolResult(1, evidence)) is Code.INVALID_EVIDENCE_CANDIDATE


def test_one_bad_candidate_spoils_the_result() -> None:
    good = EvidenceCandidate(kind="a", source="b", retrieved_at=1)
    assert code(ToolResult(1, (good, good))) is None
    assert code(ToolResult(1, (good, "bad"))) is Code.INVALID_EVIDENCE_CANDIDATE  # type: ignore[arg-type] # on purpose
    assert len(check(ToolResult(1, [good] * 3)).evidence.items) == 3  # type: ignore[arg-type] # a list will do


def test_a_failure_does_not_carry_the_value() -> None:
    assert check(ToolResult("x" * 99), max_value_bytes=10).value is None


def test_words_of_an_error() -> None:
    class Mute(Exception):  # noqa: N818 - a name for this test
        def __str__(self) -> str:
            raise ValueError

    assert words(ValueError("why")) == "ValueError: why"
    assert words(ValueError()) == "ValueError"
    assert words(Mute()) == "Mute"
