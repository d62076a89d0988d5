"""`remit chat`: go on with an agent's conversation, or show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("chat")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("text", required=False)
@click.option("--wait", "patient", is_flag=True, help="Keep waiting for what others have to do, rather than exit.")
@json_option("the conversation in OpenAI's message format; with TEXT, the new job")
@pass_state
def command(state: State, job: str, text: str | None, *, patient: bool) -> int:
    """Go on with an agent's conversation.

    TEXT is said after all that was said in JOB, which has to have ended, and the answer comes from a new job with the
    same model, tools and limits. Without TEXT the conversation is shown.
    """
    if text is None:
        return _show(state, job)
    from remit.cli.working import work_on
    from remit.ids import new_id

    created = new_id("job")

    async def start(remit: Opened) -> list[str]:
        from remit.app import Remit
        from remit.cli.context import not_there
        from remit.service.conversations import RECIPE
        from remit.service.jobs import Options

        if not isinstance(remit, Remit):
            raise not_there()
        given = await remit.service.conversations.continuation(job, text)
        return [await remit.service.jobs.start_named(RECIPE, given, Options(job=created, title=f"chat {text[:60]}"))]

    return work_on(state, start, patient=patient, creates=created)


def _show(state: State, job: str) -> int:
    from remit.cli.running import run_async

    async def look() -> list[dict[str, Any]]:
        async with state.remit(code="unused") as remit:
            return await remit.service.conversations.in_openai_format(job)

    messages = run_async(lambda _stop: look())
    if state.as_json:
        state.output.json(messages)
        return exit_codes.OK
    for message in messages:
        for line in _lines(message):
            state.output.out.line(line)
    return exit_codes.OK


def _lines(message: dict[str, Any]) -> list[str]:
    from remit.cli.text import one_line
    from remit.redact import line

    said = [f"{message['role']}: {line(message['content'], 2_000)}"] if message["content"] else []
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return said + [f"{message['role']} calls {one_line(call['name'])} {line(call['arguments'])}" for call in calls]
