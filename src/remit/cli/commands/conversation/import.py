"""`remit conversation import`: a conversation from elsewhere, as a job."""  # noqa: N999 - the command is called import

from __future__ import annotations

from typing import Any

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--tools", multiple=True, metavar="TOOLS", help="Tools, or patterns, for the agent that continues it.")
@click.option("--model", default="", metavar="MODEL", help="Its model. Default: models.default.")
@click.option("--turns", type=int, default=50, help="Answers that its model may give.", show_default=True)
@click.option("--tokens", type=int, help="Tokens that its models may use.")
@click.option("--dollars", type=float, help="Estimated US dollars that its models may cost.")
@json_option("id, state and result")
@pass_state
def command(state: State, /, file: str, **given: Any) -> int:
    """Import a conversation, to continue it.

    FILE is a JSON list of messages in the format of OpenAI's Chat Completions, or `-` for stdin. A job that ends at
    once holds it; `remit chat JOB TEXT` continues it.
    """
    from remit.cli.working import work_on
    from remit.ids import new_id
    from remit.service.conversations import IMPORTED

    created = new_id("job")
    bound = {"messages": _messages(file), **{name: value for name, value in given.items() if value not in {None, ""}}}

    async def start(remit: Any) -> list[str]:
        from remit.service.options import Options

        return [await remit.service.jobs.start_named(IMPORTED, bound, Options(job=created, title=f"import {file}"))]

    return work_on(state, start, patient=True, creates=created)


def _messages(file: str) -> list[Any]:
    """The messages of a file. Raises UsageError if they are no conversation."""
    from remit.agents.openai_messages import from_openai
    from remit.cli.values import json_value

    found = json_value(f"@{file}", "FILE")
    from_openai(found)
    return list(found)
