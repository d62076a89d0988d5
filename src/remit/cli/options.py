"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from remit.cli.context import CommandState
from remit.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

pass_state: Final = click.make_pass_decorator(CommandState)
"""Gives a command the process's State as its first argument."""
LEVELS: Final = ("L0", "L1", "L2")
"""The values of `--level`."""


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The pairs of texts such as `K=V`. Raises UsageError, which quotes no value."""
    values = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} takes K=V", remedy=f"Write {option} NAME=VALUE.")  # it may be a secret
        if key in values:
            raise UsageError(f"{option} {key} appears twice", remedy="Leave one of them out.")
        values[key] = value
    return values


def _json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.ensure_object(CommandState).as_json |= value


def _jq(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from remit.cli.output import JqFilter

    state = context.ensure_object(CommandState)
    state.output.filter, state.as_json = JqFilter(value), True


def json_option(what: str) -> Callable[[F], F]:
    """`--json`, which also makes errors JSON; `what` is printed then. Beside it `--jq`, which chooses from it."""
    whole = click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, callback=_json, help=f"Print JSON: {what}."
    )
    part = click.option(
        "--jq",
        metavar="EXPR",
        expose_value=False,
        is_eager=True,
        callback=_jq,
        help="Filter the JSON with a jq expression.",
    )
    return lambda command: whole(part(command))


def _catalog(context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    context.ensure_object(CommandState).catalog = value


catalog_option: Final = click.option(
    "--catalog",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    expose_value=False,
    callback=_catalog,
    help="Use the tools in a file written by `remit tools --export`; runs nothing.",
)
"""`--catalog`, for commands about rules: they work where neither the modules nor the servers are, such as in CI."""

live_option: Final = click.option(
    "--live", is_flag=True, help="Import your modules and start your servers; by default nothing is run."
)
"""`--live`, for commands that look: without it they use the catalog as `remit tools` last listed it."""


wait_option: Final = click.option(
    "--wait", "patient", is_flag=True, help="Wait for approvals, signals and timers instead of exiting with status 4."
)
"""`--wait`, for commands that work on a job until it ends or waits."""


class Behind(click.Command):
    """A command that takes the command of a server behind `--`: words without it are a mistake, and start nothing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as usual. Raises click.UsageError."""
        marked = "--" in args
        rest = super().parse_args(ctx, args)
        if ctx.params.get("words") and not marked:
            word = ctx.params["words"][0]
            raise click.UsageError(f"{word!r} is one word too many; a server's command stands behind --", ctx)
        return rest
