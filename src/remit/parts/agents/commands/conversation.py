"""`remit conversation`: conversations of agents as data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.values import usage_error

if TYPE_CHECKING:
    from remit.cli.access import Opened


COMMANDS: Final[dict[str, LazyCommand]] = {
    "export": LazyCommand("Commands", "Export an agent's conversation to a file."),
    "import": LazyCommand("Commands", "Import a conversation, to continue it."),
}


@click.group("conversation", cls=LazyGroup, package="remit.parts.agents.commands.conversation", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Export and import agents' conversations, in OpenAI's message format."""
    show_help(context)


@command.command("export")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--step", metavar="STEP", default="", help="Only what this step of any job asked a model, and the answer."
)
@json_option("how many messages were written")
@pass_state
def export_command(state: CommandState, job: str, file: Path | None, step: str) -> int:
    """Export an agent's conversation to a file.

    FILE receives a JSON list of messages in the format of OpenAI's Chat Completions; without FILE the list is printed.
    Values are written in full, as recorded. An existing FILE is not overwritten.
    """

    async def look(remit: Opened) -> list[dict[str, Any]]:
        from remit.parts.agents.conversations import conversations_of

        return await conversations_of(remit.service).in_openai_format(await remit.service.jobs.find(job), step)

    messages = state.ask(look, code="unused")
    if file is None:
        state.output.json(messages)
        return exit_codes.OK
    import msgspec

    with usage_error(f"{file} cannot be written", "Name another file."), file.open("xb") as written:
        written.write(msgspec.json.format(msgspec.json.encode(messages)) + b"\n")
    summary = f"{len(messages)} messages in {file}"
    return state.show({"file": str(file), "messages": len(messages)}, lambda state, _: state.note(summary))


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--tools", multiple=True, metavar="TOOLS", help="Tools, or patterns, for the agent that continues it.")
@click.option("--model", default="", metavar="MODEL", help="Its model. Default: models.default.")
@click.option("--turns", type=int, default=50, help="Answers that its model may give.", show_default=True)
@click.option("--tokens", type=int, help="Tokens that its models may use.")
@click.option("--dollars", type=float, help="Estimated US dollars that its models may cost.")
@json_option("job, state and result")
@pass_state
def import_command(state: CommandState, /, file: str, **options: Any) -> int:
    """Import a conversation, to continue it.

    FILE is a JSON list of messages in the format of OpenAI's Chat Completions, or `-` for stdin. A job that ends at
    once holds it; `remit chat JOB TEXT` continues it.
    """
    from remit.cli.job_worker import work_on
    from remit.parts.agents.conversations import IMPORTED

    bound = {"messages": _messages(file), **{name: value for name, value in options.items() if value not in {None, ""}}}

    async def start(remit: Opened, new: str) -> list[str]:
        from remit.service.options import Options

        return [await remit.service.jobs.start_named(IMPORTED, bound, Options(job=new, title=f"import {file}"))]

    return work_on(state, start, patient=True, creates=True)


def _messages(file: str) -> list[Any]:
    """The messages of a file. Raises UsageError if they are no conversation."""
    from remit.cli.values import json_value
    from remit.models.openai_messages import from_openai

    document = json_value(f"@{file}", "FILE")
    from_openai(document)
    return list(document)
