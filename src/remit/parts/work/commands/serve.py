"""`remit work serve`: be the control plane, and work on its runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.cli.runner import SignalStop
    from remit.parts.work.views import Turn, TurnStep


_EVERY_S: Final = 2.0
"""A server is asked for a turn so often."""


@click.command("serve")
@click.option("--once", is_flag=True, help="Stop when no run is under way and nothing is left to do.")
@click.option("--staged", is_flag=True, help="Say what would be done now, and do nothing.")
@json_option("each turn that did something, one a line")
@pass_state
def command(state: CommandState, once: bool, staged: bool) -> int:
    """Hand out the issues of every group in workflow.toml, and work on their runs until Ctrl-C.

    Issues that carry a group's labels are claimed, most urgent first, so many at once as the group allows; those that
    wait for others are blocked and unblocked; labels and comments are written. One process at a time is the control
    plane; others stand by, and work on runs. Ctrl-C lets calls under way end. With --server the server does all of it.
    The status is 3 if a step of the last turn failed.
    """
    from remit.cli.runner import run_async

    turns = _Turns(state)

    async def there(stop: SignalStop) -> None:
        async with state.open(code="unused") as remit:
            while not stop.requested.is_set():
                turn: Turn = await remit.service.work.turn(staged=staged)
                turns.tell(turn)
                if staged or (once and turns.idle):
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY_S):
                        await stop.requested.wait()

    async def here(stop: SignalStop) -> None:
        from remit.cli.services import beside, keep_engine, keep_part
        from remit.parts.work.control import control_of

        async with state.remit(creates=not staged) as remit:
            if staged:
                turns.tell(await remit.service.work.turn(staged=True))
                return
            engine = remit.engine
            stop.hurry = engine.stop
            engine.start(role="work")

            def tell(turn: Turn) -> None:
                turns.tell(turn)
                if once and turns.idle:
                    stop.requested.set()

            control = control_of(remit, stop.requested, tell)
            async with remit.sending(), beside(keep_engine(remit), *([] if once else [keep_part(remit, control)])):
                await (control.run(lambda _: None) if once else stop.requested.wait())  # once: what fails ends it
                await engine.drain(remit.settings.jobs.drain_seconds)

    run_async(there if state.server else here, gentle=True)
    return exit_codes.FAILED if turns.failed else exit_codes.OK


class _Turns:
    """Prints turns, and knows whether the last one left anything to do."""

    def __init__(self, state: CommandState) -> None:
        self._state = state
        self.idle = False
        self.failed = False
        """Whether a step of the last turn that had any could not be taken."""

    def tell(self, turn: Turn) -> None:
        """Print what a turn did."""
        self.idle = not turn.active and not turn.steps
        if turn.steps:
            self.failed = any(step.error for step in turn.steps)
        if not turn.leads:
            self._state.note("another process is the control plane")
        elif turn.steps and self._state.as_json:
            self._state.output.json(turn)
        for step in turn.steps if not self._state.as_json else ():
            self._state.output.out.line(_words(step))
        self._state.output.out.flush()  # who reads a pipe sees a turn as it is taken


def _words(step: TurnStep) -> str:

    text = f"{step.action} {step.issue_ref} {step.detail}".rstrip()
    return one_line(f"{text}: {step.error}" if step.error else text)
