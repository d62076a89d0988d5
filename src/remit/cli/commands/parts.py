"""`remit parts`: what this Remit is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.capability import Capability
    from remit.wiring.parts import KnownPart


@click.command("parts")
@click.option("--live", is_flag=True, help="Also import the parts of others that app.capabilities names.")
@json_option("the parts")
@pass_state
def command(state: CommandState, live: bool) -> int:
    """List the parts of Remit: where each is from, and what it brings.

    A part is `ready`, or lacks modules that an extra installs. Parts that others made are `used` if app.capabilities
    names them, else `unused`, or `not installed`. Only --live imports those that are used, and says what they bring.
    """
    from remit.wiring.parts import found_parts

    settings = state.trusted() if live else state.looked_at()
    rows = [_row(part, settings.app.capabilities) for part in found_parts(settings, load=live)]
    return state.show(rows, _print)


def _print(state: CommandState, rows: list[dict[str, Any]]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("PART", TableColumn("FROM", style="dim"), "STATE", TableColumn("BRINGS", whole=False))
    shown = [(row["part"], row["source"], row["state"], ", ".join(row["brings"]) or row["about"]) for row in rows]
    table(state.output.out, columns, shown)


def _row(known: KnownPart, named: tuple[str, ...]) -> dict[str, Any]:
    part = known.part
    state = "used" if known.name in named else "unused"
    if not known.source:
        state = "not installed"
    elif part is not None:
        lacking = f"lacks {', '.join(part.missing)}" if part.missing else "ready"
        state = f"{lacking}: pip install 'remit[{part.extra}]'" if part.missing and part.extra else lacking
    return {
        "part": known.name,
        "source": known.source,
        "state": state,
        "missing": list(part.missing) if part is not None else [],
        "brings": list(_brings(part)) if part is not None else [],
        "about": part.about if part is not None else "",
    }


def _brings(part: Capability) -> Iterator[str]:
    yield from ["tools"] if part.providers else []
    yield from (f"recipe {reference.partition(':')[2]}" for reference in part.recipes)
    yield from (f"noun {noun.name}" for noun in part.nouns)
    yield from (f"command {command.word}" for command in part.commands)
    yield from ["pages"] if part.pages else []
    yield from ["work"] if part.works else []
    yield from (name for name in ("settings", "checks") if getattr(part, name))
