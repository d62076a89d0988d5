"""Shows how far jobs are, on stderr: redrawn in place on a terminal, otherwise a line for every step that ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from remit.cli.text import clean, cut, one_line, pad, short
from remit.clock import SECOND, SystemClock, duration
from remit.process.live import OutputLine

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from remit.cli.output import Channel
    from remit.record.job_story import JobStory
    from remit.record.views import StepRow

_FRAME_S: Final = 0.1
_MOST_STEPS: Final = 12
_AROUND: Final = 6
"""Lines of the terminal left to everything but steps."""
_MOST_LINES: Final = 200
"""Lines of output that are shown of what came between two frames; the last of them."""
_NAME: Final = 24
_TIME: Final = 7
_MARKS: Final = {"ok": "✓", "completed": "✓", "failed": "✗", "blocked": "✗", "unknown": "?", "cancelled": "·"}
_ASCII: Final = {"✓": "+", "✗": "x", "·": "-", "…": "."}
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER: Final = "-\\|/"
_STYLES: Final = {
    "ok": "green",
    "completed": "green",
    "failed": "red",
    "blocked": "yellow",
    "unknown": "magenta",
    "running": "cyan",
    "waiting": "yellow",
    "cancelled": "dim",
}
_ACTIVE: Final = frozenset({"running", "waiting", "unknown"})

Line = list[tuple[str, str]]
"""Pieces of text with their styles."""


class Silent:
    """Shows nothing."""

    def show(self, jobs: Sequence[JobStory]) -> None:
        """Something may have changed."""

    def pause(self) -> None:
        """Leave the terminal to a question."""

    def go_on(self) -> None:
        """The question is answered."""

    def parked(self, job: JobStory) -> None:
        """The job waits for someone, and so do we."""

    def progress(self, job: str, done: float | None, total: float | None, message: str) -> None:
        """A recipe or a tool says how far it is."""

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Leave what was shown as it is."""


class Lines(Silent):
    """A line for every step that ended: for files, pipes and logs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told: set[tuple[str, str, str]] = set()

    def show(self, jobs: Sequence[JobStory]) -> None:
        for job in jobs:
            for step in job.steps:
                key = (job.job, step.step, step.state)
                if step.state in _MARKS and key not in self._told:
                    self._told.add(key)
                    self._tell(step, job.job if len(jobs) > 1 else "")

    def parked(self, job: JobStory) -> None:
        self._channel.line(f"{job.job} waits for {one_line(job.row.waiting_for)}")
        self._channel.flush()

    def _tell(self, step: StepRow, job: str) -> None:
        parts = [job, step.step, short(step.name), step.state, step.error_code]
        if step.duration_us:
            parts.append(duration(step.duration_us))
        with contextlib.suppress(OSError):  # a job does not end because its output is closed
            self._channel.line(" ".join(filter(None, parts)))
            self._channel.flush()


class LiveView(Silent):
    """The jobs and their newest steps, redrawn in place below what their programs wrote."""

    def __init__(self, channel: Channel) -> None:
        from rich.console import Console

        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._jobs: Sequence[JobStory] = ()
        self._steps: dict[str, tuple[StepRow, ...]] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._messages: dict[str, str] = {}
        self._output: deque[tuple[str, str]] = deque(maxlen=_MOST_LINES)
        self._passed = 0
        self._console = Console(
            file=channel.stream, no_color=not channel.colored, highlight=False, markup=False, emoji=False
        )
        self._unicode = (channel.stream.encoding or "").lower().startswith("utf")
        self._paused = False
        self._stopped = False
        self._live: Live | None = None
        self._frames: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._frames = asyncio.create_task(self._draw(), name="remit:view")
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._stopped = bool(raised) and raised[0] is not None
        if self._frames is not None:
            self._frames.cancel()
            await asyncio.wait([self._frames])
        with contextlib.suppress(OSError):
            if not self._paused:
                self._refresh()
            self._erase(keep=True)

    def show(self, jobs: Sequence[JobStory]) -> None:
        self._jobs = jobs
        self._steps = {job.job: job.steps for job in jobs}

    def pause(self) -> None:
        self._paused = True
        self._erase(keep=False)

    def go_on(self) -> None:
        self._paused = False

    def progress(self, job: str, done: float | None, total: float | None, message: str) -> None:
        if isinstance(message, OutputLine):
            self._passed += len(self._output) == _MOST_LINES
            self._output.append((job, message))
            return
        count = "" if done is None else f" {done:g}" + ("" if total is None else f"/{total:g}")
        self._messages[job] = one_line(message) + count

    # --- drawing

    async def _draw(self) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone ends the picture, not the job
            while True:
                if not self._paused:
                    self._refresh()
                await self._clock.sleep(_FRAME_S)

    def _refresh(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._picture(), refresh=not self._output)
        if self._output:
            self._console.print(self._written())  # above the picture, which it draws again

    def _erase(self, *, keep: bool) -> None:
        if self._live is not None:
            self._live.transient = not keep
            self._live.stop()
            self._live = None

    def _picture(self) -> Text:
        from rich.text import Text

        many = len(self._jobs) > 1
        lines = [self._header(job, many=many) for job in self._jobs]
        if not many:
            lines += [line for job in self._jobs for line in self._body(job)]
        return Text("\n", no_wrap=True, overflow="crop").join(Text.assemble(*line) for line in lines)

    def _written(self) -> Text:
        """The output since the last frame."""
        from rich.text import Text

        many = len(self._jobs) > 1
        bar = "│" if self._unicode else "|"
        lines = [f"  {self._sign('…')} {self._passed} lines more"] if self._passed else []
        lines += [f"  {bar} " + (f"{job}  " if many else "") + clean(line.expandtabs()) for job, line in self._output]
        self._output.clear()
        self._passed = 0
        return Text("\n".join(lines))

    def _header(self, job: JobStory, *, many: bool) -> Line:
        row = job.row
        steps = self._steps[job.job]
        taken = duration(int((self._clock.monotonic() - self._began) * SECOND))
        parts = ["stopped" if row.state == "running" and (self._stopped or not row.worker) else row.state]
        parts.append(f"{len(steps)} steps" if len(steps) != 1 else "1 step")
        parts.append(taken)
        if row.state == "waiting":
            parts.append(f"for {row.waiting_for or row.code}")
        message = self._messages.get(job.job, "")
        if message and row.state == "running":
            parts.append(message)
        name = f"{row.job}  {row.name}" if many else row.name
        room = self._console.width - len(name) - 5
        text = cut(one_line(f" {self._sign('·')} ".join(parts)), room)
        return [(f"{self._mark(row.state)} ", _STYLES.get(row.state, "")), (name, "bold"), (f"  {text}", "")]

    def _body(self, job: JobStory) -> list[Line]:
        """The newest steps, with those that are under way."""
        steps = self._steps[job.job]
        room = max(3, min(_MOST_STEPS, self._console.height - _AROUND))
        active = [index for index, step in enumerate(steps) if step.state in _ACTIVE][-room:]
        rest = [index for index in range(len(steps)) if index not in set(active)]
        chosen = sorted([*active, *rest[len(rest) - (room - len(active)) :]]) if len(active) < room else active
        place = max((len(steps[index].step) for index in chosen), default=0)
        hidden = len(steps) - len(chosen)
        lines: list[Line] = [[(f"    {self._sign('…')} {hidden} more", "dim")]] if hidden else []
        return lines + [self._step(job, steps[index], place) for index in chosen]

    def _step(self, job: JobStory, step: StepRow, place: int) -> Line:
        name = pad(cut(one_line(short(step.name)), _NAME), _NAME)
        head = f"{pad(step.step, place)}  {name}"
        time = self._time(job, step).rjust(_TIME)
        room = self._console.width - len(head) - len(time) - 8
        said = step.error_code or (step.meta.result_preview if step.ok else step.reason or step.meta.args_preview)
        style = _STYLES.get(step.state, "")
        return [
            (f"  {self._mark(step.state)} ", style),
            (head, ""),
            (f" {time}", "dim"),
            ("  " + cut(one_line(said), room), "dim" if step.state == "ok" else style),
        ]

    def _time(self, job: JobStory, step: StepRow) -> str:
        if step.duration_us:
            return duration(step.duration_us)
        if step.state != "running":
            return ""
        now = self._clock.monotonic()
        since = self._since.setdefault((job.job, step.step), now)
        return duration(int((now - since) * SECOND))

    def _mark(self, state: str) -> str:
        if state == "running" and not self._stopped:
            frames = _SPINNER if self._unicode else _ASCII_SPINNER
            return frames[int(self._clock.monotonic() / _FRAME_S) % len(frames)]
        return self._sign(_MARKS.get(state, "·"))

    def _sign(self, sign: str) -> str:
        return sign if self._unicode else _ASCII.get(sign, sign)
