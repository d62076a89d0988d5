"""`remit show JOB STEP`: one step, whole."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from remit import Remit, Run, recipe, tool
from tests.cli.conftest import Project


def test_a_step_is_shown_with_everything_that_decided_about_it(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt", "--text", "one\n  two\n")
    (question,) = project.here("confirm", "--json").json
    name = question["confirmation"]
    assert project.here("confirm", name, "--approve", "--as", "bob", "--reason", "looks right").status == 0
    assert project.here("resume", job).status == 0
    out = project.here("show", job, "1").out
    assert out.startswith(f"step 1 of {job}  note.write  ok\n")
    for fact in (
        r"asked by +alice",
        r"rule +default:L1",
        rf"approval +{name}",
        r"provider +local\n",
        r"schema of arguments +sha256:[0-9a-f]{64}\n",
        r"side effect +write: it happened",
        r"idempotency key +[0-9a-f]{64}\n",
        rf"asked at .*: {name}, digest {question['digest']}\n",
        rf"approved by bob at .*, shown {question['digest']}: looks right\n",
        r"1 at .*: success after",
    ):
        assert re.search(fact, out), fact
    whole = project.here("show", job, "1", "--json").json
    (told,) = (one for one in project.here("trace", job, "--json").json["steps"] if one["step"] == "1")
    assert whole["narrative"] == told
    assert (told["rule_id"], told["approval"], whole["args"]["path"]) == ("default:L1", name, "n.txt")
    assert '"text": (2 lines, 10 characters)\n    " one\n    "   two\n' in out


def test_a_step_is_not_cut_however_long_its_values_are(project: Project) -> None:
    job = project.job("file", "--path", "a.txt", "--content", "x" * 30_000)
    assert project.here("confirm", project.here("confirm", "--json").json[0]["confirmation"], "--approve").status == 0
    assert project.here("resume", job).status == 0
    assert "x" * 30_000 in project.here("show", job, "1").out


def test_a_failed_step_says_why_and_where(project: Project) -> None:
    job = project.job("fails")
    out = project.here("show", job, "1").out
    assert "TOOL_EXEC_FAILED: bad.always: ValueError: no luck today" in out
    assert re.search(r"at .*sample_module\.py:\d+ in fail\n", out)
    assert "attempts\n    1 at" in out


def looks(version: str) -> Any:
    @tool("shop.look", level="L0", version=version)
    def look() -> str:
        """Look."""
        return "seen"

    return look


@recipe("looks_twice", version="1")
async def twice(run: Run) -> None:
    """Look, wait for a signal, and look again."""
    await run.call("shop.look", {})
    await run.wait_signal("on")
    await run.call("shop.look", {})


async def changed_under_way(journal: str) -> str:
    """A job whose tool changed its version while it waited."""
    async with Remit(journal, tools=[looks("1")], recipes=[twice], policy=[]) as remit:
        job = (await remit.start(twice())).id
        await remit.service.jobs.settled([job])
    async with Remit(journal, tools=[looks("2")], recipes=[twice], policy=[]) as remit:
        await remit.job(job).signal("on")
        await remit.job(job)
    return job


def test_a_step_names_what_changed_since_it_was_recorded(project: Project) -> None:
    journal = str(project.folder / "looks.db")
    job = asyncio.run(changed_under_way(journal))
    out = project.here("--journal", journal, "show", job, "1").out
    assert re.search(r"changed since +shop\.look, version: was 1, is 2\n", out)


def test_what_is_masked_of_a_step_is_counted(project: Project) -> None:
    job = project.job("fails", "--why", "api_key=sk-live-0123456789abcdef0123")
    out = project.here("show", job, "1").out
    assert "0123456789" not in out
    assert "arguments (1 masked: --json shows everything)" in out
    assert "sk-live-0123456789abcdef0123" in project.here("show", job, "1", "--json").out


def test_a_call_that_waits_is_shown_with_the_arguments_that_are_asked_about(project: Project) -> None:
    job = project.job("notes", "--path", "n.txt", "--text", "one")
    assert project.here("show", job, "1", "--json").json["args"] == {"path": "n.txt", "text": "one"}
    assert '"path": "n.txt"' in project.here("show", job, "1").out


def test_a_question_to_a_model_is_shown_with_prompt_answer_and_what_it_took(project: Project) -> None:
    asks = """
from remit import Run, recipe

@recipe("wonders")
async def wonders(run: Run) -> str:
    return (await run.model("What is up?", model="scripted:says.yaml")).text
"""
    (project.folder / "wonders.py").write_text(asks)
    (project.folder / "says.yaml").write_text("[{fault: rejected}, {say: All is well.}]")
    assert project.apart("run", "wonders.py").status == 3
    shown = project.here("show", "last", "1").out
    for text in ("failed", "model     scripted says.yaml", "took      0 tokens in, 0 out", "prompt", '"What is up?"'):
        assert text in shown
    assert "error\n    MODEL_REJECTED" in shown
    (project.folder / "says.yaml").write_text("[{say: All is well.}]")
    assert project.apart("run", "wonders.py").status == 0
    shown = project.here("show", "last", "1").out
    for text in ("tokens in", "answer", '"content": "All is well."'):
        assert text in shown
    exported = project.here("conversation", "export", "last", "--step", "1").json
    assert [message["content"] for message in exported] == ["What is up?", "All is well."]
