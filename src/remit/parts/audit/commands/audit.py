"""`remit audit`: who did, allowed and refused what?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.file_writer import require_free
from remit.cli.options import json_option, pass_state
from remit.parts.audit.facts import What

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel
    from remit.parts.audit.answers import Answer
    from remit.parts.audit.facts import Entry
    from remit.parts.audit.report import Report

_WHAT: Final = get_args(What)
_LINES: Final = 30
"""Sums that are shown; `--json` has all."""


@click.command("audit")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option("--tool", default="", metavar="NAME", help="One tool, or those of a glob.", shell_complete=complete.tools)
@click.option("--model", default="", metavar="NAME", help="One model, as it was asked or as it answered; a part of it.")
@click.option("--principal", default="", metavar="NAME", help="What one principal did, asked for or decided.")
@click.option("--since", metavar="AGE", help="Everything recorded in this time: 30m, 7d, or from a time on.")
@click.option("--until", metavar="AGE", help="Nothing that is younger than this.")
@click.option("--what", metavar="KIND", type=click.Choice(_WHAT), help=f"Only acts of this kind: {', '.join(_WHAT)}.")
@click.option("--before", type=click.IntRange(min=0), default=0, metavar="N", help="Continue an earlier page.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, metavar="N", help="Acts on a page. Default: 50.")
@click.option("--today", is_flag=True, help="Also say what is different today, and whether JOB would go on.")
@click.option("--against", default="", metavar="OTHER", help="Also say what another run did otherwise.")
@click.option("--again", is_flag=True, help="Read every event again, without the index over the journal.")
@click.option(
    "--report", is_flag=True, help="Say which duties of record-keeping the record answers, and what is missing."
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what JOB did, or the report, to one HTML file that needs nothing else.",
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report to a file in Markdown.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option("sums by tool and model, and the acts")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    /,
    job: str | None,
    since: str | None,
    until: str | None,
    *,
    today: bool,
    report: bool,
    html: Path | None,
    markdown: Path | None,
    force: bool,
    **narrowing: Any,
) -> int:
    """Say who did, allowed and refused what, in which versions, and what is not known.

    Of JOB, or of everything that is recorded: which version and schema of a tool ran, which model answered and what it
    cost, who approved what on which digest with which proof, what was refused and why, which effects are uncertain. JOB
    is an id, a unique ending of one, `last`, or the id of a session. A question about a whole journal makes an index
    over it, the first time and from what is new; `--again` reads every event, and exits with status 6 if the index says
    otherwise.
    """
    from remit.cli.values import moment_us
    from remit.clock import SystemClock

    if not job and (today or narrowing["against"]):
        raise click.UsageError("Give JOB with --today and --against.", context)
    if report and (job or any(narrowing[name] for name in ("tool", "model", "principal", "what"))):
        raise click.UsageError("A report is about everything that is recorded: only --since and --until go with it.")
    if markdown is not None and not report:
        raise click.UsageError("Give --report with --markdown.", context)
    now = SystemClock().now()
    begin = moment_us(since, "--since", now) if since else 0
    end = moment_us(until, "--until", now) if until else None
    if report:
        return _report(state, begin, end, html, markdown, force=force)
    if html is not None:
        return _write_trace(context, state, job, html, force=force)
    return _answer(state, job or "", since=begin, until=end, today=today, **narrowing)


def _answer(state: CommandState, job: str, **question: Any) -> int:
    from remit.cli.output import reserved_stdout
    from remit.cli.runnable import count_in_files_of

    if question["today"]:
        count_in_files_of(state, (job,))

    with reserved_stdout():
        answer: Answer = state.ask(
            lambda remit: remit.service.audit.ask(job, **question), code="needed" if question["today"] else "unused"
        )
    state.show(answer, lambda state, view: _print(state, view, question["what"]))
    return exit_codes.DIVERGED if answer.index == "differs" else exit_codes.OK


def _write_trace(context: click.Context, state: CommandState, job: str | None, place: Path, *, force: bool) -> int:
    if not job:
        raise click.UsageError("Give JOB or --report with --html.", context)
    require_free(place, force=force)

    async def look(remit: Opened) -> bytes:
        job_id = await remit.service.jobs.find(job)
        data: bytes = await remit.service.audit.trace(job_id)
        await remit.service.audit.note_export(job_id, "audit --html")
        return data

    _write(state, place, state.ask(look, code="unused"))
    return exit_codes.OK


def _write(state: CommandState, place: Path, data: bytes) -> None:
    from remit.atomic import replace_file

    replace_file(place, data)
    line = f"{place}  {len(data)} bytes"
    state.show({"file": str(place), "bytes": len(data)}, lambda state, _: state.output.out.line(line))


def _report(
    state: CommandState, since: int, until: int | None, html: Path | None, markdown: Path | None, *, force: bool
) -> int:
    from remit.parts.audit import report

    for place in filter(None, (html, markdown)):
        require_free(place, force=force)

    audit_report: Report = state.ask(lambda remit: remit.service.audit.report(since, until=until), code="unused")
    if html is not None:
        _write(state, html, report.html(audit_report))
    if markdown is not None:
        _write(state, markdown, report.markdown(audit_report).encode())
    if html is None and markdown is None:
        state.show(audit_report, _print_report)
    return exit_codes.OK


def _print_report(state: CommandState, report: Report) -> None:
    from remit.cli.tables import TableColumn, table
    from remit.parts.audit.report import when

    out = state.output.out
    out.line(when(report))
    out.line()
    columns = [
        TableColumn("SOURCE"),
        TableColumn("CLAUSE"),
        TableColumn("ANSWER", states=True),
        TableColumn("EVENTS"),
        TableColumn("DUTY"),
    ]
    rows = [(row.source, row.clause, row.answer, f"{row.events:,}", row.duty) for row in report.duties]
    table(out, columns, rows, below=[" ".join(row.gaps) or "; ".join(row.details) for row in report.duties])
    out.line()
    out.line(out.style("Retention in force (AI Act, 19 and 26(6))", "bold"))
    kept_rows = [(row.what, row.kept, "yes" if row.enough else "no") for row in report.kept]
    table(out, [TableColumn("KEPT"), TableColumn("FOR"), TableColumn("SIX MONTHS")], kept_rows)


def _print(state: CommandState, answer: Answer, wanted: What | None) -> None:
    from remit.cli.output import counted, one_line

    out = state.output.out
    out.line(f"{one_line(answer.job or 'everything recorded')}  {counted(answer.events, 'event')}")
    if answer.pruned:
        out.line(f"{counted(answer.pruned, 'stream')} pruned: look into the packages that were archived before")
    if wanted is None:
        _sums(state, answer)
    for what, shape in _SHAPES.items():
        entries = [entry for entry in answer.entries if entry.what in what]
        _section(state, shape, entries, sum(answer.acts.get(act, 0) for act in what if wanted in {None, act}))
    if not (answer.entries or (wanted is None and (answer.tools or answer.models))):
        out.line("there is no more" if answer.acts.get(wanted or "") else "nothing of this is recorded")
    if answer.resumes:
        _print_today(out, answer)
    if answer.against is not None:
        _print_against(out, answer)
    if answer.index:
        out.line(f"the index over the journal said {'the same' if answer.index == 'same' else 'otherwise'}")
    if answer.next:
        state.note(f"there is more: --before {answer.next}")


def _print_today(out: OutputChannel, answer: Answer) -> None:
    from remit.cli.output import one_line
    from remit.service.replay import GOING_ON

    out.line()
    style, words = GOING_ON[answer.resumes]
    out.line(f"{out.style('today', style)}  {words}; `remit drift {answer.job}` says more")
    for reason in answer.because:
        out.line(f"    {one_line(reason)}")


def _print_against(out: OutputChannel, answer: Answer) -> None:
    from remit.cli.output import one_line

    out.line()
    other = answer.against["b"]["job"]
    parts = ", ".join(f"{answer.against[name]} {name}" for name in ("same", "changed", "removed", "added"))
    out.line(f"against {other}: steps {parts}; `remit diff {answer.job} {other}` says more")
    for step in (answer.against, *answer.against["steps"]):
        place = (
            f"{step.get('a') or step.get('b')} {step['name'].removeprefix('tool.')}" if "name" in step else "the run"
        )
        for difference in step.get("differences", ()):
            here, there = (one_line(difference[side]) or "none" for side in ("a", "b"))
            out.line(f"    {one_line(place)}  {difference['about']}: {here}; there: {there}")


def _sums(state: CommandState, answer: Answer) -> None:
    from remit.cli.tables import TableColumn, moment, table
    from remit.record.usage import priced

    out = state.output.out
    tools = [
        (
            row.tool, row.version or "none", _digest(row.request_schema_hash), f"L{row.capability_level}",
            row.side_effect, row.principal, str(row.calls), str(row.ok), str(row.failed), moment(row.last_at),
        )
        for row in answer.tools[:_LINES]
    ]  # fmt: skip
    models = [
        (
            row.asked, row.answered or "none", row.principal, str(row.answers), str(row.failed), f"{row.tokens:,}",
            priced(row.cost if row.cost or not row.unpriced else None, row.unpriced), moment(row.last_at),
        )
        for row in answer.models[:_LINES]
    ]  # fmt: skip
    for title, words, rows, number in (
        ("Tools", _TOOLS, tools, len(answer.tools)), ("Models", _MODELS, models, len(answer.models)),
    ):  # fmt: skip
        if rows:
            out.line()
            out.line(out.style(title, "bold"))
            table(out, [TableColumn(word, whole=word not in _CUT) for word in words], rows, indent=2)
        if number > len(rows):
            state.note(f"{number - len(rows)} more: --json")


_TOOLS: Final = ("TOOL", "VERSION", "SCHEMA", "LEVEL", "EFFECT", "FOR", "CALLS", "OK", "FAILED", "LAST")
_MODELS: Final = ("ASKED", "ANSWERED", "FOR", "ANSWERS", "FAILED", "TOKENS", "US$", "LAST")
_CUT: Final = frozenset({"VERSION", "FOR", "WHO", "ANSWERED", "ABOUT"})


class _Shape(NamedTuple):
    """A section of acts."""

    title: str
    columns: tuple[str, ...]
    row: Callable[[Entry], tuple[str, ...]]
    about: Callable[[Entry], str] | None = None
    """The line below each row."""


def _digest(text: str) -> str:
    return text.removeprefix("sha256:")[:12] or "none"


def _place(entry: Entry) -> str:
    root = entry.stream.split("/")[1] if "/" in entry.stream else entry.stream
    return f"{root} {entry.step}".rstrip()


def _proof(entry: Entry) -> str:
    signed = " signed" if entry.signed else ""
    other = "" if entry.asked_digest in {"", entry.digest} or not entry.digest else " of another digest"
    return f"{entry.proof or 'none'}{signed}{other}"


_SHAPES: Final[dict[tuple[What, ...], _Shape]] = {
    ("called",): _Shape(
        "Calls",
        ("STEP", "TOOL", "VERSION", "SCHEMA", "RULE", "WHO", "OUTCOME", "EFFECT"),
        lambda row: (
            row.step, row.name, row.version or "none", _digest(row.request_schema_hash), row.rule_id, row.who,
            f"{row.outcome}, repaired" if row.repaired else row.outcome, row.effect,
        ),
    ),
    ("decided",): _Shape(
        "Decisions of models",
        ("STEP", "ASKED", "ANSWERED", "TEMPERATURE", "PROMPT", "TOKENS"),
        lambda row: (
            row.step, row.name, row.answered or row.code, "" if row.temperature is None else f"{row.temperature:g}",
            _digest(row.prompt_hash), f"{row.tokens:,}",
        ),
    ),
    ("answered", "remembered", "revoked"): _Shape(
        "Approvals",
        ("WHO", "DECISION", "ABOUT", "DIGEST", "PROOF", "WHERE"),
        lambda row: (
            row.who, row.outcome or row.what, row.name, _digest(row.digest), _proof(row), _place(row),
        ),
        lambda row: row.reason,
    ),
    ("refused",): _Shape(
        "Refused",
        ("WHO", "TOOL", "CODE", "RULE", "WHERE"),
        lambda row: (row.who, row.name, row.code, row.rule_id or "none", _place(row)),
        lambda row: row.reason,
    ),
    ("uncertain",): _Shape(
        "Uncertain effects",
        ("WHO", "TOOL", "KEY", "WHERE"),
        lambda row: (row.who, row.name, _digest(row.idempotency_key), _place(row)),
    ),
    ("ungoverned",): _Shape(
        "Ran ungoverned",
        ("TOOL", "CALL", "WHERE"),
        lambda row: (row.name, row.call_id, _place(row)),
    ),
    ("read",): _Shape(
        "Reads",
        ("WHO", "FACE", "OPERATION", "OF"),
        lambda row: (row.who or "anyone", row.face, row.name, " ".join(row.names.values())),
    ),
    ("resolved", "stopped", "erased"): _Shape(
        "Decisions of people",
        ("WHO", "WHAT", "ABOUT", "WHERE"),
        lambda row: (row.who, f"{row.what} {row.outcome}".rstrip(), row.name, _place(row)),
        lambda row: row.reason,
    ),
}  # fmt: skip


def _section(state: CommandState, shape: _Shape, entries: list[Entry], number: int) -> None:
    from remit.cli.tables import TableColumn, moment, table

    if not number:
        return
    out = state.output.out
    out.line()
    shown = f" ({len(entries)} of {number} on this page)" if number > len(entries) else ""
    out.line(f"{out.style(shape.title, 'bold')}{out.style(shown, 'dim')}")
    columns = [TableColumn(word, whole=word not in _CUT, states=word == "OUTCOME") for word in ("AT", *shape.columns)]
    rows = [(moment(row.at), *shape.row(row)) for row in entries]
    below = [shape.about(row) for row in entries] if shape.about is not None else []
    table(out, columns, rows, indent=2, below=below if any(below) else ())
