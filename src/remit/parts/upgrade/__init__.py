"""Upgrade: what this version of Remit would do with a journal, settings and code that another one left."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command

CAPABILITIES: Final = (
    Capability(
        name="upgrade",
        about="Say before an upgrade, or after it, whether journal, settings and code fit this Remit.",
        commands=(
            Command(
                word="upgrade",
                about="Bring the journal up to date, or say with --check whether all fits this Remit.",
                command="remit.parts.upgrade.commands:command",
            ),
        ),
    ),
)
