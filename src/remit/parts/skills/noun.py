"""The noun `skills` of the service: what there is, why it does or does not count, and its switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from remit.codes import Code
from remit.operation import Body, By, operation
from remit.parts.skills.loader import LoadedSkills
from remit.parts.skills.manifest import Finding
from remit.parts.skills.settings import SKILL_MD

if TYPE_CHECKING:
    from remit.parts.skills.folder import Skill, Unloaded
    from remit.service.noun_means import NounOpening

_CODES: Final = (Code.SKILL_NOT_FOUND, Code.SKILL_INVALID)
_SHOWN: Final = ("license", "compatibility", "metadata", "required_tools", "allowed_tools")
_ORDER: Final = ("enabled", "disabled", "unavailable", "not loaded")


class SkillRow(msgspec.Struct, frozen=True, kw_only=True):
    """One skill, or what could not be loaded as one."""

    name: str
    state: Literal["enabled", "disabled", "unavailable", "not loaded"]
    why: str
    """Reason why it is not enabled."""
    description: str
    source: str
    """`remit` (it ships), `project`, `user`, `folder` (any other place), or `settings` (a table without a skill)."""
    path: str
    run_types: tuple[str, ...]
    tools: tuple[str, ...]
    findings: tuple[Finding, ...]
    fixed: bool = False
    """Whether remit.toml switches it off: no one else can switch it on."""


class SkillView(SkillRow, frozen=True, kw_only=True):
    """One skill, whole."""

    digest: str
    """SHA-256 over the path and content of every file."""
    license: str
    compatibility: str
    metadata: dict[str, str]
    required_tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    """The tools that its author would have pre-approved: shown, and never a grant."""
    rules: tuple[dict[str, Any], ...]
    """The rules that deny or ask, of its author and of the operator."""
    sandbox: tuple[dict[str, Any], ...]
    """The limits that they set the sandbox."""
    activate: bool
    """Whether models may activate it."""
    trusted: bool
    """Whether the operator vouches for its text as it is."""
    files: tuple[str, ...]
    body: str


class SkillList:
    """The skills of this process."""

    def __init__(self, skills: LoadedSkills, principal: str) -> None:
        self._skills = skills
        self._principal = principal

    # --- queries

    @operation("skills.list", "GET /v1/skills", "read", "List the skills, and what could not be loaded as one.")
    async def rows(self) -> list[SkillRow]:
        """List the skills by state and name, and what could not be loaded as one, with the reason."""
        book = await self._skills.book()
        rows = [await self._row(skill) for skill in book.skills.values()]
        rows += [_unloaded_row(entry) for entry in book.unloaded]
        return sorted(rows, key=lambda row: (_ORDER.index(row.state), row.source == "remit", row.name))

    @operation("skills.view", "GET /v1/skills/{skill}", "read", "Show a skill.", codes=_CODES)
    async def view(self, skill: str) -> SkillView:
        """Show one skill as it is now: what it allows, its files, its instructions. Raises NotFoundError."""
        whole = await self._skills.whole(skill)
        row, manifest = await self._row(whole.skill), whole.skill.manifest
        return SkillView(
            **{field: getattr(row, field) for field in row.__struct_fields__},
            digest=whole.contents.digest,
            **{field: getattr(manifest, field) for field in _SHOWN},
            rules=whole.skill.rules,
            sandbox=whole.skill.sandbox,
            activate=whole.skill.word.activate,
            trusted=whole.pin.trusted,
            files=tuple(path for path, _ in whole.contents.files),
            body=whole.contents.texts.get(SKILL_MD, ""),
        )

    # --- commands

    @operation(
        "skills.enable",
        "POST /v1/skills/{skill}/enable",
        "decide",
        "Switch a skill on.",
        body=Body("SkillSwitch", "Why a skill is switched on or off."),
        codes=_CODES,
        example={"reason": "reviewed"},
    )
    async def enable(self, skill: str, *, by: By = "", reason: str = "") -> SkillRow:
        """Switch a skill on again, for every process that works on this journal.

        One that remit.toml switches off stays so. Raises NotFoundError.
        """
        return await self._switch(skill, by, reason, on=True)

    @operation(
        "skills.disable",
        "POST /v1/skills/{skill}/disable",
        "decide",
        "Switch a skill off.",
        body=Body("SkillSwitch", "Why a skill is switched on or off."),
        codes=_CODES,
        example={"reason": "it sends too much"},
    )
    async def disable(self, skill: str, *, by: By = "", reason: str = "") -> SkillRow:
        """Switch a skill off, for every process that works on this journal.

        Run types that only it allows are refused from then on; jobs under it finish, or wait (`skills.switched_off`).
        Raises NotFoundError.
        """
        return await self._switch(skill, by, reason, on=False)

    async def _switch(self, name: str, by: str, reason: str, *, on: bool) -> SkillRow:
        skill = (await self._skills.book()).get(name)
        await self._skills.switches.switch(name, on=on, by=by or self._principal, reason=reason)
        return await self._row(skill)

    async def _row(self, skill: Skill) -> SkillRow:
        state, reason = await self._state(skill)
        return SkillRow(
            name=skill.name,
            state=state,
            why=reason,
            description=skill.manifest.description,
            source=skill.source,
            path=str(skill.place.path) if skill.source != "remit" else "",
            run_types=skill.run_types,
            tools=skill.tools,
            findings=skill.findings,
            fixed=not skill.word.enabled,
        )

    async def _state(self, skill: Skill) -> tuple[Literal["enabled", "disabled", "unavailable"], str]:
        if not skill.word.enabled:
            return "disabled", f"[skills.{skill.name}] of remit.toml"
        switched = (await self._skills.switches.off()).get(skill.name)
        if switched is not None:
            detail = f": {switched.reason}" if switched.reason else ""
            return "disabled", f"switched off by {switched.by or 'someone'}{detail}"
        lacking = await self._skills.lacking(skill)
        reason = f"{Code.SKILL_UNAVAILABLE.name}: required tools are {lacking}"
        return ("unavailable", reason) if lacking else ("enabled", "")


def _unloaded_row(entry: Unloaded) -> SkillRow:
    finding = entry.findings[0]
    reason, bare = f"{finding.code}: {finding.message}", msgspec.structs.asdict(entry)
    return SkillRow(state="not loaded", why=reason, description="", run_types=(), tools=(), **bare)


def open_list(opening: NounOpening) -> SkillList:
    """Return the skills of this process."""
    return SkillList(cast("LoadedSkills", opening.parts.skills), opening.principal)
