"""`remit sandbox`: what this machine can do to run code safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.codes import Code
from remit.errors import NotFoundError
from remit.parts.sandbox.leftovers import delete
from remit.parts.sandbox.limits import size_of
from remit.parts.sandbox.wiring import folder_of
from remit.parts.sandbox.workspaces import Workspace, Workspaces

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.parts.sandbox.driver import ProbeReport
    from remit.service.service import Service


COMMANDS: Final[dict[str, LazyCommand]] = {
    "probe": LazyCommand("Commands", "Show what each driver can do on this machine."),
    "workspaces": LazyCommand("Commands", "List the workspaces of jobs and sessions."),
    "clean": LazyCommand("Commands", "Delete workspaces that are no longer needed."),
}


@click.group("sandbox", cls=LazyGroup, package="remit.parts.sandbox.cli", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Check the sandbox, and manage its workspaces.

    The settings choose the driver and its limits; docs/sandbox.md says what each driver blocks.
    """
    show_help(context)


_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class WorkspaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace."""

    job: str
    """The job or session that it belongs to; empty: not known."""
    state: str
    """The job's state, `session`, or `unknown` if this journal has no such job."""
    bytes: int
    files: int
    used_at: int
    """Microseconds since the Unix epoch."""
    folder: str
    deletable: bool
    """Whether its job has ended, or it is a session's, and it was not used for long enough."""


async def listed(remit: Remit, days: int, *, unknown: bool) -> list[tuple[Workspace, WorkspaceRow]]:
    """Every workspace; those unused for `days` can be deleted, of unknown jobs only if `unknown`."""
    settings, now = remit.settings, remit.clock.now()
    return [
        (workspace, await _row(workspace, remit.service, now - days * 24 * 3_600_000_000, unknown=unknown))
        for workspace in Workspaces(folder_of(settings)).all()
    ]


async def _row(workspace: Workspace, service: Service, before: int, *, unknown: bool) -> WorkspaceRow:
    kind, _, name = workspace.conversation.partition("/")
    state = kind if kind in {"session", "call"} else "unknown"
    if kind == "job":
        try:
            state = (await service.jobs.row(name)).state
        except NotFoundError as error:
            if error.code is not Code.JOB_NOT_FOUND:
                raise
    size, files = size_of(workspace.folder)
    used = workspace.used_ns // 1_000
    over = state in _ENDED or state in {"session", "call"} or (unknown and state == "unknown")
    return WorkspaceRow(
        job=name,
        state=state,
        bytes=size,
        files=files,
        used_at=used,
        folder=str(workspace.folder),
        deletable=over and used <= before,
    )


def deleted(workspace: Workspace) -> bool:
    """Delete a workspace unless someone uses it at this moment."""
    with workspace.locked() as ours:
        if ours:
            delete(workspace.folder)
    return ours


@command.command("probe")
@json_option("what each driver can do")
@pass_state
def probe_command(state: CommandState) -> int:
    """Show what each driver can do on this machine.

    Starts each driver once, as a run would, on a program that does nothing. For the configured driver, also lists the
    programs behind `sandbox.commands`. Exits with status 1 if the configured driver does not reach
    `sandbox.min_isolation`.
    """
    from remit.cli.runner import run_to_end
    from remit.parts.sandbox.checks import commands, demanded, probed
    from remit.parts.sandbox.wiring import own_settings

    settings = state.trusted()
    probes = run_to_end(probed(settings))
    programs, driver = commands(settings), own_settings(settings).driver
    shown = [
        {
            **msgspec.to_builtins(probe),
            "level": probe.level.name,
            "chosen": (chosen := probe.driver == driver),
            "commands": {name: program for name, (program, _) in programs.items()} if chosen else {},
        }
        for probe in probes
    ]

    def told(state: CommandState, _: object) -> None:
        for probe in probes:
            chosen = probe.driver == driver
            _print_probe(state, probe, chosen=chosen)
            if chosen and probe.usable:
                _print_commands(state, programs)

    state.show(shown, told)
    enough = any(probe.driver == driver and probe.level >= demanded(settings) for probe in probes)
    return exit_codes.OK if enough else exit_codes.ERROR


def _print_probe(state: CommandState, report: ProbeReport, *, chosen: bool) -> None:

    out = state.output.out
    word, style = ("ok", "ok") if report.usable else ("fail", "fail") if chosen else ("no", "dim")
    level_text = f"{report.level.name}, version {report.version}" if report.usable else "; ".join(report.reasons)
    out.line(
        f"{out.style(f'{word:<4}', style)}  {report.driver:<9}  {one_line(level_text)}{'  (chosen)' if chosen else ''}"
    )
    if report.usable:
        for limit, mechanism in sorted(report.limits.items()):
            out.line(f"      {limit:<15}  {mechanism}")
    elif report.remedy:
        out.line(f"      {out.style('->', 'cyan')} {one_line(report.remedy)}")


def _print_commands(state: CommandState, programs: dict[str, tuple[str, str]]) -> None:

    out = state.output.out
    for name, (program, reason) in programs.items():
        out.line(f"      {one_line(name):<15}  {one_line(program) or out.style(one_line(reason), 'warn')}")


@command.command("workspaces")
@json_option("the workspaces")
@pass_state
def workspaces_command(state: CommandState) -> int:
    """List the workspaces of jobs and sessions.

    The most recently used comes first. Sizes include a workspace's inputs and the copy that lets a run start again
    after a crash.
    """

    async def look(remit: Remit) -> list[WorkspaceRow]:
        return [row for _, row in await listed(remit, 0, unknown=False)]

    return state.listing(state.ask_here(look, code="unused"), _print_workspaces, "there are no workspaces")


def _print_workspaces(state: CommandState, rows: list[WorkspaceRow]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = ("JOB", TableColumn("STATE", states=True), "BYTES", "FILES", TableColumn("USED", style="dim"))
    table(
        state.output.out,
        columns,
        [(one_line(row.job) or "?", row.state, str(row.bytes), str(row.files), moment(row.used_at)) for row in rows],
    )


@command.command("clean")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(0, 36_500),
    default=7,
    help="Only workspaces not used for N days. Default: 7.",
)
@click.option("--unknown", is_flag=True, help="Also delete workspaces of jobs that are not in this journal.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@json_option("the deleted workspaces")
@pass_state
def clean_command(state: CommandState, days: int, unknown: bool, dry_run: bool) -> int:
    """Delete workspaces that are no longer needed.

    Deletes the workspaces of ended jobs, and of sessions, that were not used for --days. Keeps the workspace of a job
    that can still continue, however long it waits, and any workspace in use. Collected files stay in the journal.
    """

    async def work(remit: Remit) -> list[WorkspaceRow]:
        workspaces = await listed(remit, days, unknown=unknown)
        return [row for workspace, row in workspaces if row.deletable and (dry_run or deleted(workspace))]

    rows = state.ask_here(work, code="unused")
    words = f"{len(rows)} workspaces of {sum(row.bytes for row in rows)} bytes"
    word = "would be deleted" if dry_run else "deleted"
    return state.show(rows, lambda state, _: state.output.out.line(f"{words} {word}"))
