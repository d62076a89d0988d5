from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit import Job, Remit, Run, recipe, tool
from remit.app import JobEndedError
from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.journal.erasure import erase
from remit.models.arguments import sent
from remit.models.message import Message, ToolCall, ToolMessage, results, user
from remit.models.openai_messages import from_openai, to_openai
from remit.models.thread import EMPTY
from remit.parts.agents.recipes import agent, conversation
from remit.service.options import Options
from remit.settings import Settings, load


@tool("notes.read", level="L0")
async def read(name: str) -> str:
    """Read a note."""
    return name * 20_000


@tool("notes.write", level="L1")
async def write(text: str) -> str:
    """Write a note, which asks."""
    return f"wrote {text}"


def _scripted(folder: Path, *script: Any) -> Settings:
    (folder / "script.yaml").write_bytes(msgspec.json.encode(script))
    flags = {"models.default": "scripted:script.yaml", "journal.url": str(folder / "j.db")}
    return load(cwd=folder, file=None, env={}, flags=flags)


def _call(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"call": [{"tool": name, "args": args} for name, args in calls]}


async def test_a_conversation_is_shown_exported_and_gone_on_with(tmp_path: Path) -> None:
    script = [
        {"say": "Let me look.", "call": [{"tool": "fs.read", "args": {"path": "script.yaml"}}]},
        {"say": "A script."},
        {"expect": "Sure", "say": "Yes."},
    ]
    async with Remit(settings=_scripted(tmp_path, *script)) as remit:
        conversations = remit.service.conversations
        job = await remit.start(agent(task="What is it?", tools=["fs.*"], instructions="Be brief."))
        assert (await job).answer == "A script."
        found = await conversations.in_openai_format(job.id)
        assert [message["role"] for message in found] == ["system", "user", "assistant", "tool", "assistant"]
        assert found[2]["tool_calls"][0]["id"] == found[3]["tool_call_id"]
        assert to_openai(from_openai(found))[3]["content"] == found[3]["content"]
        later = await conversations.say(job.id, "Sure?")
        assert (await remit.job(later))["answer"] == "Yes."
        assert len(await conversations.messages(later)) == 7
        assert (await remit.service.jobs.replay(later)).verdict == "same"
        with pytest.raises(NotFoundError):
            await conversations.messages("job_none")


async def test_whoever_goes_on_refers_to_what_was_said_and_records_only_what_is_new(tmp_path: Path) -> None:
    script = [_call(("notes.read", {"name": "a"})), *({"say": f"Answer {number}."} for number in range(9))]
    async with Remit(settings=_scripted(tmp_path, *script), tools=[read]) as remit:
        job: Job[Any] = await remit.start(agent(task="Read a.", tools=["notes.*"]))
        await job
        sizes: list[int] = []
        for number in range(8):
            before, job = job, remit.job(await remit.service.conversations.say(job.id, f"Question {number}?"))
            assert (await job)["answer"] == f"Answer {number + 1}."
            given = (await remit.service.jobs.view(job.id)).input
            assert (given["earlier"]["job"], set(given["earlier"])) == (before.id, {"job", "tip"})
            assert (given["results"], given["task"]) == (None, f"Question {number}?")
            events = await remit.runtime.journal.read(f"job/{job.id}")
            sizes.append(sum(len(event.data) for event in events))
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        assert max(sizes) < min(sizes) * 1.05, sizes
        texts = [message.text for message in await remit.service.conversations.messages(job.id)]
        assert texts[4:6] == ["Question 0?", "Answer 1."]
        assert texts[-2:] == ["Question 7?", "Answer 8."]


async def test_a_conversation_goes_on_from_a_job_that_was_given_all_of_it_by_an_older_version(tmp_path: Path) -> None:
    whole = "b" * 20_000
    shown = f'{whole[:16_000]}\n[cut: characters 0 to 16000 of 20000; read on with id "1-0" and offset 16000]'
    earlier = [user("Read b."), Message("assistant", (ToolCall("1-0", "notes__read", "{}"),), "scripted/x")]
    earlier += [results(ToolMessage("1-0", "notes__read", shown))]
    more = {"tool": "agent.read_result", "args": {"id": "1-0", "offset": 16_000}}
    script = [{"say": "unasked"}, {"say": "Long."}, {"call": [more]}, {"say": "Done."}]
    async with Remit(settings=_scripted(tmp_path, *script)) as remit:
        given = [msgspec.to_builtins(one) for one in earlier]
        job = await remit.start(agent(task="And?", tools=["notes.*"], earlier=given, results={"1-0": whole}))
        assert (await job).answer == "Long."
        later = await remit.service.conversations.say(job.id, "Read on.")
        assert (await remit.job(later))["answer"] == "Done."
        said = await remit.service.conversations.messages(later)
        assert said[:3] == earlier
        assert said[-2].blocks == (ToolMessage("2/1-0", "agent__read_result", "b" * 4_000),)


async def test_a_conversation_that_was_erased_or_is_not_there_is_not_gone_on_with(tmp_path: Path) -> None:
    async with Remit(settings=_scripted(tmp_path, {"say": "Hello."}, {"say": "Again."})) as remit:
        job = await remit.start(agent(task="Hi."), Options(subject="ann"))
        await job
        said = await remit.service.conversations.messages(job.id)
        tip = EMPTY.add(*said).tip
        other = await remit.start(agent(task="And?", earlier={"job": job.id, "tip": "sha256:" + "0" * 64}))
        with pytest.raises(JobEndedError) as missing:
            await other
        assert missing.value.code is Code.JOB_NOT_CONVERSATION
        await erase(remit.runtime.journal, "ann")
        with pytest.raises(StateError) as erased:
            await remit.service.conversations.say(job.id, "And?")
        assert erased.value.code is Code.PAYLOAD_ERASED
        other = await remit.start(agent(task="And?", earlier={"job": job.id, "tip": tip}))
        with pytest.raises(JobEndedError) as gone:
            await other
        assert gone.value.code is Code.PAYLOAD_ERASED


async def test_calls_of_a_later_job_have_identifiers_of_their_own_and_earlier_results_are_read_on(
    tmp_path: Path,
) -> None:
    more = {"tool": "agent.read_result", "args": {"id": "1-0", "offset": 16_000}}
    script = [
        _call(("notes.read", {"name": "a"})),
        {"say": "Long."},
        _call(("notes.read", {"name": "b"})) | {"call": [{"tool": "notes.read", "args": {"name": "b"}}, more]},
        {"say": "Longer."},
        {"call": [more]},
        {"say": "Done."},
    ]
    async with Remit(settings=_scripted(tmp_path, *script), tools=[read]) as remit:
        conversations = remit.service.conversations
        job = await remit.start(agent(task="Read a.", tools=["notes.*"]))
        await job
        for text in ("Read b.", "Read a again."):
            job = remit.job(await conversations.say(job.id, text))
            await job
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        messages = await conversations.messages(job.id)
        calls = [call.id for message in messages for call in message.calls]
        assert calls == ["1-0", "2/1-0", "2/1-1", "4/1-0"]
        texts = [block.text for message in messages for block in message.blocks if message.role == "tool"]
        assert texts[0].startswith("a" * 16_000 + "\n[cut: ")
        assert texts[1].startswith("b" * 16_000 + "\n[cut: ")
        assert texts[2] == texts[3] == "a" * 4_000


async def test_what_is_said_to_an_agent_at_work_is_heard_before_its_next_question(tmp_path: Path) -> None:
    script = [_call(("notes.write", {"text": "x"})), {"expect": "(?s)^in French$", "say": "Fait."}]
    async with Remit(settings=_scripted(tmp_path, *script), tools=[write]) as remit:
        job = await remit.start(agent(task="Write x.", tools=["notes.*"]))
        async for question in remit.questions(job.id):
            assert await remit.service.conversations.say(job.id, "in French") == job.id
            shown = await remit.service.conversations.in_openai_format(job.id)
            assert shown[-1] == {"role": "user", "content": "in French"}
            await remit.service.confirmations.decide(question.confirmation, "approve")
        assert (await job).answer == "Fait."
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        roles = [message.role for message in await remit.service.conversations.messages(job.id)]
        assert roles == ["user", "assistant", "tool", "user", "assistant"]


async def test_a_job_that_was_cancelled_in_the_middle_goes_on_with_every_call_answered(tmp_path: Path) -> None:
    script = [_call(("notes.write", {"text": "x"}), ("notes.read", {"name": "ab"})), {"expect": "Again", "say": "Yes."}]
    async with Remit(settings=_scripted(tmp_path, *script), tools=[read, write]) as remit:
        job = await remit.start(agent(task="Write x.", tools=["notes.*"]))
        async for _ in remit.questions(job.id):
            await remit.service.conversations.say(job.id, "unheard")
            await job.cancel()
        later = await remit.service.conversations.say(job.id, "Again")
        assert (await remit.job(later))["answer"] == "Yes."
        messages = await remit.service.conversations.messages(later)
        assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
        write_result, read_result = messages[2].blocks
        assert "Not called: the work was stopped before." in write_result.text
        assert read_result.text.startswith("abab")
        assert messages[3].text == "unheard\n\nAgain"


async def test_an_agent_that_ends_while_something_is_said_goes_on_in_a_new_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [_call(("notes.write", {"text": "x"})), {"say": "Written."}, {"expect": "Sure", "say": "Yes."}]
    async with Remit(settings=_scripted(tmp_path, *script), tools=[write]) as remit:
        job = await remit.start(agent(task="Write x.", tools=["notes.*"]))
        async for question in remit.questions(job.id):
            waiting = question.confirmation
            break
        send = remit.service.jobs.signal

        async def late(*given: Any, **named: Any) -> None:
            await remit.service.confirmations.decide(waiting, "approve")
            await job
            await send(*given, **named)

        monkeypatch.setattr(remit.service.jobs, "signal", late)
        later = await remit.service.conversations.say(job.id, "Sure?")
        assert later != job.id
        assert (await remit.job(later))["answer"] == "Yes."


async def test_a_conversation_from_elsewhere_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    before = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    async with Remit(settings=_scripted(tmp_path, {"say": "?"}, {"expect": "Who", "say": "Me."})) as remit:
        conversations = remit.service.conversations
        job = await remit.start(conversation(messages=before, turns=3))
        assert (await job).messages == 2
        assert await conversations.in_openai_format(job.id) == before
        later = await conversations.say(job.id, "Who are you?")
        assert (await remit.job(later))["answer"] == "Me."
        view = await remit.service.jobs.view(later)
        assert view.input["turns"] == 3


async def test_whoever_goes_on_keeps_every_limit_of_the_job_before(tmp_path: Path) -> None:
    rule = {"id": "no-b", "effect": "deny", "tools": ["notes.read"]}
    async with Remit(settings=_scripted(tmp_path, {"say": "a"}, {"say": "b"}), tools=[read]) as remit:
        limits = {"max_steps": 3, "max_calls": 5}
        before = Options(policy=(rule,), tools=("notes.*", "model.*"), budget=limits, subject="ann")
        job = await remit.start(agent(task="?", tools=["notes.*"]), before)
        await job
        wider = Options(tools=("notes.read", "fs.*", "model.*"), budget={"max_steps": 9, "max_wall_ms": 1_000})
        later = await remit.service.conversations.say(job.id, "!", wider)
        created = (await remit.service.jobs.history(later)).created
        assert created is not None
        assert created.overlay == {"rules": [rule], "tools": ["model.*", "notes.read"]}
        assert created.budget == {"max_steps": 3, "max_calls": 5, "max_wall_ms": 1_000}
        head = await remit.runtime.journal.head(f"job/{later}")
        assert head is not None
        assert head.subject == "ann"


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NAMES = st.from_regex(r"\A[a-z]{1,8}__[a-z]{1,8}\Z")


@st.composite
def _conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Conversations as the Chat Completions API takes them: every call has its result right after it."""
    found: list[dict[str, Any]] = [{"role": "system", "content": draw(_TEXTS)}] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(0, 4))):
        found.append({"role": "user", "content": draw(_TEXTS)})
        answer: dict[str, Any] = {"role": "assistant", "content": draw(_TEXTS)}
        names = draw(st.lists(_NAMES, max_size=3))
        ids = [f"{turn:04}{number:05}" for number in range(len(names))]
        if names:
            answer["tool_calls"] = [
                {"id": one, "type": "function", "function": {"name": name, "arguments": sent(draw(_TEXTS))}}
                for one, name in zip(ids, names, strict=True)
            ]
        found.append(answer)
        found += [{"role": "tool", "tool_call_id": one, "content": draw(_TEXTS)} for one in ids]
    return found


@pytest.mark.slow
@settings(max_examples=50)
@given(_conversations())
def test_what_is_imported_is_exported_as_it_was_but_for_identifiers(before: list[dict[str, Any]]) -> None:
    after = to_openai(from_openai(before))
    assert to_openai(from_openai(after)) == after
    renamed: dict[str, str] = {}
    for one, other in zip(before, after, strict=True):
        for call, again in zip(one.get("tool_calls", ()), other.get("tool_calls", ()), strict=True):
            renamed[call["id"]] = again["id"]
            assert call["function"] == again["function"]
        assert renamed.get(one.get("tool_call_id", ""), "") == other.get("tool_call_id", "")
        assert (one["role"], one["content"]) == (other["role"], other["content"])
    assert len(set(renamed.values())) == len(renamed)


@pytest.mark.parametrize(
    "given",
    [
        "hello",
        [{"role": "wizard", "content": "x"}],
        [{"role": "user"}, {"role": "system", "content": "late"}],
        [{"role": "tool", "tool_call_id": "x", "content": "orphan"}],
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}]}],
        [{}],
    ],
)
def test_what_is_no_conversation_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        from_openai(given)


def test_what_is_wrong_with_a_message_is_said_in_words() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    start = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "a", "content": "y"}
    for more, words in (
        ([result, result], "message 3: it is a result for the call 'a', which has one already"),
        ([{"role": "tool", "content": "y"}], "message 2 has no field 'tool_call_id'"),
        (["text"], "message 2 has a field of the wrong type"),
        ([{"role": "robot"}], "message 2: 'robot' is not a role"),
    ):
        with pytest.raises(UsageError, match=words):
            from_openai([*start, *more])


@recipe("two_questions")
async def two_questions(run: Run) -> list[str]:
    """Ask twice."""
    return [(await run.model(f"Question {number}?")).text for number in (1, 2)]


async def test_what_each_step_asked_and_was_answered_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    async with Remit(settings=_scripted(tmp_path, {"say": "Yes."}), recipes=[two_questions]) as remit:
        job = await remit.start(two_questions())
        await job
        for number in (1, 2):
            assert await remit.service.conversations.in_openai_format(job.id, str(number)) == [
                {"role": "user", "content": f"Question {number}?"},
                {"role": "assistant", "content": "Yes."},
            ]
        with pytest.raises(NotFoundError) as raised:
            await remit.service.conversations.in_openai_format(job.id, "3")
        assert raised.value.code is Code.STEP_NOT_FOUND
