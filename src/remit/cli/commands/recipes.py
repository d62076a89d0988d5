"""`remit recipes`: what `remit run` can run."""

from __future__ import annotations

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state


@click.command("recipes")
@click.argument("name", required=False, shell_complete=complete.recipes)
@json_option("the recipes, or one,")
@pass_state
def command(state: State, name: str | None) -> int:
    """List the recipes with their parameters, or show one.

    They are those that ship with Remit, and those of the modules in `app.modules`. Parameters in brackets may be left
    out.
    """
    from remit.cli.runnable import recipe_views, show_recipes

    if name is None:
        found = recipe_views(state)
        if state.as_json:
            state.output.json(found)
        else:
            show_recipes(state, found)
        return exit_codes.OK
    from remit.cli.runnable import recipe_view

    one = recipe_view(state, name)
    if state.as_json:
        state.output.json(one)
    else:
        from remit.cli.runhelp import recipe_help

        formatter = click.get_current_context().make_formatter()
        recipe_help(formatter, one)
        state.output.out.line(formatter.getvalue().rstrip("\n"))
    return exit_codes.OK
