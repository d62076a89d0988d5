"""`remit conversation import`: a conversation from elsewhere, as a job."""  # noqa: N999 - the command is called import

from __future__ import annotations

from typing import Any

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--tools", multiple=True, metavar="TOOLS", help="Tools of the agent that continues it, or patterns.")
@click.option("--model", default="", metavar="MODEL", help="Its model. Default: the configured one.")
@click.option("--turns", type=int, default=50, help="Answers of its model, at most.", show_default=True)
@click.option("--tokens", type=int, help="Tokens of its models, at most.")
@click.option("--dollars", type=float, help="US dollars of its models, at most, as estimated.")
@json_option("job, state and result")
@pass_state
def command(state: State, /, file: str, **given: Any) -> int:
    """Import a conversation, to continue it.

    FILE is a JSON list of messages as OpenAI's Chat Completions takes them, or `-` for stdin. It is kept in a job that
    ends at once; `remit chat JOB TEXT` goes on with it.
    """
    from remit.cli.working import work_on
    from remit.ids import new_id
    from remit.service.conversations import IMPORTED

    created = new_id("job")
    bound = {"messages": _messages(file), **{name: value for name, value in given.items() if value not in {None, ""}}}

    async def start(remit: Any) -> list[str]:
        from remit.service.jobs import Options

        return [await remit.service.jobs.start_named(IMPORTED, bound, Options(job=created, title=f"import {file}"))]

    return work_on(state, start, patient=True, creates=created)


def _messages(file: str) -> list[Any]:
    """The messages of a file. Raises UsageError if they are no conversation."""
    from remit.agents.openai_messages import from_openai
    from remit.cli.values import json_value

    found = json_value(f"@{file}", "FILE")
    from_openai(found)
    return list(found)
