"""The section `[readiness]`."""

from __future__ import annotations

from typing import Annotated

from remit.settings.section import About, Section, Texts


class ReadinessSettings(Section, frozen=True):
    """What has to be there."""

    required: Annotated[
        Texts,
        About(
            "Dependencies without which nothing should be asked of this process: `mcp` (all MCP servers) or "
            "`mcp.<server>`. A name that no dependency has is never ready."
        ),
    ] = ()
