"""The page of the skills: what agents may come under, and why a skill does not count."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.pages.page import Page, PageRequest, PageView, See
from remit.parts.skills.noun import SkillRow


class SkillsPage(PageView, frozen=True, kw_only=True):
    """Page of all skills."""

    template: ClassVar[str] = "skills.html"
    rows: tuple[SkillRow, ...]
    decides: bool
    """Whether the person may switch them."""


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """Form that switches a skill."""

    on: bool
    skill: str


async def skills(request: PageRequest) -> SkillsPage:
    """Show them."""
    rows: list[SkillRow] = await request.service.skills.rows()
    return SkillsPage(title="Skills", rows=tuple(rows), decides=request.access.allows("decide"))


async def switch(request: PageRequest) -> See:
    """Switch a skill on or off. Raises NotFoundError."""
    noun, form = request.service.skills, request.form
    await (noun.enable if form.on else noun.disable)(form.skill, by=request.principal)
    return See("/skills")


PAGES: Final = (
    Page(
        path="/skills",
        scope="read",
        handler=skills,
        name="Skills",
        key="l",
        under="What may run?",
        about="instructions and permissions that agents may come under",
    ),
    Page(path="/skills/switch", scope="decide", handler=switch, form=Switch),
)
