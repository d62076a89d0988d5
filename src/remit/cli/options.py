"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from remit.cli.context import State

F = TypeVar("F", bound=Callable[..., Any])

pass_state: Final = click.make_pass_decorator(State)
"""Gives a command the process's State as its first argument."""


def _json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.ensure_object(State).as_json |= value


def json_option(what: str) -> Callable[[F], F]:
    """`--json`, which also makes errors JSON; `what` is printed then."""
    return click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, callback=_json, help=f"Print {what} as JSON."
    )


live_option: Final = click.option(
    "--live", is_flag=True, help="Import your modules and start your servers for it; else nothing is run."
)
"""`--live`, for commands that look: without it they use the catalog as `remit tools` last listed it."""
