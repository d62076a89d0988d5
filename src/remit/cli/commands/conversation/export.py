"""`remit conversation export`: an agent's conversation as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("export")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--step", metavar="STEP", default="", help="Only what this step of any job asked a model, and the answer."
)
@json_option("how many messages were written")
@pass_state
def command(state: State, job: str, file: Path | None, step: str) -> int:
    """Export an agent's conversation to a file.

    FILE receives a JSON list of messages in the format of OpenAI's Chat Completions; without FILE the list is printed.
    Values are written in full, as recorded. An existing FILE is not overwritten.
    """

    async def look(remit: Opened) -> list[dict[str, Any]]:
        return await remit.service.conversations.in_openai_format(await remit.service.jobs.find(job), step)

    messages = state.ask(look, code="unused")
    if file is None:
        state.output.json(messages)
        return exit_codes.OK
    import msgspec

    try:
        with file.open("xb") as written:
            written.write(msgspec.json.format(msgspec.json.encode(messages)) + b"\n")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", remedy="Name another file.") from error
    if state.as_json:
        state.output.json({"file": str(file), "messages": len(messages)})
    else:
        state.note(f"{len(messages)} messages in {file}")
    return exit_codes.OK
