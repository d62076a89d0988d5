"""RecordOutcome: the result is checked, its evidence kept, and the outcome of the call recorded."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.journal.kinds import EvidenceAttached, SchemaGateWarned, ToolInvocationFinished
from remit.tools.meta import Level, Retry
from remit.tools.provider import EvidenceCandidate, ToolResult
from tests.gateway.samples import ALLOW, add
from tests.gateway.world import odd, opened


async def test_the_outcome_and_the_record_agree() -> None:
    async with opened(add) as world:
        outcome = await world.call("math.add", {"a": 1, "b": 2})
        tool, _ = await world.catalog.resolve("math.add", {})
        assert (outcome.status, outcome.value, outcome.code, outcome.evidence) == ("ok", 3, None, ())
        finished = await world.last(ToolInvocationFinished)
        assert finished == ToolInvocationFinished(
            invocation_id=outcome.invocation_id or "",
            step="1",
            outcome="success",
            step_outcome="pure",
            result=finished.result,
            response_schema_hash=tool.output.hash if tool.output else "",
            duration_ms=outcome.duration_us / 1_000,
        )
        assert await world.value(finished, "result") == 3


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (None, None),
        ((1, (2,)), [1, [2]]),
        ({1: "a"}, {"1": "a"}),
        (float("nan"), None),
        (2**70, 2**70),
        ({"z": 1, "a": 1.0, "ü": True}, {"z": 1, "a": 1.0, "ü": True}),
    ],
)
async def test_the_value_is_what_a_replay_would_give(value: Any, given: Any) -> None:
    async with opened(odd(lambda _a, _c: ToolResult(value))) as world:
        outcome = await world.call()
        assert outcome.value == given
        assert repr(await world.value(await world.last(ToolInvocationFinished), "result")) == repr(outcome.value)


async def test_the_value_is_not_the_providers_own() -> None:
    kept = {"list": [1]}
    async with opened(odd(lambda _a, _c: ToolResult(kept))) as world:
        (await world.call()).value["list"].append(2)
        assert kept == {"list": [1]}


async def test_a_large_value_is_kept_by_digest_and_given_whole() -> None:
    value = ["x" * 1_000] * 50
    async with opened(odd(lambda _a, _c: ToolResult(value))) as world:
        assert (await world.call()).value == value
        finished = await world.last(ToolInvocationFinished)
        assert finished.result_blob.bytes > 50_000  # type: ignore[union-attr] # set, as the next line shows
        assert await world.value(finished, "result") == value


async def test_a_result_that_a_warning_gate_let_pass_stands_in_the_record() -> None:
    async with opened(
        odd(lambda _a, _c: ToolResult("x"), output_schema={"type": "integer"}), schema_gate="warn"
    ) as world:
        outcome = await world.call()
        assert outcome.value == "x"
        assert await world.kinds() == ["tool_invocation_started", "schema_gate_warned", "tool_invocation_finished"]
        warned = await world.last(SchemaGateWarned)
        assert (warned.boundary, warned.warn_codes, warned.invocation_id) == (
            "call_result",
            ("type_mismatch",),
            outcome.invocation_id,
        )


def raises(error: BaseException) -> Any:
    def behave(_args: Any, _ctx: Any) -> ToolResult:
        raise error

    return behave


TWICE: dict[str, Any] = {"retry": Retry(attempts=2)}
AGAIN: dict[str, Any] = {"tries_again": True}


@pytest.mark.parametrize(
    ("behave", "level", "changes", "asked", "outcome", "step_outcome"),
    [
        (lambda _a, _c: ToolResult(1), Level.L0, {}, {}, "success", "pure"),
        (lambda _a, _c: ToolResult(1), Level.L1, {}, {}, "success", "side_effect_committed"),
        (raises(ValueError("no")), Level.L1, TWICE, AGAIN, "failure", "permanent_failure"),
        (raises(TimeoutError()), Level.L1, TWICE, AGAIN, "timeout", "uncertain"),
        (raises(TimeoutError()), Level.L1, TWICE | {"idempotent": True}, AGAIN, "timeout", "retryable_failure"),
        (raises(TimeoutError()), Level.L1, TWICE | {"idempotent": True}, {}, "timeout", "permanent_failure"),
        (raises(TimeoutError()), Level.L1, {"idempotent": True}, AGAIN, "timeout", "permanent_failure"),
        (raises(TimeoutError()), Level.L0, TWICE, AGAIN, "timeout", "retryable_failure"),
        (raises(TimeoutError()), Level.L0, TWICE, AGAIN | {"attempt": 2}, "timeout", "permanent_failure"),
        (raises(ConnectionError()), Level.L1, {}, {}, "failure", "uncertain"),
        (raises(ConnectionError()), Level.L0, TWICE, AGAIN, "failure", "retryable_failure"),
    ],
)
async def test_what_a_step_came_to(
    behave: Any, level: Level, changes: dict[str, Any], asked: dict[str, Any], outcome: str, step_outcome: str
) -> None:
    async with opened(odd(behave, level, **changes), rules=[ALLOW]) as world:
        given = await world.call(**asked)
        finished = await world.last(ToolInvocationFinished)
        assert (finished.outcome, finished.step_outcome) == (outcome, step_outcome)
        assert given.uncertain is (step_outcome == "uncertain")
        repeated_by = "odd" if level else ""
        assert given.again == (repeated_by if step_outcome == "retryable_failure" else None)


async def test_an_error_is_recorded_as_it_is_given() -> None:
    error = ProviderError("no such branch", cause=Code.AuthError)
    async with opened(odd(raises(error))) as world:
        outcome = await world.call()
        recorded = (await world.last(ToolInvocationFinished)).error
        assert recorded is not None
        assert (recorded.code, recorded.message, recorded.remedy) == (
            "TOOL_EXEC_FAILED",
            outcome.reason,
            outcome.remedy,
        )
        assert (recorded.cause, recorded.retryable) == ("AuthError", False)


async def test_a_session_is_durable_before_its_result_leaves_the_process() -> None:
    async with opened(add) as world:
        await world.call("math.add", {"a": 1, "b": 2}, leaves=True)
        assert world.store.diary[-1] == "durable tool_invocation_finished"
        await world.call("math.add", {"a": 1, "b": 2}, step="2")
        assert world.store.diary[-1] == "submitted tool_invocation_finished"


async def test_evidence_is_recorded_with_the_outcome_and_before_it() -> None:
    candidate = EvidenceCandidate(kind="tool_output", source="fs:x", retrieved_at=5, text="found", metadata={"n": (1,)})
    async with opened(odd(lambda _a, _c: ToolResult(1, (candidate,)))) as world:
        outcome = await world.call()
        assert world.store.diary[-1] == "submitted evidence_attached+tool_invocation_finished"
        attached = await world.last(EvidenceAttached)
        assert (attached.invocation_id, attached.step) == (outcome.invocation_id, "1")
        assert (await world.last(ToolInvocationFinished)).evidence == len(outcome.evidence) == 1
        assert outcome.evidence[0].metadata == {"n": [1]}
        assert attached.items[0]["inline"] == "found"


async def test_a_failed_call_has_no_evidence() -> None:
    candidate = EvidenceCandidate(kind="", source="", retrieved_at=0)
    async with opened(odd(lambda _a, _c: ToolResult(1, (candidate,)))) as world:
        outcome = await world.call()
        assert (outcome.status, outcome.code, outcome.evidence) == ("blocked", Code.INVALID_EVIDENCE_CANDIDATE, ())
        assert outcome.value is None
        assert await world.kinds() == ["tool_invocation_started", "tool_invocation_finished"]
