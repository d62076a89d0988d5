"""`remit config`: the settings as they stand."""

from __future__ import annotations

from typing import Any

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state


@click.command("config")
@json_option("key, value and source of each setting")
@pass_state
def command(state: State) -> int:
    """Show every setting and where it came from.

    Later sources win: defaults, remit.toml, the environment, the command line.
    """
    import os

    from remit.settings.loader import UNREAD

    settings = state.settings()
    rows = settings.explain()
    for name in UNREAD.keys() & os.environ.keys():
        state.note(f"{name} is set, and nothing reads it: {UNREAD[name]}")
    return state.show([{"key": row.key, "value": row.value, "source": row.source} for row in rows], _print)


def _print(state: State, rows: list[dict[str, Any]]) -> None:
    import json

    from remit.cli.tables import Column, table

    columns = ("SETTING", Column("VALUE", whole=False), Column("FROM", whole=False, style="dim"))
    shown = [(row["key"], json.dumps(row["value"], ensure_ascii=False), row["source"]) for row in rows]
    table(state.output.out, columns, shown)
