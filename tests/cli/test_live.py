from __future__ import annotations

import io
from typing import Any

from remit.cli.output import OutputChannel
from remit.cli.watch import LineView, LiveView
from remit.journal.event import Event
from remit.journal.kinds import (
    ErrorInfo,
    JobCreated,
    JobWaiting,
    Payload,
    TimeRecorded,
    ToolInvocationFinished,
    ToolInvocationStarted,
    encode,
)
from remit.process.live import OutputLine
from remit.record.job_story import JobStory
from remit.record.views import JobRow

JOB = "job_01m80d3wxwe00ba4m4adcs3210"


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Screen(OutputChannel):
    """A channel into a text."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__("stderr", "never")
        self._stream = stream

    @property
    def stream(self) -> Any:
        return self._stream


def followed(*payloads: Payload, state: str = "running", **row: Any) -> JobStory:
    fields = {
        "job": JOB, "name": "demo", "state": state, "title": "", "created_at": 0, "updated_at": 0, "due_at": None,
        "waiting_for": "", "code": "", "worker": "somebody", "labels": {}, **row,
    }  # fmt: skip
    job = JobStory(JobRow(**fields))
    for seq, payload in enumerate((JobCreated(kind="recipe", name="demo"), *payloads), 1):
        job.story.read([Event(f"job/{JOB}", seq, payload.KIND, seq, encode(payload), b"")])
    return job


def started(step: str, tool: str = "fs.read", **fields: Any) -> ToolInvocationStarted:
    return ToolInvocationStarted(invocation_id=f"i{step}", step=step, tool_name=tool, **fields)


def finished(step: str, error: ErrorInfo | None = None) -> ToolInvocationFinished:
    outcome: Any = "failure" if error else "success"
    kind: Any = "permanent_failure" if error else "pure"
    return ToolInvocationFinished(
        invocation_id=f"i{step}", step=step, outcome=outcome, step_outcome=kind, error=error, duration_ms=1.2
    )


def test_lines_tell_of_every_ended_step_once() -> None:
    stream = io.StringIO()
    view = LineView(Screen(stream))
    view.show([followed(started("1"))])
    assert stream.getvalue() == ""
    broken = ErrorInfo(code="TOOL_EXEC_FAILED", message="x")
    for _ in range(2):
        view.show([followed(started("1"), finished("1"), started("2"), finished("2", broken))])
    assert stream.getvalue() == "1 fs.read ok 1.2 ms\n2 fs.read failed TOOL_EXEC_FAILED 1.2 ms\n"


def test_lines_of_several_jobs_begin_with_their_ids() -> None:
    stream = io.StringIO()
    LineView(Screen(stream)).show([followed(TimeRecorded(step="1", value=5)), followed()])
    assert stream.getvalue() == f"{JOB} 1 time ok\n"


def picture(*jobs: JobStory, width: int = 80, height: int = 24, encoding: str = "utf-8") -> list[str]:
    stream = Tty()
    view = LiveView(Screen(stream))
    view._console.width, view._console.height = width, height
    view._unicode = encoding == "utf-8"
    view.show(jobs)
    view.progress(JOB, 3, 9, "reading")
    return view._picture().plain.split("\n")


def test_the_picture_has_the_job_its_progress_and_its_steps() -> None:
    lines = picture(followed(started("1"), finished("1"), started("2.0.1", "web.fetch")))
    assert "demo  running · 2 steps" in lines[0]
    assert lines[0].endswith("reading 3/9")
    assert lines[1].split() == ["✓", "1", "fs.read", "1.2", "ms"]
    assert "2.0.1  web.fetch" in lines[2]


def test_the_picture_fits_the_terminal_and_keeps_what_is_under_way() -> None:
    done = [one for n in range(200) for one in (started(f"{n}", "fs.read" * 9), finished(f"{n}"))]
    lines = picture(followed(started("first"), *done), width=60, height=15)
    assert len(lines) <= 15 - 4
    assert any("192 more" in line for line in lines)
    assert any("first" in line for line in lines), "the oldest step is still running"
    assert all(len(line) <= 60 for line in lines)


def test_a_waiting_job_says_what_for() -> None:
    wait = JobWaiting(step="1", wait_type="signal", correlation_key="go")
    lines = picture(followed(wait, state="waiting", waiting_for="signal go", worker=""))
    assert "waiting · 1 step" in lines[0]
    assert "for signal go" in lines[0]


def test_several_jobs_take_a_line_each() -> None:
    lines = picture(followed(state="completed"), followed(started("1")))
    assert len(lines) == 2
    assert all(JOB in line for line in lines)


def test_without_unicode_the_picture_is_ascii() -> None:
    lines = picture(followed(started("1"), finished("1")), encoding="ascii")
    assert all(line.isascii() for line in lines)


async def test_a_view_draws_pauses_and_leaves_its_last_picture() -> None:
    stream = Tty()
    view = LiveView(Screen(stream))
    async with view:
        view.show([followed(started("1"))])
        view.pause()
        paused = stream.getvalue()
        view.show([followed(started("1"), finished("1"))])
        assert stream.getvalue() == paused, "nothing is drawn into a question"
        view.go_on()
    assert "✓ 1" in stream.getvalue()


async def test_what_a_program_writes_stands_above_the_picture_line_by_line() -> None:
    stream = Tty()
    view = LiveView(Screen(stream))
    view.show([followed(started("1"))])
    view.progress(JOB, 1, None, OutputLine("first\tline"))
    view.progress(JOB, 2, None, OutputLine("\x1b[2Jsecond"))
    async with view:
        pass
    said = stream.getvalue()
    assert said.index("│ first   line") < said.index("│ ") + 20 < said.index("second")
    assert "\x1b[2Jsecond" not in said
    assert "running · 1 step · " in said


def test_of_a_flood_the_last_lines_are_shown() -> None:
    view = LiveView(Screen(Tty()))
    for number in range(1_000):
        view.progress(JOB, number, None, OutputLine(f"line {number}"))
    lines = view._written().plain.split("\n")
    assert (lines[0], lines[-1], len(lines)) == ("  … 800 lines more", "  │ line 999", 201)
    assert view._written().plain == ""
