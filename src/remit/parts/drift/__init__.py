"""Versions of everything that was recorded against those of today, and recorded decisions under other rules."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="drift",
        about="Compare what is recorded with today's tools, models, code and rules.",
        nouns=(Noun(name="drift", kind="remit.parts.drift.noun:DriftNoun", open="remit.parts.drift.noun:open_drift"),),
        pages="remit.parts.drift.pages:PAGES",
        commands=(
            Command(
                word="drift",
                section="Look",
                about="Say what is different today from what was recorded.",
                command="remit.parts.drift.commands:drift_command",
            ),
            Command(
                word="versions",
                section="Look",
                about="Say which versions open jobs need, and what can be retired.",
                command="remit.parts.drift.commands:versions_command",
            ),
            Command(
                word="policy backtest",
                section="Commands",
                about="Take recorded decisions again under other rules.",
                command="remit.parts.drift.commands:backtest_command",
            ),
        ),
    ),
)
