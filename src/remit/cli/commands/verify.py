"""`remit verify`: is everything recorded as it was written?"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, counted, one_line
from remit.cli.values import usage_error
from remit.codes import Code
from remit.errors import JournalError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from remit.cli.access import Opened
    from remit.evidence.answer import CheckAnswer
    from remit.record.views import VerifyReport

_DAMAGE: Final = frozenset(
    {
        Code.CHAIN_BROKEN,
        Code.RECORD_CONTRADICTED,
        Code.JOURNAL_CORRUPT,
        Code.BLOB_MISSING,
        Code.HEAD_UNSEALED,
        Code.HEAD_FORGED,
        Code.CHECKPOINT_MISSING,
        Code.CHECKPOINT_DIFFERS,
    }
)
_STATUSES: Final = {"rejected": exit_codes.DAMAGED, "undecidable": 2}
"""The status that a package ends with, if it is not whole or a prefix."""
_SHOWN: Final = 20
"""Problems that are printed without --all."""
_EXPORTED: Final = "Name a file of `remit export`."
_ENDINGS: Final = (".zip", ".json", ".jsonl", ".ndjson")
"""Endings of files; a job's id has none."""


@click.command("verify")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option(
    "--all", "everything", is_flag=True, help="Check the whole journal, the default without JOB; print every problem."
)
@click.option(
    "--checkpoints",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare with signed checkpoints that were kept elsewhere.",
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Public key of the recorder or a witness; repeatable."
)
@click.option(
    "--stamp-roots",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Root certificates of the authority that stamps checkpoints, as PEM.",
)
@click.option("--decisions", is_flag=True, help="Derive every recorded decision again from the record.")
@click.option(
    "--issuer-keys",
    metavar="PATH",
    envvar="AEV_RECEIPT_JWKS",
    type=click.Path(path_type=Path, exists=True),
    help="The keys of who signed a file: a JWK set, or a folder of FINGERPRINT.pub. Never taken from the file.",
)
@json_option("what was checked, and the problems")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    job: str | None,
    everything: bool,
    checkpoints: Path | None,
    keys: tuple[str, ...],
    stamp_roots: Path | None,
    decisions: bool,
    issuer_keys: Path | None,
) -> int:
    """Check that no recorded event was changed.

    Each event is chained to the one before it by a hash; if the journal has a key, the newest event is also sealed.
    Prints the first event of a stream that does not match, and exits with status 7; with 8 if nothing is wrong, but the
    key of the journal's seals is not here. JOB (an id, a unique ending of one,
    `last`, or a session's id) limits the check to what belongs to it. JOB can also be a file that `remit export`
    wrote: it is checked without a journal. One in a format of others ends with the status 0 (valid), 1 (invalid) or
    2 (undecidable, as without --issuer-keys), and the last line says so as JSON. A report.md, report.json or
    report.html of the recipe research_report is compared with the journal: was it written so, and does each quotation
    stand in what was read?

    Where a recorder signs, the journal is compared with its checkpoints, and the answer is `whole` (a checkpoint of
    --checkpoints covers every event), `prefix` (more may have been recorded) or `rejected`. A package brings its
    checkpoints along: with --key, one of these keys must have signed all of it, or it is `undecidable`. --decisions
    looks at something else: whether the rules and the facts that are recorded with each decision lead to it.
    """
    if job is not None and everything:
        raise click.UsageError("Give JOB or --all, not both.", context)
    if job is not None and _is_file(job):
        if checkpoints is not None or stamp_roots is not None:
            remedy = "Of a package: --key, and `openssl ts -verify` for its stamps (docs/audit.md)."
            raise UsageError("--checkpoints and --stamp-roots are for a journal, not for a file", remedy=remedy)
        return _verify_file(state, job, issuer_keys, keys, decisions=decisions)
    if decisions and job is not None:
        raise click.UsageError("--decisions checks the whole journal, or a package: leave out JOB.", context)
    if decisions:
        return _verify_decisions(state)

    notes = _read(checkpoints) if checkpoints is not None else ""

    async def look(remit: Opened) -> VerifyReport:
        job_id = await remit.service.jobs.find(job) if job is not None else None
        return await remit.service.streams.verify(job_id, notes=notes, keys=keys, stamp_roots=str(stamp_roots or ""))

    try:
        report = state.ask(look, code="unused")
    except JournalError as error:
        if error.code not in _DAMAGE:
            raise
        from remit.record.views import VerifyReport

        report = VerifyReport(streams=0, events=0, problems=(error.message,), codes=(error.code.name,))
    import msgspec

    state.show(
        {**msgspec.structs.asdict(report), "ok": report.ok},
        lambda state, _: _print(state, report, everything=everything),
    )
    return exit_codes.DAMAGED if report.problems else exit_codes.UNCHECKED if report.keyless else exit_codes.OK


def _is_file(name: str) -> bool:
    """Say whether a file is meant: one is there, or the name ends as those of files do, and no job's."""
    return name.endswith(_ENDINGS) or Path(name).is_file() or Path(name, "manifest.json").is_file()


def _read(place: Path) -> str:
    with usage_error(f"cannot read {place}", "Name a file of checkpoints."):
        return place.read_text(encoding="utf-8", errors="replace")


def _verify_decisions(state: CommandState) -> int:
    report = state.ask(lambda remit: remit.service.drift.decisions(), code="unused")
    state.show(report, _print_decisions)
    return exit_codes.DAMAGED if report.different else exit_codes.OK


def _print_decisions(state: CommandState, report: Any) -> None:

    out = state.output.out
    for decision in report.different:
        where = f"{decision.stream} event {decision.seq}, {decision.tool}"
        outcomes = f"recorded {decision.recorded}, derived {decision.derived}"
        out.line(f"{out.style('different', 'fail')}  {one_line(where)}: {outcomes}")
    first = out.style("ok", "ok") if not report.different else out.style("fail", "fail")
    out.line(f"{first} {report.same} of {counted(report.decisions, 'decision')} derived again")
    for reason, count in report.missing.items():
        state.note(f"{counted(count, 'decision')} could not be derived: {reason}")


def _verify_file(state: CommandState, path: str, issuers: Path | None, keys: Sequence[str], *, decisions: bool) -> int:
    """Check a package, or a file of another format, which answers as the corpora of these formats want it."""
    import msgspec

    from remit.evidence.answer import STATUSES
    from remit.wiring.capabilities import FIRST_PARTY
    from remit.wiring.parts import answer_of, comparison_of

    with usage_error(f"cannot read {path}", _EXPORTED):
        compare = None if decisions else comparison_of(FIRST_PARTY, Path(path))
        answer = None if decisions or compare is not None else answer_of(FIRST_PARTY, Path(path), issuers)
    if compare is not None:
        answer = _compared(state, compare)
    if answer is None:
        return _verify_package(state, path, keys, decisions=decisions)
    last = {"verdict": answer.verdict, "code": answer.code}
    style = "fail" if answer.verdict == "invalid" else "ok"

    def told(state: CommandState, _: object) -> None:
        out = state.output.out
        out.line(f"{out.style(answer.verdict, style)} {clean(path)}: {clean(answer.words)}")
        out.line(str(msgspec.json.encode(last), "utf-8"))

    state.show({**last, "file": path, "words": answer.words, "records": answer.records}, told)
    return STATUSES[answer.verdict]


def _compared(state: CommandState, compare: Callable[[Any], Awaitable[CheckAnswer]]) -> CheckAnswer:
    return state.ask(lambda remit: compare(remit.service), code="unused")


def _verify_package(state: CommandState, path: str, keys: Sequence[str], *, decisions: bool) -> int:
    from remit.evidence.note import NoteKey
    from remit.evidence.program import sources
    from remit.evidence.verify import check, describe

    try:
        parsed = [NoteKey.parse(text) for text in keys]
    except ValueError as error:
        raise UsageError(f"--key: {error}", remedy="Copy it whole, as it was printed: name+id+key.") from error
    with usage_error(f"cannot read {path}", _EXPORTED):
        verdict = check(path, sources() if decisions else None, parsed)
    out = state.output.out
    first, _, rest = describe(path, verdict).partition(" ")
    style = {"rejected": "fail", "undecidable": "warn"}.get(verdict.state, "ok")
    line = f"{out.style(first, style)} {clean(rest)}"
    state.show({"package": path, **verdict.members()}, lambda _state, _verdict: out.line(line))
    return _STATUSES.get(verdict.state, exit_codes.OK)


def _print(state: CommandState, report: VerifyReport, *, everything: bool) -> None:
    checked = f"{counted(report.events, 'event')} in {counted(report.streams, 'stream')}"
    if report.problems:
        _print_damage(state, report, everything=everything)
    elif report.keyless:
        _print_keyless(state, report, checked)
    else:
        _print_intact(state, report, checked)


def _print_damage(state: CommandState, report: VerifyReport, *, everything: bool) -> None:
    intact = report.streams - report.damaged
    rest = f"the other {intact} ({counted(report.events, 'event')}) intact" if intact else "none intact"
    state.note(f"{report.damaged} of {counted(report.streams, 'stream')} damaged; {rest}")
    out, rows = state.output.out, [*zip_longest(report.codes, report.problems, fillvalue="")]
    shown = rows if everything else rows[:_SHOWN]
    for code, problem in shown:  # an older server says no codes
        out.line(f"{out.style('damaged', 'fail')} {f'{code}: ' * bool(code)}{clean(problem)}")
    if len(shown) < len(rows):
        state.note(f"and {len(rows) - len(shown)} more: `remit verify --all`")


def _print_keyless(state: CommandState, report: VerifyReport, checked: str) -> None:
    from remit.journal.seals import keyless

    out, error = state.output.out, keyless(bytes.fromhex(report.key))
    seals = counted(report.keyless, "seal")
    out.line(f"{out.style('unchecked', 'warn')} {checked}: every hash matches; {seals} cannot be checked here")
    state.note(f"{error.code.name}: {error.message}")
    state.note(f"  -> {error.remedy}")


def _print_intact(state: CommandState, report: VerifyReport, checked: str) -> None:
    out, sealed = state.output.out, report.sealed == report.streams > 0
    out.line(f"{out.style('ok', 'ok')} {checked}: every hash matches{', every head is sealed' * sealed}")
    if report.signed:
        out.line(f"signed: {counted(report.signed, 'approval')}, every signature valid")
    if report.unchecked:
        unchecked = counted(report.unchecked, "signature")
        state.note(f"not checked: {unchecked} of approvals; set confirm.allowed_signers")
    if not sealed and report.streams:
        state.note("anyone who can write to the journal can forge heads without a seal: see `remit journal seal`")
    if report.pruned:
        gone = f"{counted(report.removed, 'event')} of {counted(report.pruned, 'stream')}"
        out.line(f"pruned: {gone}; the stub of each continues its chain")
    if report.checkpoints:
        _print_checkpoints(state, report)
    if report.reported:
        state.note(f"{counted(report.reported, 'end')} of calls stand as their clients reported them")
    for part in report.skipped:
        state.note(f"not all that was signed was compared: {part}")
    if report.erased:
        out.line(f"erased: {counted(report.erased, 'value')}, with their subject; the erasure is on record")


def _print_checkpoints(state: CommandState, report: VerifyReport) -> None:
    from remit.clock import isoformat

    out = state.output.out
    rest = f"{counted(report.uncovered, 'event')} came after" if report.uncovered else "every event is covered"
    fit = "fits" if report.checkpoints == 1 else "fit"
    out.line(f"{out.style(report.state, 'ok')} {counted(report.checkpoints, 'signed checkpoint')} {fit}; {rest}")
    if report.cosigned:
        out.line(f"a witness cosigned {counted(report.cosigned, 'leaf', 'leaves')}")
    if report.stamped:
        stamped = counted(report.stamped, "leaf", "leaves")
        out.line(f"an authority stamped {stamped} at {isoformat(report.stamped_at)}")
    elif report.stamps and not report.skipped:
        state.note(
            f"no root certificate is known that {counted(report.stamps, 'stamp')} would follow from: --stamp-roots"
        )
    if report.keys == "named":
        state.note("the journal alone says whose key signed: give it with --key, or set recorder.key")
    if report.state == "prefix":
        state.note(
            "a newer end may have been cut off: compare with --checkpoints, from the second place or the witness"
        )
