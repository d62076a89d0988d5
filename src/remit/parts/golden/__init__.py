"""Golden jobs: recorded jobs in files, which today's code, tools, schemas and policy are checked against."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="golden",
        about="Check recorded jobs in files against the code, tools and policy of today.",
        nouns=(
            Noun(name="golden", kind="remit.parts.golden.noun:Goldens", open="remit.parts.golden.noun:open_goldens"),
        ),
        commands=(
            Command(
                word="golden",
                section="Look",
                about="Export recorded jobs as golden ones, which `remit check` replays.",
                command="remit.parts.golden.commands:golden_command",
            ),
            Command(
                word="check",
                section="Look",
                about="Replay golden jobs against the code, tools, schemas and policy of today.",
                command="remit.parts.golden.commands:check_command",
            ),
        ),
    ),
)
