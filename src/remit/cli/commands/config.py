"""Settings and the trust in them: `remit config` and `remit trust`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.settings import Settings


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


@click.command("trust")
@click.option("--list", "listed", is_flag=True, help="List the settings files that you trust.")
@click.option("--revoke", is_flag=True, help="Stop trusting this folder's settings.")
@click.option("--yes", is_flag=True, help="Do not ask: you know what the folder does.")
@click.option("--edits", is_flag=True, help="Also trust later edits, in a folder that only you write to.")
@json_option("the trusted files, or what there is to trust")
@pass_state
def trust(state: CommandState, listed: bool, revoke: bool, yes: bool, edits: bool) -> int:
    """Let this folder's settings run code and allow calls.

    Until you do, its modules are not imported, its MCP servers are not started, and its rules allow nothing. Shows
    first what the settings would do. Trust covers remit.toml and workflow.toml, their owner and contents, and the
    modules and programs that they name; if one of them changes, Remit asks again. Trust is stored outside the folder.
    """
    if listed:
        return _list(state)
    settings = state.settings()
    if revoke:
        return _revoke(state, settings)
    from remit.cli.trust_question import agreed, lines, register, show, standing_of
    from remit.clock import SystemClock
    from remit.trust.state import trust, untrusted

    trust_state = standing_of(settings, trusted=state.trust)
    widened = (
        edits
        and trust_state.trusted_file is not None
        and not trust_state.trusted_file.edits
        and bool(trust_state.claims)
    )
    if trust_state.trusted and not widened:
        state.note(
            f"{settings.folder} is trusted" if trust_state.claims else f"{settings.folder} has nothing that needs trust"
        )
        return exit_codes.OK
    if not yes and not trust_state.trusted:
        if state.as_json:
            state.output.json({"folder": str(settings.folder), "trusted": False, "would": lines(trust_state)})
            return exit_codes.OK
        if not state.output.interactive:
            show(state.output, trust_state)
            raise untrusted(trust_state, "If that is right: remit trust --yes, with --edits to trust later edits too")
        if not agreed(state.output, trust_state):
            raise untrusted(trust_state)
    trust(trust_state, register(), edits=edits, now=SystemClock().now())
    if state.as_json:
        state.output.json({"folder": str(settings.folder), "trusted": True, "would": lines(trust_state)})
    state.note(f"{settings.folder} is trusted")
    return exit_codes.OK


def _list(state: CommandState) -> int:
    from remit.cli.trust_question import register

    files = [{"file": file.file, "edits": file.edits, "at": file.at} for file in register().files()]
    return state.listing(files, _print_list, "no settings file is trusted")


def _print_list(state: CommandState, files: list[dict[str, Any]]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    rows = [(file["file"], "any" if file["edits"] else "as it was", moment(file["at"])) for file in files]
    table(state.output.out, ("FILE", "CONTENTS", TableColumn("SINCE", style="dim")), rows)


def _revoke(state: CommandState, settings: Settings) -> int:
    from remit.cli.trust_question import register
    from remit.trust.state import kept_as

    file = kept_as(settings)
    gone = register().forget(file)
    state.note(f"{file} is no longer trusted" if gone else "it was not trusted")
    return exit_codes.OK
