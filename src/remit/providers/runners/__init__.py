"""Tools that run elsewhere: on other servers of Remit, each with its own machines, isolation and limits."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="runners",
        about="Tools that run on other servers of Remit.",
        settings="remit.providers.runners.settings:RunnerSettings",
        providers="remit.providers.runners.wiring:open_runners",
    ),
)
