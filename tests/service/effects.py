"""What becomes of an effect: causes acted out with a tool of each class, told as the table of docs/durability.md.

python -m tests.service.effects    writes the table into the page
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from remit import Remit, Run, recipe
from remit.codes import Code
from remit.errors import ProviderError, RemitError
from remit.jobs.state import ENDED
from remit.parts.tickets.report import RunReport
from remit.parts.tickets.run import RunRequest
from remit.parts.tickets.steps import ToolStep
from remit.parts.tickets.tickets import tickets_of
from remit.record.step import StateDiff
from remit.record.views import JobRow
from remit.settings import load
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolResult
from tests.opened import until

PAGE: Final = Path(__file__).parents[2] / "docs/durability.md"
BEGIN: Final = "<!-- effects: made by tests/service/effects.py -->\n"
END: Final = "<!-- end of effects -->\n"
NOTHING: Final = "none to record"
HEAD: Final = (
    "| what happened | tool | effect | who says so | the job | retry | fork | next attempt at a ticket |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


class Cause(NamedTuple):
    """What a tool does once it had its effect, or before."""

    words: str
    act: Callable[[], Any]
    """Gives the tool's answer, or raises."""
    sent: bool = True
    """Whether the tool had its effect."""
    refused: bool = False
    """Whether policy refuses the call."""
    decision: Literal["", "done", "fail"] = ""
    """What a person then decides on a step whose outcome is unknown."""


def raises(error: BaseException) -> Callable[[], Any]:
    """A tool that fails."""

    def act() -> Any:
        raise error

    return act


def deep() -> Any:
    """A value of 300 levels."""
    value: Any = 1
    for _ in range(300):
        value = [value]
    return value


LOST: Final = raises(ProviderError("gone", cause=Code.ConnectionError))
CAUSES: Final = (
    Cause("policy refuses the call", lambda: 1, sent=False, refused=True),
    Cause("the tool answers", lambda: 1),
    Cause("its answer does not fit its output schema", lambda: "one"),
    Cause("its answer is too large", lambda: "x" * 20_000_000),
    Cause("its answer is too deep", deep),
    Cause("its answer cannot be JSON", lambda: object()),  # noqa: PLW0108 - another object each time
    Cause("its answer is no result at all", lambda: None),
    Cause("it raises an exception, or says that it failed (`isError`)", raises(LookupError("half done"))),
    Cause("it refuses what it is given (`InvalidInput`)", raises(ProviderError("no such account")), sent=False),
    Cause(
        'it says that nothing happened (`effect="none"`)',
        raises(ProviderError("declined", cause=None, effect="none")),
        sent=False,
    ),
    Cause("the call was never sent (`SpawnFailed`)", raises(ProviderError("x", cause=Code.SpawnFailed)), sent=False),
    Cause("no answer in time", raises(ProviderError("late", cause=Code.Timeout))),
    Cause("the connection is lost", LOST),
    Cause("an answer that cannot be read", raises(ProviderError("not JSON", cause=Code.BadGateway))),
    Cause("… and a person says that it is done", LOST, decision="done"),
    Cause("… and a person says that it failed", LOST, decision="fail"),
)
CLASSES: Final = ("reads", "idempotent", "writes")


class Ending(NamedTuple):
    """What the call comes to that is made again after its process ended."""

    words: str
    act: Callable[[], Any]


ENDINGS: Final = (
    Ending("", lambda: 1),
    Ending(", and the next call is never sent", raises(ProviderError("x", cause=Code.SpawnFailed))),
    Ending(", and the next is refused as `InvalidInput`", raises(ProviderError("no such account"))),
)


class Odd:
    """A provider of one tool of each class, which pays and then does what a cause says."""

    provider_id = "odd"

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.paid: list[str] = []
        """The idempotency keys that it paid under, each once."""
        self.calls = Counter[str]()
        """How often it was called, by idempotency key."""

    async def list_tools(self) -> Sequence[ToolMeta]:
        return [
            ToolMeta(
                name=f"odd.{name}",
                provider_id="odd",
                input_schema={"type": "object"},
                output_schema={"type": ["integer", "array", "object"]}
                if self.cause.words != "its answer is too large"
                else None,
                capability_level=Level.L0 if name == "reads" else Level.L1,
                risk_level=Risk.READ_ONLY if name == "reads" else Risk.WRITE,
                side_effects=name != "reads",
                idempotent=name == "idempotent",
                requires_confirm=False,
            )
            for name in CLASSES
        ]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.calls[ctx.idempotency_key] += 1
        if self.cause.sent and (name != "odd.idempotent" or ctx.idempotency_key not in self.paid):
            self.paid.append(ctx.idempotency_key)
        answer = self.cause.act()
        answer = await answer if isawaitable(answer) else answer
        return answer if answer is None else ToolResult(answer)  # type: ignore[return-value] # None is the cause

    async def close(self) -> None:
        pass


@recipe("pays")
async def pays(run: Run, tool: str) -> Any:
    """Make one call."""
    return (await run.call(tool, {})).value


class Row(NamedTuple):
    """What came of it."""

    cause: Cause
    tool: str
    effect: str
    by: str
    state: str
    retry: str
    fork: str
    ticket: str
    paid: int
    """How often it had its effect, before and after everything was tried that needs no decision."""


async def acted(cause: Cause, tool: str) -> Row:
    """Run a job, then retry and fork it, and a ticket twice, without a word that calls may be repeated."""
    odd = Odd(cause)
    rule = {"effect": "deny" if cause.refused else "allow", "tools": ["odd.*"]}
    async with Remit(":memory:", providers=[odd], recipes=[pays], policy=[rule]) as remit:
        report = await tickets_of(remit.service).executor().execute(run_of(tool))
        if cause.decision:
            await remit.service.steps.decide(report.run_id, "s0", cause.decision, value=1, reason="I looked")
            await until(remit, report.run_id, lambda row: row.state in ENDED)
        job = await remit.service.jobs.start_named("pays", {"tool": f"odd.{tool}"})
        row = await until(remit, job, settled)
        if cause.decision:
            await remit.service.steps.decide(job, "1", cause.decision, value=1, reason="I looked")
            row = await until(remit, job, lambda row: row.state in ENDED)
        return await tried(remit, odd, row, tool)


async def killed(tool: str, journal: Path, then: Ending) -> Row:
    """Run a job whose process ends before the answer came; resume it in the next, then retry and fork it."""
    never, called = asyncio.Event(), asyncio.Event()

    async def silence() -> Any:
        called.set()
        await never.wait()

    words = f"its process ends before the answer came{then.words}"
    odd, rule = Odd(Cause(words, silence)), {"effect": "allow", "tools": ["odd.*"]}
    hurried = load(cwd=journal.parent, file=None, env={}, flags={"jobs.drain_seconds": 0})
    async with Remit(str(journal), settings=hurried, providers=[odd], recipes=[pays], policy=[rule]) as remit:
        job = await remit.service.jobs.start_named("pays", {"tool": f"odd.{tool}"})
        await called.wait()
        called.clear()
        attempt = asyncio.create_task(tickets_of(remit.service).executor().execute(run_of(tool)))
        await called.wait()
    attempt.cancel()
    await asyncio.wait([attempt])
    odd.cause = odd.cause._replace(act=then.act, sent=False)
    async with Remit(str(journal), providers=[odd], recipes=[pays], policy=[rule]) as remit:
        await tickets_of(remit.service).executor().execute(run_of(tool))
        row = await until(remit, job, settled)
        odd.cause = odd.cause._replace(act=lambda: 1, sent=True)
        return await tried(remit, odd, row, tool)


def settled(row: JobRow) -> bool:
    """Return whether a job has ended, or waits for a person."""
    return not row.worker and (row.state in ENDED or (row.state == "waiting" and row.due_at is None))


def run_of(tool: str) -> RunRequest:
    """A ticket's run of one call."""
    return RunRequest(ticket_id="tkt_a", tool_steps=(ToolStep(tool_name=f"odd_{tool}"),))


async def tried(remit: Remit, odd: Odd, row: JobRow, tool: str) -> Row:
    """Retry a job and fork it, and make the next attempt at a ticket that came to the same end."""
    told = (await remit.service.streams.narrative(row.job)).steps[0].state_diff
    attempts, before = max(odd.calls.values(), default=0), len(odd.paid)
    completed = "1" if row.state == "completed" else ""
    attempt = tickets_of(remit.service).executor().execute(replace(run_of(tool), attempt=1))
    ends = (
        await refused_or_made(remit, odd, remit.service.jobs.retry(row.job, completed)),
        await refused_or_made(remit, odd, remit.service.forks.make(row.job, "1")),
        await refused_or_made(remit, odd, attempt),
    )
    return Row(odd.cause, tool, *said(told), state(row.state, attempts), *ends, len(odd.paid) - before)


async def refused_or_made(remit: Remit, odd: Odd, making: Any) -> str:
    """Say what a retry, a fork or an attempt did."""
    before = odd.calls.total()
    try:
        made = await making
    except RemitError as error:
        return f"`{error.code.name}`"
    if not isinstance(made, RunReport):
        await until(remit, made.job, settled)
    return "calls again" if odd.calls.total() > before else "makes no call"


def said(told: StateDiff | None) -> tuple[str, str]:
    """Effect and who says so, as recorded."""
    return (told.effect, told.effect_by) if told is not None else ("", "")


def state(word: str, attempts: int) -> str:
    """The job's state, after so many attempts."""
    often = f", after {attempts} calls" if attempts > 1 else ""
    return f"{'asks a person' if word == 'waiting' else word}{often}"


def table(rows: Sequence[Row]) -> str:
    """The rows as the page has them; classes of tools of which the same is true share one."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        cells = (row.effect or NOTHING, row.by or NOTHING, row.state, row.retry, row.fork, row.ticket)
        lines.setdefault((row.cause.words, *cells), []).append(row.tool)
    return HEAD + "".join(
        f"| {words} | {', '.join(tools)} | {' | '.join(cells)} |\n" for (words, *cells), tools in lines.items()
    )


async def every() -> list[Row]:
    """Act all of it out; a person is asked only about what may not be repeated."""
    rows = [await acted(cause, tool) for cause in CAUSES for tool in (CLASSES if not cause.decision else ("writes",))]
    with TemporaryDirectory() as folder:
        for number, then in enumerate(ENDINGS):
            rows += [await killed(tool, Path(folder) / f"{tool}{number}", then) for tool in CLASSES]
    return rows


def main() -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + table(asyncio.run(every())) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
