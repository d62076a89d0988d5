"""The section `[readiness]`."""

from typing import Annotated

from remit.settings.section import About, Section, Texts


class ReadinessSettings(Section, frozen=True):
    """What has to be there."""

    required: Annotated[
        Texts,
        About(
            "Dependencies that must work for this process to be ready: `mcp` (all MCP servers) or `mcp.<server>`. "
            "An unknown name is never ready."
        ),
    ] = ()
