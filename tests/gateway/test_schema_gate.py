"""The schema gate, at any boundary."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from remit.codes import Code
from remit.gateway.schema_gate import CALL_ARGS, CALL_RESULT, Boundary, Mode, SchemaGate
from remit.metrics import Registry
from remit.tools.schema import compile_schema

SCHEMA = compile_schema(
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]}, closed=True
)
WRONG = {"a": "secret", "c": 1}
TICKET = Boundary("ticket_create", "ingress", "TRIAGE")


def numbers(registry: Registry, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of its labels."""
    (family,) = [each for each in registry.collect() if each.name == name]
    return {tuple(value for _, value in sample.labels): sample.value for sample in family.samples}


@pytest.mark.parametrize("mode", ["off", "warn", "strict"])
def test_what_fits_passes_in_every_mode_and_is_not_counted(mode: Mode) -> None:
    registry = Registry()
    assert SchemaGate(mode, registry).check(CALL_ARGS, SCHEMA, {"b": 1}, "x.y") is None
    assert all(family.samples == () for family in registry.collect())


def test_an_open_gate_does_not_look() -> None:
    assert SchemaGate("off", Registry()).check(CALL_ARGS, SCHEMA, WRONG, "x.y") is None


def test_a_warning_gate_counts_each_problem_and_lets_pass(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    with caplog.at_level(logging.WARNING, "remit.gateway"):
        misfit = SchemaGate("warn", registry).check(TICKET, SCHEMA, WRONG, "t1")
    assert misfit is not None
    assert not misfit.rejected
    assert sorted(misfit.codes) == ["missing", "type_mismatch", "unknown_field"]
    assert numbers(registry, "schema_warning_total") == {
        (code, "TRIAGE", "ingress", "ticket_create"): 1 for code in misfit.codes
    }
    assert numbers(registry, "schema_strict_reject_total") == {}
    assert "schema_gate_warn TRIAGE=t1 boundary=ticket_create direction=ingress: " in caplog.text
    assert "secret" not in caplog.text


def test_a_strict_gate_refuses_and_counts_the_refusal_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    with caplog.at_level(logging.INFO, "remit.gateway"):
        misfit = SchemaGate("strict", registry).check(CALL_ARGS, SCHEMA, WRONG, "x.y")
    assert misfit is not None
    assert misfit.rejected
    assert numbers(registry, "schema_strict_reject_total") == {("tool", "internal", "call_args"): 1}
    assert numbers(registry, "schema_warning_total") == {}
    assert "schema_gate_reject tool=x.y boundary=call_args" in caplog.text


@pytest.mark.parametrize("mode", ["warn", "strict"])
def test_the_value_is_never_changed(mode: Mode) -> None:
    value: dict[str, Any] = {"a": "x", "c": [1]}
    SchemaGate(mode, Registry()).check(CALL_RESULT, SCHEMA, value, "x.y")
    assert value == {"a": "x", "c": [1]}


def test_every_boundary_has_its_code() -> None:
    assert (CALL_ARGS.code, CALL_RESULT.code) == (Code.INVALID_TOOL_ARGS, Code.RESULT_INVALID)
    assert TICKET.code is Code.SCHEMA_VALIDATION_FAILED
