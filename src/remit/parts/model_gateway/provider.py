"""From settings to the provider of programs; the gateway is loaded where programs are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.parts.model_gateway.settings import ModelGatewaySettings

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.parts.model_gateway.programs import ProgramProvider


def open_programs(opening: Opening) -> list[ProgramProvider]:
    """Return the provider where programs are run; no agent needs to see it elsewhere."""
    own = opening.part
    if not isinstance(own, ModelGatewaySettings) or not own.programs:
        return []
    from remit.parts.model_gateway.programs import ProgramProvider  # noqa: PLC0415 - for who records a program

    return [ProgramProvider(opening, own)]
