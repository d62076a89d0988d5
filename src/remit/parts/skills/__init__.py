"""Skills: packages of instructions and permissions that decide what an agent may do."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="skills",
        about="Packages of instructions and permissions that decide what an agent may do.",
        settings="remit.parts.skills.settings:SkillSettings",
        providers="remit.parts.skills.provider:open_skill_tools",
        provider_ids=("skills",),
        skills="remit.parts.skills.loader:open_skills",
        nouns=(
            Noun(name="skills", kind="remit.parts.skills.noun:SkillList", open="remit.parts.skills.noun:open_list"),
        ),
        kinds={
            "skill_enabled": "remit.parts.skills.kinds:SkillEnabled",
            "skill_disabled": "remit.parts.skills.kinds:SkillDisabled",
        },
        commands=(
            Command(
                word="skills",
                about="List skills, look at them, switch them on and off, and begin a new one.",
                command="remit.parts.skills.commands:command",
            ),
        ),
        pages="remit.parts.skills.pages:PAGES",
    ),
)
