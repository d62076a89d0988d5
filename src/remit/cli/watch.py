"""Follows jobs, in whatever process, until each has ended or waits for someone.

While people can be asked here, the questions of the jobs are put to them one by one as they come up; the jobs go on
meanwhile. A question that someone else answers first is withdrawn.

Shows how far jobs are, on stderr: redrawn in place on a terminal, otherwise a line for every step that ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from remit.cli.news import news_of
from remit.cli.output import clean, cut, one_line, pad, short
from remit.clock import SECOND, SystemClock, duration
from remit.jobs.state import job_of, stream_of
from remit.process.live import OutputLine
from remit.record.job_story import JobStory
from remit.record.views import ConfirmationView

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel
    from remit.record.views import StepRow


_SPACING_S: Final = 0.02
"""At most so often the journal is looked at."""
_SHARE: Final = 5
"""Looking may take one part in so many of the time, however long a job's history is."""
_LONGEST_S: Final = 1.0
"""The job is looked at at least this often, in case a look waited for a server that was away."""


async def followed(remit: Opened, job: str) -> JobStory:
    """A job with everything that is recorded of it by now. Raises NotFoundError."""
    story = JobStory(await remit.service.jobs.row(job))
    story.story.read(await remit.service.streams.events(stream_of(job)))
    return story


class WatchView(Protocol):
    """Shows how far jobs are."""

    def show(self, jobs: Sequence[JobStory]) -> None:
        """Something may have changed."""
        ...

    def pause(self) -> None:
        """Leave the terminal to a question."""
        ...

    def go_on(self) -> None:
        """The question is answered."""
        ...

    def parked(self, job: JobStory) -> None:
        """The job waits for someone, and so do we."""
        ...


class WatchAsker(Protocol):
    """Puts questions to the person at the terminal."""

    current: str
    """The question on the screen, or the one last left for later; empty while an answer is being recorded."""

    def ask(self, question: ConfirmationView) -> Coroutine[Any, Any, bool]:
        """Return whether it was answered; False: it is left for later."""
        ...

    def withdraw(self) -> None:
        """The question on the screen needs no answer any more."""
        ...


class JobWatch:
    """Follows some jobs."""

    def __init__(
        self, remit: Opened, jobs: Sequence[JobStory], view: WatchView, asker: WatchAsker | None, *, patient: bool
    ) -> None:
        self.jobs = jobs
        self._remit = remit
        self._news = news_of(remit, [job.job for job in jobs])
        self._view = view
        self._asker = asker
        self._patient = patient
        self._later: set[str] = set()
        self._parked: set[tuple[str, str]] = set()
        self._asking: asyncio.Task[bool] | None = None
        self._asks = ""
        """The job whose question that is."""
        self._changing: asyncio.Task[int] | None = None
        self._pause_s = _SPACING_S

    async def run(self) -> None:
        """Return once every job has ended or is left to others. Raises RemitError if the journal or server fails."""
        async with self._news as news:
            try:
                mark = await news.changed(0)
                while True:
                    await self._look()
                    await self._put_questions()
                    if self._asking is None and all(self._settled(job) for job in self.jobs) and await self._still():
                        return
                    mark = await self._change(mark, news.failed)
            finally:
                await _end(self._changing)
                await _end(self._asking)

    # --- looking

    async def _look(self) -> None:
        clock = self._news.clock
        began = clock.monotonic()
        for job in self.jobs:
            if not job.ended or not job.story.events:  # one that ended at once was never read
                job.row = await self._remit.service.jobs.row(job.job)
                job.story.read(await self._remit.service.streams.events(stream_of(job.job), job.story.events))
        self._view.show(self.jobs)
        self._pause_s = min(max(_SPACING_S, _SHARE * (clock.monotonic() - began)), _LONGEST_S)

    async def _still(self) -> bool:
        """Say whether nothing happened to any job since it was looked at; what was read after its row may be newer."""
        for job in self.jobs:
            if not job.ended and await self._remit.service.jobs.row(job.job) != job.row:
                return False
        return True

    async def _change(self, mark: int, failed: asyncio.Future[Any]) -> int:
        """Wait until there may be something new; the mark to wait from next."""
        if self._changing is None:
            self._changing = asyncio.create_task(self._next(mark))
        waited: set[asyncio.Future[Any]] = {failed, self._changing}
        if self._asking is not None:
            waited.add(self._asking)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        if self._asking is not None and self._asking.done():
            self._answered(self._asking)
        if not self._changing.done():
            return mark
        changed, self._changing = self._changing, None
        return changed.result()

    async def _next(self, mark: int) -> int:
        new = await self._news.changed(mark)
        await self._news.clock.sleep(self._pause_s)
        return new

    def _settled(self, job: JobStory) -> bool:
        if job.ended:
            return True
        if not job.idle(self._news.clock.now(), self._news.served):
            return False
        if not self._patient or job.row.stuck:
            return True
        key = (job.job, job.row.waiting_for)
        if key not in self._parked:
            self._parked.add(key)
            self._view.parked(job)
        return False

    # --- asking

    async def _put_questions(self) -> None:
        if self._asker is None:
            return
        if self._asking is not None:
            await self._reconsider(self._asker)
            return
        pending = [question for job in self.jobs for question in await self._pending(job)]
        fresh = [question for question in pending if question.confirmation not in self._later]
        if fresh:
            self._view.pause()
            self._asks, self._asker.current = job_of(fresh[0].caller), ""
            self._asking = asyncio.create_task(self._asker.ask(fresh[0]))

    async def _reconsider(self, asker: WatchAsker) -> None:
        """Withdraw the question on the screen once it can no longer be answered.

        What its job waits for does not tell: one that was edited here is open before the job has seen it.
        """
        shown = asker.current
        if not shown:
            return
        unanswered = {question.confirmation for question in await self._remit.service.confirmations.pending(self._asks)}
        if shown not in unanswered and asker.current == shown:
            await self._withdraw(asker)

    async def _pending(self, job: JobStory) -> list[ConfirmationView]:
        if job.ended or not any(wait.type == "human" for wait in job.waits):
            return []
        return await self._remit.service.confirmations.pending(job.job)

    async def _withdraw(self, asker: WatchAsker) -> None:
        await _end(self._asking)
        self._asking = None
        asker.withdraw()
        self._view.go_on()

    def _answered(self, asking: asyncio.Task[bool]) -> None:
        self._asking = None
        if not asking.result() and self._asker is not None:
            self._later.add(self._asker.current)
        self._view.go_on()


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and see it off. Where we are cancelled meanwhile, that is not taken for its end."""
    if task is None or task.done():
        return
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


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
        pass

    def pause(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    def parked(self, job: JobStory) -> None:
        pass

    def progress(self, job: str, done: float | None, total: float | None, message: str) -> None:
        """A recipe or a tool says how far it is."""

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Leave what was shown as it is."""


class LineView(Silent):
    """A line for every step that ended: for files, pipes and logs."""

    def __init__(self, channel: OutputChannel) -> None:
        self._channel = channel
        self._printed: set[tuple[str, str, str]] = set()

    def show(self, jobs: Sequence[JobStory]) -> None:
        for job in jobs:
            for step in job.steps:
                key = (job.job, step.step, step.state)
                if step.state in _MARKS and key not in self._printed:
                    self._printed.add(key)
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

    def __init__(self, channel: OutputChannel) -> None:
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
        text = step.error_code or (step.meta.result_preview if step.ok else step.reason or step.meta.args_preview)
        style = _STYLES.get(step.state, "")
        return [
            (f"  {self._mark(step.state)} ", style),
            (head, ""),
            (f" {time}", "dim"),
            ("  " + cut(one_line(text), room), "dim" if step.state == "ok" else style),
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
