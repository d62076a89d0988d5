"""`remit upgrade`: this version of Remit, and what another one left."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from remit.capability import Check
from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line, reserved_stdout
from remit.errors import JournalError, RemitError
from remit.journal.event import OPEN_STATES
from remit.journal.kinds.payload import REFERENCES
from remit.version import __version__

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.service.many import Replayed

_SHOWN: Final = 10
_PAGE: Final = 1_000
_OTHER: Final = "Upgrade the processes one after the other; `remit workers` lists them."
_CODE: Final = (
    "Keep a worker with the code that recorded it, declare `migrates`, or set jobs.mismatch (docs/versions.md)."
)
_KINDS: Final = (
    "A newer Remit, or a part that is not here, recorded them: they are passed over. Install that to read them."
)


async def look_at(remit: Remit, *, code: bool) -> list[Check]:
    """Return what journal and processes are like, and with `code` whether open jobs go on by the code that is here.

    Whether a job goes on is judged by its replay, as `remit replay --all` judges it (rule 22). Nothing is written.
    """
    checks = [_schema(remit), *await _workers(remit), await _kinds(remit)]
    return [*checks, *await _jobs(remit)] if code else checks


def _schema(remit: Remit) -> Check:
    journal = remit.runtime.journal
    if not journal.is_older:
        return Check("journal", "ok", f"{journal.url} has the schema of Remit {__version__}")
    reason = f"{journal.url} is of an older Remit; the first write brings it up to date, and no older Remit starts then"
    return Check("journal", "warn", reason, "Back it up (`remit journal backup`), then run `remit upgrade`.")


async def _workers(remit: Remit) -> list[Check]:
    """Say which processes of other versions work on the journal."""
    versions = Counter(view.remit for view in await remit.service.workers.views())
    others = ", ".join(f"{count} with Remit {name}" for name, count in sorted(versions.items()) if name != __version__)
    if others:
        return [Check("workers", "warn", f"of {versions.total()} processes {others}", _OTHER)]
    return [Check("workers", "ok", f"{versions.total()} processes, all with Remit {__version__}")] if versions else []


async def _kinds(remit: Remit) -> Check:
    """Say which recorded events this version does not know."""
    journal, unknown, position, more = remit.runtime.journal, Counter[str](), 0, True
    while more:
        page = await journal.scan(position, limit=_PAGE)
        unknown.update(placed.event.kind for placed in page.events if placed.event.kind not in REFERENCES)
        more, position = page.more and page.position > position, page.position
    if unknown:
        names = ", ".join(f"{kind} ({count})" for kind, count in unknown.most_common(_SHOWN))
        return Check(
            "events", "warn", f"{unknown.total()} events are of kinds that are not known here: {names}", _KINDS
        )
    return Check("events", "ok", "every recorded kind is known")


async def _jobs(remit: Remit) -> list[Check]:
    """Say of each open job that would not go on why not, and count the rest."""
    number, problems = 0, list[Check]()
    async for replayed in remit.service.jobs.replays(OPEN_STATES):
        number += 1
        if (problem := _problem(replayed)) is not None:
            problems.append(problem)
    if len(problems) > _SHOWN:
        problems = [
            *problems[:_SHOWN],
            Check("code", "fail", f"{len(problems) - _SHOWN} more jobs would not go on", _CODE),
        ]
    return problems or [Check("code", "ok", f"{number} open jobs fit the code that is here")]


def _problem(replayed: Replayed) -> Check | None:
    name, report = f"{replayed.job} {replayed.name}", replayed.report
    if report is None:
        return Check("code", "fail", f"{name}: {replayed.reason}", _CODE, replayed.code)
    if report.verdict == "diverged":
        step = report.divergence.step if report.divergence is not None else ""
        return Check("code", "fail", f"{name} takes another way at step {step}", _CODE, "NONDETERMINISTIC")
    if report.today == "refused":
        return Check(
            "code", "warn", f"{name}: today's tools or rules refuse what it called", "remit replay JOB shows it."
        )
    return None


def refused(name: str, error: RemitError) -> Check:
    """Return the finding that an error is."""
    return Check.failed(name, error, "Correct it, and look again.")


@click.command("upgrade")
@click.option("--check", is_flag=True, help="Write nothing; say also whether open jobs fit the code that is here.")
@json_option("the findings")
@pass_state
def command(state: CommandState, check: bool) -> int:
    """Bring the journal up to date, or say with --check whether all fits this Remit.

    Looks at the journal's schema, at events of a newer Remit, at processes of other versions and at remit.toml; --check
    also replays every open job on the code that is here, which imports your modules. A journal is never brought back to
    an older schema. Exits with status 1 if something does not fit; nothing is changed then.
    """
    with reserved_stdout():
        checks = _findings(state, code=check)
        fits = all(each.verdict != "fail" for each in checks)
        if fits and not check:
            state.ask_here(lambda remit: remit.runtime.journal.put_blobs(()), code="unused", writes=True)
    state.show([each._asdict() for each in checks], lambda state, _: _print(state, checks))
    return exit_codes.OK if fits else exit_codes.ERROR


def _findings(state: CommandState, *, code: bool) -> list[Check]:
    """Look at settings, then at the journal, then at code; what cannot be looked at is a finding."""
    from remit.capability import Check

    try:
        settings = state.settings()
    except RemitError as error:
        return [refused("settings", error)]
    checks = [Check("settings", "ok", settings.written.path or "no remit.toml")]
    try:
        return checks + state.ask_here(lambda remit: look_at(remit, code=code), code="needed" if code else "unused")
    except JournalError as error:
        return [*checks, refused("journal", error)]
    except RemitError as error:
        return [*checks, refused("code" if code else "settings", error)]


def _print(state: CommandState, checks: list[Check]) -> None:
    out = state.output.out
    for name, verdict, detail, remedy, code in checks:
        out.line(f"{out.style(f'{verdict:<4}', verdict)}  {name:<8}  {f'{code}: ' * bool(code)}{one_line(detail)}")
        if remedy:
            out.line(f"      {out.style('->', 'cyan')} {one_line(remedy)}")
