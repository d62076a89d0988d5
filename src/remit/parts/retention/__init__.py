"""Retention: what has to be kept stays, and the rest goes, with stubs in its place."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="retention",
        about="Keep records as long as they must be kept, and remove the rest with stubs in their place.",
        settings="remit.parts.retention.settings:RetentionSettings",
        nouns=(
            Noun("retention", "remit.parts.retention.prune:Retention", "remit.parts.retention.prune:open_retention"),
        ),
        works="remit.parts.retention.wiring:keep_to_rules",
        commands=(
            Command(
                word="journal prune",
                section="Commands",
                about="Remove records that have been kept long enough, and leave a stub in the place of each.",
                command="remit.parts.retention.commands.prune:command",
            ),
            Command(
                word="journal backup",
                section="Commands",
                about="Back up a journal that is a file, while workers and servers go on.",
                command="remit.parts.retention.commands.backup:command",
            ),
            Command(
                word="erase",
                about="Erase every value that was recorded about a subject.",
                command="remit.parts.retention.commands.erase:command",
            ),
        ),
        checks="remit.parts.retention.wiring:check_retention",
    ),
)
