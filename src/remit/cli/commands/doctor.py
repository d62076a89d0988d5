"""This installation: `remit doctor`, `remit parts` and `remit completion`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, live_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.capability import Capability, Check
    from remit.wiring.parts import KnownPart


@click.command("doctor")
@live_option
@json_option("the checks")
@pass_state
def command(state: CommandState, live: bool) -> int:
    """Check that Remit has everything it needs.

    Checks Python, SQLite, settings, rules, the journal and its disk, folders and the terminal; with --live also your
    modules and servers. Each problem comes with a fix. Exits with status 1 if a check fails.
    """
    from remit.cli.checks import checks
    from remit.cli.runner import run_to_end

    async def look() -> list[Check]:
        return [check async for check in checks(state, live=live)]

    results = run_to_end(look())
    state.show([check._asdict() for check in results], lambda state, _: _print(state, results))
    return exit_codes.ERROR if any(check.verdict == "fail" for check in results) else exit_codes.OK


def _print(state: CommandState, checks: list[Check]) -> None:

    out = state.output.out
    for name, verdict, detail, remedy, code in checks:
        out.line(f"{out.style(f'{verdict:<4}', verdict)}  {name:<9}  {f'{code}: ' * bool(code)}{one_line(detail)}")
        if remedy:
            out.line(f"      {out.style('->', 'cyan')} {one_line(remedy)}")


@click.command("parts")
@click.option("--live", is_flag=True, help="Also import the parts of others that app.capabilities names.")
@json_option("the parts")
@pass_state
def parts(state: CommandState, live: bool) -> int:
    """List the parts of Remit: where each is from, and what it brings.

    A part is `ready`, or lacks modules that an extra installs. Parts that others made are `used` if app.capabilities
    names them, else `unused`, or `not installed`. Only --live imports those that are used, and says what they bring.
    """
    from remit.wiring.parts import found_parts

    settings = state.trusted() if live else state.looked_at()
    rows = [_row(part, settings.app.capabilities) for part in found_parts(settings, load=live)]
    return state.show(rows, _print_parts)


def _print_parts(state: CommandState, rows: list[dict[str, Any]]) -> None:
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
    yield from (f"command {parts.word}" for parts in part.commands)
    yield from ["pages"] if part.pages else []
    yield from ["work"] if part.works else []
    yield from (name for name in ("settings", "checks") if getattr(part, name))


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_state
@click.pass_context
def completion(context: click.Context, state: CommandState, shell: str) -> int:
    """Print a shell completion script.

    \b
    bash   remit completion bash > ~/.local/share/bash-completion/completions/remit
    zsh    remit completion zsh > ~/.zfunc/_remit   (with ~/.zfunc in fpath)
    fish   remit completion fish > ~/.config/fish/completions/remit.fish
    """  # noqa: D301 - click reads the backspace: these lines stay as they are
    from click.shell_completion import get_completion_class

    from remit.cli.root import COMPLETE

    root = context.find_root()
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"There is no completion for {shell}.", context)
    state.output.out.line(complete(root.command, {}, "remit", COMPLETE).source().rstrip("\n"))
    return exit_codes.OK
