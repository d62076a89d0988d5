"""`remit config`: the settings as they stand."""

from __future__ import annotations

from typing import Any

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state


@click.command("config")
@click.option(
    "--schema",
    metavar="FILE",
    is_flag=False,
    flag_value="remit.toml",
    help="Print the JSON Schema of remit.toml, or of workflow.toml, for editors.",
)
@json_option("key, value and source of each setting")
@pass_state
def command(state: CommandState, schema: str | None) -> int:
    """Show every setting and where it came from.

    Later sources win: defaults, remit.toml, the environment, the command line.
    """
    import os

    from remit.settings.loader import UNREAD

    if schema is not None:
        return _print_schema(state, schema)
    settings = state.settings()
    rows = settings.explain()
    for name in UNREAD.keys() & os.environ.keys():
        state.note(f"{name} is set, and nothing reads it: {UNREAD[name]}")
    return state.show([{"key": row.key, "value": row.value, "source": row.source} for row in rows], _print)


def _print_schema(state: CommandState, name: str) -> int:
    from remit.wiring.schemas import schema_text

    state.output.out.line(schema_text(name).rstrip())
    return exit_codes.OK


def _print(state: CommandState, rows: list[dict[str, Any]]) -> None:
    import json

    from remit.cli.tables import TableColumn, table

    columns = ("SETTING", TableColumn("VALUE", whole=False), TableColumn("FROM", whole=False, style="dim"))
    shown = [(row["key"], json.dumps(row["value"], ensure_ascii=False), row["source"]) for row in rows]
    table(state.output.out, columns, shown)
