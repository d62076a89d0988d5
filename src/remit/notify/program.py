"""Gives a message to a program: no shell, JSON on stdin, a time limit, and nothing of it left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from remit.notify.answer import LONGEST_S, Answer
from remit.process.child import Child
from remit.process.environment import environment
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from remit.notify.message import Message
    from remit.notify.target import Target

_GRACE_S: Final = 1.0


async def run(
    target: Target, message: Message, environ: Mapping[str, str], folder: str, limit_s: float = LONGEST_S
) -> Answer:
    """Run the target's command in `folder`; status 0 means that it took the message.

    Raises SettingsError, or OSError if the program cannot be started.
    """
    who = f"notify {target.name}"
    added = {name: expand(text, environ, who) for name, text in target.env.items()}
    child = Child(grace_s=_GRACE_S)
    try:
        await child.start(target.command, env=environment(environ, added), cwd=folder)
        child.write(message.encoded + b"\n")
        child.close_stdin()
        async with asyncio.timeout(limit_s):
            status = await child.ended()
    finally:
        await child.close()
    said = child.shown(child.err) or child.shown(child.out)
    return Answer(status == 0, f"{child.why_ended}: {said}" if said else child.why_ended)
