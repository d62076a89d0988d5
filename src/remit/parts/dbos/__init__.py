"""DBOS as the engine that places jobs on machines."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="dbos",
        about="Place jobs on machines with DBOS: its queues, priorities and limits.",
        settings="remit.engines.settings:DbosSettings",
        engine="remit.parts.dbos.engine:DbosEngine",
        modules=("dbos",),
        extra="dbos",
    ),
)
