"""`remit tickets show`: one ticket, or the report of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.tickets.commands.session import session, show_ticket

if TYPE_CHECKING:
    from remit.tickets.report import RunReport
    from remit.tickets.tickets import Tickets


@click.command("show")
@click.argument("ticket")
@click.option("--report", is_flag=True, help="Show the report of the newest run.")
@json_option("the ticket, or the report")
@pass_state
def command(state: State, ticket: str, report: bool) -> int:
    """Show a ticket: its message, state and outputs."""
    if not report:
        show_ticket(state, session(state, lambda tickets: tickets.get(ticket), writes=False), whole=True)
        return exit_codes.OK

    async def look(tickets: Tickets) -> RunReport | None:
        return await tickets.report(ticket)

    found = session(state, look, writes=False)
    if state.as_json:
        state.output.json(found)
    elif found is None:
        state.note(f"no run of {ticket} has begun")
    else:
        _print(state, found)
    return exit_codes.OK


def _print(state: State, report: RunReport) -> None:
    from remit.cli.tables import Column, fields, table

    out = state.output.out
    out.line(f"{report.run_id}  {out.style(report.status, report.status)}  {report.code or ''}".rstrip())
    fields(
        out,
        (
            ("began", report.started_at),
            ("took", f"{report.duration_ms} ms"),
            ("verdict", f"{report.tool_verdict.status} {report.tool_verdict.reason}".strip()),
            ("evidence", str(len(report.evidence_summary.items))),
        ),
    )
    columns = (
        Column("STEP"),
        Column("TOOL"),
        Column("STATE", states=True),
        Column("CODE"),
        Column("MS"),
        Column("RESULT", whole=False),
    )
    rows = [
        (str(step.step_index), step.tool_name, step.status, step.code or "", str(step.duration_ms), step.result_summary)
        for step in report.step_reports
    ]
    table(out, columns, rows, indent=2)
