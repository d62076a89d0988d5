"""`remit chat`: continue an agent's conversation, or show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state, wait_option
from remit.cli.output import one_line

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
def command(state: CommandState, job: str, text: str | None, *, patient: bool) -> int:
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
