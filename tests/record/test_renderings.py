"""One fact, one rendering: whoever looks at a step sees the same state, code, value, times and attempts."""

from __future__ import annotations

import asyncio
import html
import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings

from remit import Remit
from remit.jobs.state import stream_of
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.pages.page import written
from tests.cli.conftest import Project, project
from tests.pages.conftest import Browser, serving
from tests.record.acts import Act, Answers, answers, drive, lists, opened, plain

__all__ = ["project"]

EXAMPLES: Final = int(os.environ.get("REMIT_TEST_EXAMPLES", "6"))
Step = dict[str, Any]


class Seen:
    """A job as each face shows it."""

    def __init__(self, job: str, events: list[Event]) -> None:
        self.job = job
        self.payloads = [payload for event in events if (payload := k.decode(event.kind, event.data)) is not None]
        self.rows: dict[str, Step] = {}
        """Of `remit show JOB --json`."""
        self.views: dict[str, Step] = {}
        """Of `remit show JOB STEP --json`."""
        self.told: dict[str, Step] = {}
        """Of `remit trace JOB --json`."""
        self.fetched: dict[str, Step] = {}
        """Of GET /v1/jobs/JOB/steps/STEP."""
        self.traced: dict[str, Step] = {}
        """Of GET /v1/jobs/JOB/trace."""
        self.page = ""
        self.details: dict[str, str] = {}
        """Pages of the steps."""


async def look(remit: Remit, browser: Browser, job: str) -> Seen:
    """Look at a job that nobody works on."""
    seen = Seen(job, await remit.service.streams.events(stream_of(job)))
    seen.rows = by_step(plain((await remit.service.jobs.view(job)).steps))
    seen.told = by_step(plain((await remit.service.streams.narrative(job)).steps))
    seen.traced = by_step((await get(browser, f"/v1/jobs/{job}/trace"))["steps"])
    seen.page = (await browser.get(f"/jobs/{job}")).text
    for step in seen.rows:
        seen.views[step] = plain(await remit.service.steps.view(job, step))
        seen.fetched[step] = await get(browser, f"/v1/jobs/{job}/steps/{step}")
        seen.details[step] = (await browser.get(f"/jobs/{job}?step={step}")).text
    return seen


async def get(browser: Browser, path: str) -> Any:
    """The JSON that a path answers with."""
    async with browser.session.get(browser.url + path) as answer:
        assert answer.status == 200, (path, await answer.text())
        return await answer.json()


def by_step(steps: list[Step]) -> dict[str, Step]:
    return {step["step"]: step for step in steps}


def check(seen: Seen) -> None:
    """Compare what the faces show of every step, and with what is recorded."""
    assert list(seen.rows) == list(seen.told) == list(seen.traced)
    for step, row in seen.rows.items():
        told, view = seen.told[step], seen.views[step]
        assert seen.traced[step] == told
        assert seen.fetched[step] == view
        assert view["row"] == row
        assert view["narrative"] == told
        assert {name: row[name] for name in ("state", "name")} == {name: told[name] for name in ("state", "name")}
        for name, other in (("error_code", "code"), ("reason", "reason"), ("remedy", "remedy")):
            assert row[name] == told.get(other, "")
        assert (row["meta"]["args_preview"], row["meta"]["result_preview"]) == (
            told.get("args_preview", ""),
            told.get("result_preview", ""),
        )
        attempts = told.get("attempts", ())
        assert row["duration_ms"] * 1_000 == pytest.approx(attempts[-1].get("duration_us", 0) if attempts else 0)
        assert row["attempt"] == (attempts[-1]["number"] if attempts else 1)
        assert row["ok"] == (row["state"] == "ok")
        check_page(seen, step)
        check_record(seen, step)


def check_page(seen: Seen, step: str) -> None:
    """The row and the whole step of the console."""
    row, view, page = seen.rows[step], seen.views[step], seen.details[step]
    found = re.search(rf'<tr id="s-{re.escape(step)}".*?</tr>', page, re.DOTALL)
    assert found is not None, step
    assert f"</span> {row['state']}</span>" in found[0]
    whole = page[page.index('id="step-whole"') :]
    assert re.search(rf"<p>{row['state']}[:<]", whole)
    if row["error_code"]:
        assert f"<code>{row['error_code']}</code>" in whole
    for name, value in (("step-args", view["args"]), ("step-value", view["value"])):
        shown = re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', whole, re.DOTALL)
        if value is not None:
            assert shown is not None, (step, name, value)
            assert html.unescape(shown[1]) == (value if isinstance(value, str) else written(value))


def check_record(seen: Seen, step: str) -> None:
    """What the events say of a step, read without the fold that the faces share."""
    of_step = [payload for payload in seen.payloads if getattr(payload, "step", "") == step]
    row, view = seen.rows[step], seen.views[step]
    for payload in of_step:
        matches = _RECORDED.get(type(payload))
        if matches is not None:
            matches(payload, row, view)
    attempts = [payload for payload in of_step if isinstance(payload, k.CommandStarted | k.ToolInvocationStarted)]
    assert len(view["narrative"].get("attempts", ())) == len(attempts)


def asked(payload: k.CommandStarted, _row: Step, view: Step) -> None:
    question = f"What does {payload.llm_model.removesuffix('.yaml')} say?"
    assert view["args"]["messages"] == [{"role": "user", "content": question}]


def answered(payload: k.CommandCommitted, row: Step, view: Step) -> None:
    if payload.error is not None:
        ended = (row["state"], row["error_code"]) == ("failed", payload.error.code)
        assert ended is (payload.again_ms is None)
        return
    assert (row["state"], view["value"]["content"] in {"the answer", "late"}) == ("ok", True)
    told = view["narrative"]["llm_invocation"]
    assert payload.cost is not None
    for name in ("input_tokens", "output_tokens", "finish_reason", "cost"):
        assert told[name] == getattr(payload, name)


def refused(payload: k.GateRefused, row: Step, _view: Step) -> None:
    assert (row["state"], row["error_code"]) == ("blocked", payload.code)


def started(payload: k.ToolInvocationStarted, _row: Step, view: Step) -> None:
    assert view["args"] == plain(payload.args)


def finished(payload: k.ToolInvocationFinished, row: Step, view: Step) -> None:
    if payload.outcome == "success":
        assert (row["state"], view["value"]) == ("ok", plain(payload.result))


def child_began(payload: k.ChildStarted, _row: Step, view: Step) -> None:
    assert view["args"] == plain(payload.input)


def child_ended(payload: k.ChildEnded, row: Step, view: Step) -> None:
    assert row["state"] == ("failed" if payload.error else "ok")
    assert payload.error is not None or view["value"] == plain(payload.result)


def compensated(payload: k.CompensationCompleted, row: Step, view: Step) -> None:
    assert (row["state"], view["value"]["undone"]) == ("ok", list(payload.undone))


def read_value(payload: k.TimeRecorded | k.UuidRecorded, row: Step, view: Step) -> None:
    assert (row["state"], view["value"]) == ("ok", payload.value)


def came(payload: k.WaitCompleted, row: Step, view: Step) -> None:
    if row["name"].startswith("wait."):
        assert (row["state"], view["value"]) == ("ok", plain(payload.payload))


_RECORDED: Final[dict[type[k.Payload], Callable[[Any, Step, Step], None]]] = {
    k.CommandStarted: asked,
    k.CommandCommitted: answered,
    k.GateRefused: refused,
    k.ToolInvocationStarted: started,
    k.ToolInvocationFinished: finished,
    k.ChildStarted: child_began,
    k.ChildEnded: child_ended,
    k.CompensationCompleted: compensated,
    k.TimeRecorded: read_value,
    k.UuidRecorded: read_value,
    k.WaitCompleted: came,
}


def check_taken(retry: Seen, source: Seen) -> None:
    """A step that a retry took over is the one of the other job, and says so; the others began in the retry."""
    for step, row in retry.rows.items():
        if row["taken_from"]:
            before = source.rows[step]
            same = ["started_at", "duration_ms", "attempt"]
            if not row["name"].startswith("recipe."):  # a part of it may run again
                same += ["state", "error_code"]
            assert row["taken_from"] == source.job
            assert {name: row[name] for name in same} == {name: before[name] for name in same}
            assert retry.views[step]["args"] == source.views[step]["args"]
            assert retry.views[step]["value"] == source.views[step]["value"] or row["name"].startswith("recipe.")
        else:
            assert row["started_at"] > max(one["started_at"] for one in source.rows.values())
    taken = [step for step, row in retry.rows.items() if row["taken_from"]]
    assert taken == [step for step in source.rows if step in taken]


def check_commands(project: Project, seen: Seen) -> None:
    """The same at a terminal."""
    where = ("--journal", str(project.folder / "journal.db"))
    assert by_step(project.here(*where, "show", seen.job, "--json").json["steps"]) == seen.rows
    assert by_step(project.here(*where, "trace", seen.job, "--json").json["steps"]) == seen.told
    table, story = project.here(*where, "show", seen.job).out, project.here(*where, "trace", seen.job).out
    for step, row in seen.rows.items():
        for text in (table, story):
            assert re.search(rf"^.*\s{re.escape(step)}\s.*\b{row['state']}\b", text, re.MULTILINE), (step, text)
    for step in list(seen.rows)[:2]:
        assert project.here(*where, "show", seen.job, step, "--json").json == seen.views[step]


async def played(folder: Path, todo: list[Act], said: Answers) -> list[Seen]:
    """A job of these acts, and its retry if it can be retried."""
    async with opened(folder) as remit, serving(remit) as browser:
        job = await remit.service.jobs.start_named("acts", {"acts": todo})
        await drive(remit, job, said)
        found = [await look(remit, browser, job)]
        if (await remit.service.jobs.row(job)).state == "failed":
            again = (await remit.service.jobs.retry(job, repeat=True)).job
            await drive(remit, again, said)
            found.append(await look(remit, browser, again))
        return found


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@example(todo=[{"model": "says"}, {"model": "busy"}, {"model": "rejects"}, {"model": "denied"}], said="all")
@example(
    todo=[{"read": 1}, {"gather": [{"write": 2}, {"model": "says"}]}, {"child": [{"read": 3}]}, {"boom": 0}], said="all"
)
@example(todo=[{"child": [{"lost": 1}, {"boom": 0}]}, {"undoable": 1}, {"compensate": 0}, {"signal": 1}], said="all")
@example(todo=[{"read": 1}, {"asks": 2}], said="none")
@example(todo=[{"gather": [{"lost": 1}, {"signal": 1}, {"confirm": 2}]}], said="none")
@given(todo=lists, said=answers)
def test_every_face_shows_the_same_of_every_step(project: Project, todo: list[Act], said: Answers) -> None:
    with TemporaryDirectory() as folder:
        project.folder = Path(folder)
        seen = asyncio.run(played(Path(folder), todo, said))
        for one in seen:
            check(one)
            check_commands(project, one)
        if len(seen) > 1:
            check_taken(seen[1], seen[0])
