"""Tools and recipes: `remit tools` and `remit recipes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, one_line, pretty
from remit.cli.values import usage_error
from remit.codes import Code
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened
    from remit.record.views import ToolView


@click.command("tools")
@click.argument("name", required=False, shell_complete=complete.tools)
@click.option(
    "--export",
    "target",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Write the catalog to a file for `remit policy … --catalog`; - is stdout.",
)
@json_option("the tools, or one tool in full")
@pass_state
def command(state: CommandState, name: str | None, target: Path | None) -> int:
    """List the tools, or show one.

    Levels: L0 reads, L1 writes, L2 executes or uses the network. CALLS is what your policy does if you call the tool:
    it runs, asks a person first, is denied, or depends on the arguments (`remit policy explain`). A tool whose schema
    cannot be used is withheld.
    """
    from remit.app import Remit
    from remit.cli.catalog_record import record

    if target is not None:
        return _export(state, name, target)

    state.reported = "remit.mcp"  # why tools are missing is said below, once

    async def look(remit: Opened) -> tuple[list[ToolView], dict[str, str]]:
        views = await remit.service.tools.views() if name is None else [await remit.service.tools.view(name)]
        if isinstance(remit, Remit):
            await record(remit)
        return views, await remit.service.tools.failures()

    views, failures = state.ask(look, blank=True)
    if state.as_json:
        state.output.json(views if name is None else views[0])
    elif name is None:
        _list(state, views)
    else:
        _one(state, views[0])
    for provider, reason in failures.items():
        state.note(_missing(provider, reason))
    return exit_codes.OK


def _missing(provider: str, reason: str) -> str:

    name = provider.removeprefix("mcp_")
    for before in ("SpawnFailed: ", f"the MCP server {name}: "):
        reason = reason.removeprefix(before)
    return f"the tools of {provider} are missing: {one_line(reason)}"


def _export(state: CommandState, name: str | None, target: Path) -> int:
    from remit.cli.catalog_record import export
    from remit.cli.file_writer import write

    if name is not None:
        msg = "--export writes all tools: omit NAME"
        raise click.UsageError(msg)

    async def look(remit: Remit) -> tuple[bytes, dict[str, str]]:
        return await export(remit), await remit.service.tools.failures()

    catalog, failures = state.ask_here(look, blank=True)
    if failures:
        raise _incomplete(failures)
    if str(target) == "-":
        click.echo(catalog, nl=False)
        return exit_codes.OK
    with usage_error(str(target), "Choose another file."):
        write(target, catalog)
    state.note(f"wrote {target}")
    return exit_codes.OK


def _incomplete(failures: dict[str, str]) -> UsageError:
    return UsageError(
        _missing(*next(iter(failures.items()))),
        code=Code.TOOL_UNAVAILABLE,
        remedy="An export contains every tool: fix the provider, then try again.",
    )


def _list(state: CommandState, tools: list[ToolView]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = (
        "TOOL",
        "LEVEL",
        TableColumn("CALLS", states=False),
        TableColumn("PROVIDER", whole=False),
        TableColumn("WHAT IT DOES", whole=False),
    )
    rows = [
        (tool.name, tool.capability_level, _calls(tool), tool.provider_id, tool.quarantined or tool.description)
        for tool in tools
    ]
    table(state.output.out, columns, rows)


def _calls(tool: ToolView) -> str:
    """Return what policy does with a call."""
    return "withheld" if tool.quarantined else tool.policy


def _one(state: CommandState, tool: ToolView) -> None:
    from remit.cli.tables import fields
    from remit.clock import duration

    out = state.output.out
    out.line(out.style(tool.name, "bold"))
    fields(
        out,
        [
            ("does", one_line(tool.description)),
            ("withheld", one_line(tool.quarantined)),
            ("level", tool.capability_level),
            ("calls", _calls(tool)),
            ("provider", tool.provider_id),
            ("version", tool.version),
            (
                "side effects",
                ("yes: repeating a call changes nothing more" if tool.idempotent else "yes")
                if tool.side_effects
                else "none",
            ),
            ("time limit", duration(tool.timeout_ms * 1000)),
            ("key", tool.key),
            ("for models", tool.wire_name),
            ("contract", tool.contract_hash),
        ],
    )
    for title, schema in (("arguments", tool.input_schema), ("result", tool.output_schema)):
        out.line()
        out.line("  " + out.style(title, "dim"))
        for line in clean(pretty(schema)).split("\n") if schema is not None else ["not declared"]:
            out.line("    " + line)


@click.command("recipes")
@click.argument("name", required=False, shell_complete=complete.recipes)
@json_option("the recipes, or one recipe")
@pass_state
def recipes(state: CommandState, name: str | None) -> int:
    """List the recipes and their parameters, or show one.

    Lists the recipes that ship with Remit and those in the modules of `app.modules`. Parameters in brackets are
    optional.
    """
    from remit.cli.runnable import recipe_views, show_recipes

    if name is None:
        recipes = recipe_views(state)
        return state.show(recipes, show_recipes)
    from remit.cli.runnable import recipe_view

    recipe = recipe_view(state, name)
    if state.as_json:
        state.output.json(recipe)
    else:
        from remit.cli.runhelp import recipe_help

        formatter = click.get_current_context().make_formatter()
        recipe_help(formatter, recipe)
        state.output.out.line(formatter.getvalue().rstrip("\n"))
    return exit_codes.OK
