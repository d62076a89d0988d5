from __future__ import annotations

from pathlib import Path

import pytest

from remit.errors import UsageError
from remit.models.faults import Busy, CutAnswer, Rejected
from remit.models.message import Message, ToolMessage, results, user
from remit.models.names import parse
from remit.models.prompt import Ask
from remit.models.reply import Delta, ModelReply, unwatched
from remit.models.script import ScriptedModel, load
from remit.models.thread import EMPTY, Thread

SCRIPT = """
- say: Let me look.
  call: [{tool: fs.read, args: {path: a.txt}}]
- {fault: busy, after: 2, times: 2}
- {expect: "hello", say: It says hello.}
"""


def _model(tmp_path: Path, script: str = SCRIPT) -> ScriptedModel:
    (tmp_path / "s.yaml").write_text(script)
    return load(parse("scripted:s.yaml"), tmp_path)


async def _ask(model: ScriptedModel, thread: Thread, seen: list[Delta] | None = None, attempt: int = 1) -> ModelReply:
    watch = unwatched if seen is None else seen.append
    return await model.send(model.prepare(Ask(thread=thread, id="1", attempt=attempt)), watch)


async def test_the_script_answers_by_how_often_the_conversation_was_answered(tmp_path: Path) -> None:
    model, seen = _model(tmp_path), list[Delta]()
    start = EMPTY.add(user("What does a.txt say?"))
    first = await _ask(model, start, seen)
    assert (first.stop, first.text) == ("tools", "Let me look.")
    assert [(call.id, call.name, call.arguments) for call in first.calls] == [("1-0", "fs__read", '{"path":"a.txt"}')]
    assert "".join(delta.text for delta in seen if delta.kind == "text") == "Let me look."
    then = start.add(first.message, results(ToolMessage("1-0", "fs__read", "hello")))
    for attempt in (1, 2):
        with pytest.raises(Busy) as caught:
            await _ask(model, then, attempt=attempt)
        assert caught.value.after_s == 2
    assert (await _ask(model, then, attempt=3)).text == "It says hello."
    model.check_used()
    again = await _ask(_model(tmp_path), start)
    assert again.message == first.message


async def test_a_fault_comes_at_its_attempt_only_in_any_process(tmp_path: Path) -> None:
    script, start = "[{fault: cut}, {say: x}]", EMPTY.add(user("?"))
    for attempt, process in ((1, "first"), (2, "second"), (3, "third")):
        model = _model(tmp_path, script)
        if attempt == 1:
            with pytest.raises(CutAnswer):
                await _ask(model, start, attempt=attempt)
        else:
            assert (await _ask(model, start, attempt=attempt)).text == "x", process


async def test_an_unexpected_prompt_is_refused(tmp_path: Path) -> None:
    model = _model(tmp_path, "[{expect: hello, say: x}]")
    with pytest.raises(Rejected, match="expects 'hello'"):
        await _ask(model, EMPTY.add(user("goodbye")))
    with pytest.raises(Rejected, match="ends after 1 answers"):
        await _ask(model, EMPTY.add(user("hello"), Message("assistant", ())))


async def test_steps_that_were_not_used_are_found(tmp_path: Path) -> None:
    model = _model(tmp_path)
    with pytest.raises(AssertionError, match="4 steps"):
        model.check_used()
    await _ask(model, EMPTY.add(user("x")))
    with pytest.raises(AssertionError, match="3 steps"):
        model.check_used()


async def test_a_summary_counts_as_the_answers_it_replaces(tmp_path: Path) -> None:
    model = _model(tmp_path, "[{say: one}, {say: two}, {say: three}]")
    summary = Message("user", (), replaces=2)
    assert (await _ask(model, EMPTY.add(summary))).text == "three"


@pytest.mark.parametrize("script", ["{a: 1}", "[{sya: x}]", "[{fault: tired}]", "[{expect: '('}]", "[", "[{call: 3}]"])
def test_a_file_that_is_no_script_is_refused(tmp_path: Path, script: str) -> None:
    with pytest.raises(UsageError):
        _model(tmp_path, script)


def test_a_script_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(parse("scripted:none.yaml"), tmp_path)
