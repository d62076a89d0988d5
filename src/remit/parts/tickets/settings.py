"""The section `[tickets]`."""

from typing import Annotated

import msgspec

from remit.settings.section import About, Section


class TicketSettings(Section, frozen=True):
    """Tickets: messages that become tool runs and replies."""

    derive_replies: Annotated[
        bool,
        About("Whether a TOOL ticket with the verdict PROCEED gets a REPLY ticket.", env=("ENABLE_REPLY_DERIVATION",)),
    ] = False
    tool_only: Annotated[bool, About("Whether to derive no REPLY tickets, whatever the verdict of a TOOL ticket.")] = (
        False
    )
    cutover_until_ms: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**53 - 1),
        About(
            "The time after which steps in the older place (`ticket.tool_steps`) count as a violation, in "
            "milliseconds since the Unix epoch; 0: never.",
            env=("CUTOVER_UNTIL_MS",),
        ),
    ] = 0
    expose_warn_count: Annotated[
        bool,
        About(
            "Whether HTTP answers give the number of the schema gate's warnings, as `X-Schema-Warn-Count`.",
            env=("SCHEMA_GATE_EXPOSE_WARN_HEADER",),
        ),
    ] = False
