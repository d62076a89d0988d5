"""`remit chat` and `remit conversation`: conversations of agents, continued, shown, and as data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state, wait_option
from remit.cli.output import one_line
from remit.cli.values import usage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel


_LINE: Final = 2_000
"""Characters of a line that are shown; `--json` has all of it."""
_LINES: Final = 200


@click.command("chat")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("text", required=False)
@wait_option
@json_option("the messages in OpenAI's format; with TEXT, the job that answers")
@pass_state
def chat_command(state: CommandState, job: str, text: str | None, *, patient: bool) -> int:
    """Continue an agent's conversation, or show it.

    Adds TEXT to the conversation of JOB. An agent that is still running or waiting reads it before its next request; if
    JOB has ended, a new job with the same model, tools and limits answers. Without TEXT, prints the conversation. JOB
    is an id, a unique ending of one, or `last`.
    """
    if text is None:
        return _show(state, job)
    from remit.cli.job_worker import work_on

    async def say(remit: Opened, new: str) -> list[str]:
        from remit.service.options import Options

        job_id = await remit.service.jobs.find(job)
        return [await remit.service.conversations.say(job_id, text, Options(job=new))]

    return work_on(state, say, patient=patient, creates=True)


def _show(state: CommandState, job: str) -> int:
    async def look(remit: Opened) -> list[dict[str, Any]]:
        from remit.parts.agents.conversations import conversations_of

        return await conversations_of(remit.service).in_openai_format(await remit.service.jobs.find(job))

    return state.listing(state.ask(look, code="unused"), _print, "no conversation: the job asked no model")


def _print(state: CommandState, messages: list[dict[str, Any]]) -> None:
    out = state.output.out
    for message in messages:
        for line in _lines(out, message):
            out.line(line)


def _lines(out: OutputChannel, message: dict[str, Any]) -> Iterator[str]:
    """A message as people read it: who says it, then the text, line by line, then the calls."""
    from remit.redact import line

    role = out.style(message["role"], "bold")
    content = message["content"] or message.get("refusal") or ""
    first, *more = content.splitlines() or [""]
    if content:
        yield f"{role}: {line(first, _LINE)}"
    for entry in more[:_LINES]:
        yield f"  {line(entry, _LINE)}"
    if len(more) > _LINES:
        yield out.style(f"  … {len(more) - _LINES} more lines; --json has all of them", "dim")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield f"{role} calls {one_line(function['name'])} {line(function['arguments'], _LINE)}"


COMMANDS: Final[dict[str, LazyCommand]] = {
    "export": LazyCommand("Commands", "Export an agent's conversation to a file."),
    "import": LazyCommand("Commands", "Import a conversation, to continue it."),
}


@click.group("conversation", cls=LazyGroup, package="remit.parts.agents.commands", entries=COMMANDS)
@click.pass_context
def conversation_command(context: click.Context) -> None:
    """Export and import agents' conversations, in OpenAI's message format."""
    show_help(context)


@conversation_command.command("export")
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


@conversation_command.command("import")
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
