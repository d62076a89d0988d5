"""`remit api`: any operation of the HTTP API, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.api.calls import RequestValues
    from remit.api.route import Route
    from remit.capability import Capability
    from remit.cli.access import Opened


@click.command("api")
@click.argument("name", required=False, shell_complete=complete.operations)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@json_option("the answer, or the operations")
@pass_state
def command(state: CommandState, name: str | None, values: tuple[str, ...]) -> int:
    """List the operations of the HTTP API, or call one and print its answer as JSON.

    The values fill the path, the query and the body of the request. A value is read as JSON if it is JSON and the
    field takes more than text; a key that is given several times makes a list. Without --server the operation works on
    the journal here, with all scopes and in your name. A job that it starts waits for `remit worker` or `remit serve`.
    """
    if name is None:
        return _list(state)
    from remit.api.calls import operation_named, values_of
    from remit.http.problem import HttpProblem

    route = operation_named(name, _parts(state))
    pairs = [value.partition("=") for value in values]
    if wrong := next((key for key, separator, _ in pairs if not (key and separator)), None):
        raise click.UsageError(f"{wrong!r} is not KEY=VALUE.")
    try:
        answer = _call(state, route, values_of(route, [(key, text) for key, _, text in pairs]))
    except HttpProblem as problem:
        from remit.client.connection import error_of

        raise error_of(problem.status, problem.body) from problem
    if answer is not None or route.answer is not None:
        state.output.json(answer, indent=not state.as_json)
    return exit_codes.OK


def _parts(state: CommandState) -> Sequence[Capability]:
    """Return the parts whose operations there are: of a server, those that ship."""
    from remit.wiring.capabilities import FIRST_PARTY
    from remit.wiring.parts import parts_of

    foreign = not state.server and state.settings().app.capabilities
    return parts_of(state.trusted()) if foreign else FIRST_PARTY


def _call(state: CommandState, route: Route, values: RequestValues) -> Any:
    """Return the answer of the server if one was named, else of the service over the journal here."""
    from remit.api.calls import call
    from remit.app import Remit

    async def work(remit: Opened) -> Any:
        if isinstance(remit, Remit):
            return await call(remit.service, route, values)
        from remit.client.remote import RemoteRemit

        assert isinstance(remit, RemoteRemit)  # noqa: S101 - there are these two
        return await remit.ask(route.name, *values.path, query=values.query, body=values.body)

    changes = route.method != "GET"
    return state.ask(work, writes=changes, creates=changes)


def _list(state: CommandState) -> int:
    from remit.api.calls import operations_of, parameters_of

    routes = sorted(operations_of(_parts(state)).values(), key=lambda route: route.name)
    rows = [
        {
            "name": route.name,
            "method": route.method,
            "path": route.path,
            "scope": route.scope or "",
            "summary": route.summary,
            "parameters": parameters_of(route),
        }
        for route in routes
    ]
    return state.show(rows, _print)


def _print(state: CommandState, rows: list[dict[str, Any]]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("NAME", TableColumn("TAKES", whole=False), TableColumn("WHAT IT DOES", whole=False))
    table(state.output.out, columns, [(row["name"], " ".join(row["parameters"]), row["summary"]) for row in rows])
