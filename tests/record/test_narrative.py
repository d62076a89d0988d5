from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.record.step import StepNarrative
from remit.record.story import EventStory, Narrative
from tests.opened import OpenRemit, until_waiting

JOB = "job_01m80d3wxwe00ba4m4adcs3210"


def told(*payloads: k.Payload, asked: dict[str, list[k.Payload]] | None = None) -> Narrative:
    """The story of events a second apart."""
    questions = {name: events(*found, start=100) for name, found in (asked or {}).items()}
    story = EventStory(events(k.JobCreated(kind="recipe", name="demo", principal="alice"), *payloads))
    for name, question in questions.items():
        story.ask(name, question)
    return story.narrative()


def events(*payloads: k.Payload, start: int = 0) -> list[Event]:
    return [
        Event(f"job/{JOB}", seq, one.KIND, (start + seq) * 1_000_000, k.encode(one), b"")
        for seq, one in enumerate(payloads, 1)
    ]


def only(story: Narrative) -> StepNarrative:
    (step,) = story.steps
    return step


def started(**fields: Any) -> k.ToolInvocationStarted:
    given = {"invocation_id": "i", "step": "1", "tool_name": "fs.read", "provider_id": "builtin", **fields}
    return k.ToolInvocationStarted(**given)


def finished(**fields: Any) -> k.ToolInvocationFinished:
    given: dict[str, Any] = {"invocation_id": "i", "step": "1", "outcome": "success", "duration_ms": 0.005, **fields}
    return k.ToolInvocationFinished(**given)


def test_a_call_names_its_tool_and_every_version() -> None:
    step = only(
        told(
            started(tool_version="2", request_schema_hash="sha256:a", rule_id="r"),
            finished(response_schema_hash="sha256:b"),
        )
    )
    invocation = step.tool_invocation
    assert invocation is not None
    assert (invocation.tool, invocation.provider, invocation.version) == ("fs.read", "builtin", "2")
    assert (invocation.request_schema_hash, invocation.response_schema_hash) == ("sha256:a", "sha256:b")
    assert (step.state, step.rule_id, step.started_at, step.ended_at) == ("ok", "r", 2_000_000, 3_000_000)


def test_every_attempt_is_told_with_its_outcome() -> None:
    error = k.ErrorInfo(code="TOOL_TIMEOUT", message="late")
    step = only(
        told(
            started(),
            finished(outcome="timeout", step_outcome="retryable_failure", error=error),
            started(attempt=2),
            finished(),
        )
    )
    assert [(one.number, one.outcome, one.code) for one in step.attempts] == [
        (1, "timeout", "TOOL_TIMEOUT"),
        (2, "success", ""),
    ]


def test_a_call_that_was_announced_and_never_ended_is_told_as_that() -> None:
    running, over = told(started()), told(started(repeatable=False), k.JobCancelled(by="bob"))
    assert only(running).state == "running"
    assert only(over).state == "unknown"
    assert over.cancelled_by == "bob"


def test_what_a_write_left_behind_is_told_and_a_read_leaves_nothing() -> None:
    def effect(*payloads: k.Payload) -> str | None:
        diff = only(told(*payloads)).state_diff
        return diff.effect if diff else None

    write = started(side_effect="write", repeatable=False, idempotency_key="key")
    lost = finished(outcome="timeout", step_outcome="uncertain", error=k.ErrorInfo(code="TOOL_TIMEOUT"))
    refused = finished(outcome="failure", step_outcome="permanent_failure", error=k.ErrorInfo(code="X"))
    assert effect(write, finished(step_outcome="side_effect_committed")) == "committed"
    assert effect(write) == "unknown"
    assert effect(write, lost) == "unknown"
    assert effect(write, refused) == "unknown", "its tool says that it failed, and no more"
    useless = finished(outcome="failure", step_outcome="permanent_failure", error=k.ErrorInfo(code="RESULT_INVALID"))
    unsent = finished(outcome="failure", error=k.ErrorInfo(code="TOOL_UNAVAILABLE", cause="SpawnFailed"))
    assert effect(write, useless) == "committed"
    assert effect(write, unsent) == "none"
    assert effect(started(), finished()) is None


def test_a_refused_call_is_told_with_code_rule_and_remedy() -> None:
    refused = k.GateRefused(
        step="1", tool_name="fs.write", code="POLICY_DENIED", reason="no", remedy="ask", rule_id="r", stage="allow"
    )
    step = only(told(refused))
    assert (step.name, step.state, step.code, step.rule_id) == ("tool.fs.write", "blocked", "POLICY_DENIED", "r")


def test_a_question_stands_at_its_step_with_who_when_and_what_they_saw() -> None:
    request = k.ConfirmationRequested(confirmation="c_1", step="1", digest="sha256:d", tool_name="fs.write")
    approved = k.ConfirmationDecided(confirmation="c_1", decision="approve", by="bob", digest="sha256:d", reason="ok")
    used = k.ConfirmationUsed(confirmation="c_1", invocation_id="i")
    wait = k.JobWaiting(step="1", wait_type="human", correlation_key="c_1", reason="approval")
    step = only(told(request, wait, asked={"c_1": [request, approved, used]}))
    assert (step.name, step.state) == ("tool.fs.write", "waiting")
    (asked,) = step.confirmations
    (decided,) = asked.decisions
    assert (asked.confirmation, asked.digest, asked.asked_at) == ("c_1", "sha256:d", 101_000_000)
    assert (decided.by, decided.at, decided.digest, decided.reason) == ("bob", 102_000_000, "sha256:d", "ok")
    assert asked.used_at == 103_000_000


def test_a_question_that_was_asked_after_the_job_was_read_is_left_out() -> None:
    request = k.ConfirmationRequested(confirmation="c_1", step="2", digest="sha256:d", tool_name="fs.write")
    assert only(told(started(), asked={"c_1": [request]})).confirmations == ()


def test_waits_are_told_with_who_ended_them() -> None:
    wait = k.JobWaiting(step="1", wait_type="signal", correlation_key="go", due_at=9)
    came = k.WaitCompleted(step="1", wait_type="signal", correlation_key="go", by="bob")
    step = only(told(wait, came))
    assert (step.name, step.state) == ("wait.signal", "ok")
    (waited,) = step.waits
    assert (waited.key, waited.since, waited.until, waited.due_at, waited.by) == ("go", 2_000_000, 3_000_000, 9, "bob")
    assert only(told(wait)).state == "waiting"


def test_clock_chance_and_children_are_steps_of_their_own() -> None:
    story = told(
        k.TimeRecorded(step="1", value=5),
        k.RandomRecorded(step="2", value=0.5),
        k.UuidRecorded(step="3", value="u"),
        k.ChildStarted(step="4", name="inner", version="1+a"),
    )
    assert [(step.name, step.result_preview) for step in story.steps] == [
        ("time", "5"),
        ("random", "0.5"),
        ("uuid", "u"),
        ("recipe.inner", ""),
    ]


def test_a_models_answer_is_told_with_the_model() -> None:
    answer = k.CommandCommitted(
        step="1", llm_model="m-1", llm_provider="p", llm_temperature=0.5, prompt_hash="sha256:p", token_count=7
    )
    model = only(told(answer)).llm_invocation
    assert model is not None
    assert (model.model, model.provider, model.temperature) == ("m-1", "p", 0.5)
    assert (model.prompt_hash, model.token_count) == ("sha256:p", 7)


def test_a_models_answer_is_told_in_its_words_and_the_calls_that_it_wants() -> None:
    call = {"type": "call", "id": "1-0", "name": "fs__read", "arguments": '{"path":"a"}'}
    answers: list[tuple[list[dict[str, str]], str]] = [
        ([{"type": "text", "text": "Let me\nlook."}, call], 'Let me look. calls fs.read {"path":"a"}'),
        ([{"type": "refusal", "text": "No."}], "No."),
        ([{"type": "text", "text": "The key is sk-live-0123456789abcdef0123."}], "The key is ********."),
    ]
    for blocks, words in answers:
        result = msgspec.Raw(msgspec.json.encode({"role": "assistant", "blocks": blocks}))
        assert only(told(k.CommandCommitted(step="1", result=result))).result_preview == words


def test_recoveries_and_drifts_are_told() -> None:
    story = told(
        started(),
        k.RecoveryStarted(owner="new", previous_owner="old"),
        k.VersionMismatchRecorded(subject="execution", recorded="1", current="2", policy="warn"),
        k.SchemaDriftRecorded(tool_name="fs.read", recorded="a", current=""),
        k.RecoveryCompleted(replayed_steps=3),
    )
    (recovery,) = story.recoveries
    assert (recovery.at, recovery.owner, recovery.previous_owner) == (3_000_000, "new", "old")
    assert recovery.replayed_steps == 3
    assert [(one.subject, one.recorded, one.current) for one in story.drifts] == [
        ("execution", "1", "2"),
        ("fs.read", "a", ""),
    ]


def test_the_end_is_told() -> None:
    failed = told(k.JobFailed(error=k.ErrorInfo(code="X", message="y")))
    assert failed.error is not None
    assert (failed.error.code, failed.ended_at, failed.events) == ("X", 2_000_000, 2)
    assert told().ended_at is None


def test_nothing_is_told_of_nothing_and_unknown_events_are_passed_over() -> None:
    assert EventStory().narrative().steps == ()
    stranger = Event(f"job/{JOB}", 2, "invented_later", 2, b'{"step": "9"}', b"")
    assert EventStory([*events(k.JobCreated(kind="recipe", name="demo")), stranger]).narrative().steps == ()


def test_secrets_are_masked() -> None:
    args = msgspec.Raw(b'{"api_key":"sk-live-0123456789abcdef0123"}')
    assert "sk-live" not in only(told(started(args=args))).args_preview


# --- untrusted arguments

ACCOUNT = k.UntrustedArgument(path="iban", role="iban", value="DE89", seen="untrusted", tool="mail.read", step="2")
FOUND = msgspec.Raw(msgspec.json.encode([ACCOUNT]))
REQUEST = k.ConfirmationRequested(
    confirmation="c_1", step="1", digest="sha256:d", tool_name="bank.pay", untrusted=FOUND
)


def decided(decision: Any, by: str = "bob") -> k.ConfirmationDecided:
    return k.ConfirmationDecided(confirmation="c_1", decision=decision, by=by)


def refused(code: str, **fields: Any) -> k.GateRefused:
    return k.GateRefused(step="1", tool_name="bank.pay", code=code, reason="no", stage="origins", **fields)


@pytest.mark.parametrize(
    ("events", "answers", "words"),
    [
        ([started(untrusted=FOUND, rule_id="pay")], [], "rule pay allowed it"),
        ([started(untrusted=FOUND, confirmation="c_1")], [decided("approve"), decided("approve", "eve")],
         "approved by bob, eve"),
        ([REQUEST], [], "a person is asked"),
        ([REQUEST], [decided("deny")], "denied by bob"),
        ([refused("CONFIRMATION_DENIED", untrusted=FOUND)], [decided("deny")], "denied by bob"),
        ([refused("CONFIRMATION_EXPIRED", untrusted=FOUND)], [decided("expire")], "no one answered in time"),
        ([refused("UNTRUSTED_ARGUMENT", untrusted=FOUND, rule_id="taint:pay")], [], "denied by rule taint:pay"),
        ([refused("TOOL_UNAVAILABLE", untrusted=FOUND)], [], ""),
    ],
)  # fmt: skip
def test_what_nobody_trusted_had_named_is_told_with_what_was_decided(
    events: list[k.Payload], answers: list[k.Payload], words: str
) -> None:
    wait = k.JobWaiting(step="1", wait_type="human", correlation_key="c_1", reason="approval")
    asked = {"c_1": [REQUEST, *answers]} if answers or events == [REQUEST] else {}
    untrusted = only(told(wait, *events, asked=asked)).untrusted
    assert untrusted is not None
    assert (untrusted.arguments, untrusted.verdict) == ((ACCOUNT,), words)


def test_secrets_among_untrusted_arguments_are_masked() -> None:
    secret = msgspec.structs.replace(ACCOUNT, value="https://x.example/?token=ghp_0123456789abcdef0123456789")
    untrusted = only(told(started(untrusted=msgspec.Raw(msgspec.json.encode([secret]))))).untrusted
    assert untrusted is not None
    assert "ghp_0123" not in untrusted.arguments[0].value


# --- of a real job


@tool("story.write", version="7")
def write(text: str) -> str:
    """Write."""
    return text.upper()


@recipe("story", version="3")
async def story_of(run: Run) -> str:
    """Write, which asks."""
    return str((await run.call("story.write", {"text": "x"})).value)


async def approved(remit: Remit) -> str:
    job = await remit.start(story_of())
    await until_waiting(remit, job.id)
    (question,) = await job.questions()
    edited = await remit.service.confirmations.edit(question.confirmation, {"text": "y"}, by="bob")
    await remit.service.confirmations.decide(edited.confirmation, "approve", by="eve", reason="fine")
    assert await job == "Y"
    return job.id


async def test_the_story_of_an_edited_and_approved_call(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[story_of]) as remit:
        story = await remit.service.streams.narrative(await approved(remit))
    (step,) = story.steps
    assert (story.name, story.principal, story.result_preview) == ("story", "alice", '"Y"')
    assert story.execution_version.startswith("3+")
    assert story.tool_registry_version.startswith("sha256:")
    first, second = step.confirmations
    assert [(one.decision, one.by) for one in first.decisions] == [("edit", "bob")]
    assert (second.edited_from, second.decisions[0].by) == (first.confirmation, "eve")
    assert second.used_at is not None
    assert all(wait.until is not None for wait in step.waits), "every wait has its end"
    assert step.args_preview == '{"text":"y"}', "what ran, not what was asked for"
    assert step.tool_invocation is not None
    assert step.tool_invocation.version == "7"


async def test_a_call_that_runs_while_the_story_is_read_is_not_told_as_allowed_by_nobody(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(tools=[write], recipes=[story_of]) as remit:
        job = await remit.start(story_of())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        journal, read = remit.runtime.journal, remit.runtime.journal.read

        async def runs_meanwhile(stream: str, after: int = 0) -> list[Event]:
            found = await read(stream, after)
            if stream.endswith(question.confirmation):
                monkeypatch.setattr(journal, "read", read)
                await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
                await remit.ended(job.id)
            return found

        monkeypatch.setattr(journal, "read", runs_meanwhile)
        step = only(await remit.service.streams.narrative(job.id))
        assert (step.state, step.attempts, step.confirmations[0].decisions) == ("waiting", (), ())
        step = only(await remit.service.streams.narrative(job.id))
        assert (step.state, [one.by for one in step.confirmations[0].decisions]) == ("ok", ["bob"])


def test_a_wait_says_what_came_and_what_a_person_decided() -> None:
    waits: dict[str, Any] = {"step": "1", "wait_type": "human", "correlation_key": "uncertain:1"}
    decided = msgspec.Raw(b'{"decision":"done","value":"rf_A17","reason":"seen at the bank"}')
    step = only(
        told(
            started(side_effect="write"),
            k.JobWaiting(reason="it may have happened", **waits),
            k.WaitCompleted(payload=decided, by="root", **waits),
            finished(decided_by="root"),
        )
    )
    (waited,) = step.waits
    assert (waited.by, waited.decision, waited.because) == ("root", "done", "seen at the bank")
    signal: dict[str, Any] = {"step": "2", "wait_type": "signal", "correlation_key": "go"}
    step = only(told(k.JobWaiting(**signal), k.WaitCompleted(payload=msgspec.Raw(b'{"x":1}'), by="root", **signal)))
    assert (step.waits[0].answer, step.waits[0].decision) == ('{"x":1}', "")
