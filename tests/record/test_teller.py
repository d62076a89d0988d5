from __future__ import annotations

from typing import Any

import pytest

from remit.journal import kinds as k
from tests.record.test_narrative import finished, only, started, told


def asked_model(**fields: Any) -> k.CommandStarted:
    return k.CommandStarted(invocation_id="i", step="1", llm_provider="p", llm_model="m", **fields)


def broke(again_ms: int | None, **fields: Any) -> k.CommandCommitted:
    error = k.ErrorInfo(code="MODEL_CUT", message="it broke off", remedy="wait")
    return k.CommandCommitted(
        step="1", llm_provider="p", llm_model="m", outcome="failure", error=error, again_ms=again_ms, **fields
    )


MODEL_WAIT = k.JobWaiting(step="1", wait_type="timer", correlation_key="retry:2", due_at=9)
ANSWERED = k.CommandCommitted(
    step="1", llm_provider="p", llm_model="m", input_tokens=7, output_tokens=3, token_count=10, cost=0.5,
    finish_reason="end", duration_ms=2.0, attempt=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("payloads", "state", "code"),
    [
        ([asked_model()], "running", ""),
        ([asked_model(), broke(500), MODEL_WAIT], "waiting", ""),
        ([asked_model(), broke(None)], "failed", "MODEL_CUT"),
        ([asked_model(), k.JobCancelled()], "unknown", ""),
        ([asked_model(), ANSWERED], "ok", ""),
        (
            [k.GateRefused(step="1", tool_name="p", code="POLICY_DENIED", reason="no", model_call=True)],
            "blocked",
            "POLICY_DENIED",
        ),
    ],
)
def test_a_question_to_a_model_is_told_as_it_stands(payloads: list[k.Payload], state: str, code: str) -> None:
    step = only(told(*payloads))
    assert (step.state, step.code) == (state, code)


def test_every_attempt_at_a_model_is_told_with_its_fault_and_what_the_answer_took() -> None:
    first = asked_model(added=(k.MessageKept(digest="sha256:a"),))
    step = only(told(first, broke(500), MODEL_WAIT, asked_model(attempt=2), ANSWERED))
    assert [(one.number, one.outcome, one.code, one.again_ms) for one in step.attempts] == [
        (1, "failure", "MODEL_CUT", 500),
        (2, "success", "", None),
    ]
    assert (step.duration_us, step.args_preview) == (2_000, "1 new message")
    invocation = step.llm_invocation
    assert invocation is not None
    assert invocation.words == "7 tokens in, 3 out, $0.5, end"
    assert [waited.key for waited in step.waits] == ["retry:2"]


def test_a_retry_tells_when_the_other_job_did_what_it_took_over() -> None:
    taken = [k.TimeRecorded(step="1", value=5), started(step="2"), finished(step="2")]
    forked = k.JobForked(job="job_other", seq=9, hash="", step="3", taken=3, times=(1_000, 10, 20))
    story = told(forked, *taken, started(step="3"))
    assert [(step.step, step.taken_from, step.started_at, step.ended_at) for step in story.steps] == [
        ("1", "job_other", 1_000, 1_000),
        ("2", "job_other", 1_010, 1_030),
        ("3", "", 6_000_000, None),
    ]
    assert [segment.kind for segment in story.segments] == ["queued", "working"]


def test_what_undoes_a_step_does_not_lengthen_it() -> None:
    story = told(
        started(side_effect="write"),
        finished(),
        k.UndoDeclared(step="1", tool_name="x.undo"),
        k.CompensationStarted(step="2", steps=("1",)),
        k.StepCompensated(step="1", undo_step="undo:1"),
        k.CompensationCompleted(step="2", undone=("1",)),
    )
    undone, compensates = story.steps
    assert (undone.ended_at, undone.undone) == (3_000_000, "compensated")
    assert (compensates.name, compensates.state, compensates.ended_at) == ("compensate", "ok", 7_000_000)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (
            k.VersionMismatchRecorded(subject="tool", tool_name="fs.read", recorded="1", current="2", policy="warn"),
            "fs.read, version",
        ),
        (k.SchemaDriftRecorded(tool_name="fs.read", recorded="a", current="b"), "fs.read, schema of the arguments"),
    ],
)
def test_a_drift_names_the_tool_that_changed_and_marks_its_steps(payload: k.Payload, words: str) -> None:
    story = told(started(), finished(), payload)
    assert [drift.words for drift in story.drifts] == [words]
    assert only(story).drifts == story.drifts


def test_a_drift_of_a_model_marks_the_step_that_asked_it() -> None:
    drift = k.ModelDriftRecorded(step="1", prompt_hash="h", subject="model", recorded="p/m", current="p/n")
    step = only(told(asked_model(), ANSWERED, drift))
    assert [one.words for one in step.drifts] == ["model of step 1"]


def test_a_question_to_a_model_of_a_server_has_the_name_that_settings_and_prices_have() -> None:
    question = asked_model(llm_url="http://127.0.0.1:1/v1")
    assert only(told(question)).name == "model.p:http://127.0.0.1:1/v1#m"
