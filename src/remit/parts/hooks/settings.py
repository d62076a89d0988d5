"""The settings of the guard before agents' own tools."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from remit.settings.section import About, Section


class HookSettings(Section, frozen=True):
    """How the guard answers the hooks of agents."""

    mode: Annotated[
        Literal["observe", "narrow", "gate"],
        About(
            "What it answers: `observe` nothing; `narrow` refusals and questions, so that the agent's own rules still "
            "decide about the rest; `gate` also that a call may run."
        ),
    ] = "narrow"
    hold_s: Annotated[
        int,
        msgspec.Meta(ge=0, le=540),
        About("Seconds that a call waits for a person's answer before it is refused, and may be made again."),
    ] = 0
    defer: Annotated[
        bool,
        About(
            "Whether `claude -p` ends its run at a call that a person has to approve, and makes it when it is resumed; "
            "otherwise, and where a turn makes several calls, it is refused, and may be made again."
        ),
    ] = False
    idle_s: Annotated[
        int,
        msgspec.Meta(ge=10, le=604_800),
        About("Seconds without a hook after which the guard ends; the next hook starts it."),
    ] = 900
