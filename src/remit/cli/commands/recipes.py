"""`remit recipes`: what `remit run` can run."""

from __future__ import annotations

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state


@click.command("recipes")
@click.argument("name", required=False, shell_complete=complete.recipes)
@json_option("the recipes, or one recipe")
@pass_state
def command(state: CommandState, name: str | None) -> int:
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
