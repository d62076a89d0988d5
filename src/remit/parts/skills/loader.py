"""The skills that a process knows (`remit.jobs.skills.Skills`): loaded once, when they are first asked for.

Switches of skills: which are off, folded from the stream `skills`, so that it holds for every process at once.

A skill is on if neither its table in remit.toml nor this says otherwise.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, StateError
from remit.jobs.skills import AGENT, SkillAdmission
from remit.journal.event import HeadPatch
from remit.journal.kinds import SkillPin, decode
from remit.parts.skills.kinds import SkillDisabled, SkillEnabled
from remit.parts.skills.settings import SKILL_MD, SkillSettings
from remit.settings.loader import TRUST

if TYPE_CHECKING:
    from remit.journal.event import Blob
    from remit.journal.journal import Journal
    from remit.journal.kinds import JobCreated
    from remit.parts.skills.folder import Book, Skill, SkillContents
    from remit.service.parts import Parts
    from remit.settings.section import Section


STREAM: Final = "skills"
KIND: Final = "skills"
_TRIES: Final = 10


class Switches:
    """Switches of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seq = 0
        self._off: dict[str, SkillDisabled] = {}

    async def off(self) -> dict[str, SkillDisabled]:
        """Return what switched each skill off that is off; only what is new is read."""
        head = await self._journal.head(STREAM)
        if head is not None and head.seq > self._seq:
            for event in await self._journal.read(STREAM, self._seq):
                self._take(decode(event.kind, event.data))
                self._seq = event.seq
        return self._off

    async def switch(self, skill: str, *, on: bool, by: str, reason: str) -> None:
        """Switch a skill on or off, durably; one that is so already stays so. Raises AppendConflictError."""
        payload = (SkillEnabled if on else SkillDisabled)(skill=skill, by=by, reason=reason)
        for attempt in range(_TRIES):
            if (skill not in await self.off()) is on:
                return
            head = await self._journal.head(STREAM)
            patch = HeadPatch(state="kept", title="skills")
            try:
                if head is None:
                    await self._journal.create(STREAM, KIND, payload, patch=patch)
                else:
                    writer = self._journal.writer(STREAM, KIND, head)
                    await self._journal.append(writer, payload, synced=True, patch=patch)
            except AppendConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    def _take(self, payload: object) -> None:
        match payload:
            case SkillDisabled(skill=skill):
                self._off[skill] = payload
            case SkillEnabled(skill=skill):
                self._off.pop(skill, None)
            case _:
                pass


_PATIENCE_S: Final = 5.0
"""Seconds that servers still connecting are waited for."""
_WILD: Final = frozenset("*?")


class Whole(NamedTuple):
    """A skill with everything in it, as it is now."""

    skill: Skill
    contents: SkillContents

    @property
    def pin(self) -> SkillPin:
        """Return what a job keeps of it."""
        skill, contents = self
        return SkillPin(
            name=skill.name,
            digest=contents.digest,
            description=skill.manifest.description,
            tools=skill.tools,
            rules=skill.rules,
            sandbox=skill.sandbox,
            trusted=skill.word.trusted == contents.digest,
            text_hash=contents.kept.digest if contents.texts else "",
        )


class LoadedSkills:
    """The skills of one process."""

    def __init__(self, parts: Parts, settings: SkillSettings) -> None:
        self.settings = settings
        self.switches = Switches(parts.journal)
        self.journal = parts.journal
        self.is_wanted = _speaks(parts.settings.sources)
        """Whether the tools of skills are offered: the settings speak of skills, or a job is under one."""
        self.holds = settings.switched_off != "finish"
        self._parts = parts
        self._changed: list[Callable[[], None]] = []
        self._lock = asyncio.Lock()

    # --- the port

    async def admit(self, run_types: Sequence[str], named: Sequence[str]) -> SkillAdmission:
        for run_type in run_types:
            await self._require(run_type)
        if not named:
            return SkillAdmission()
        self.want()
        pins, blobs = [], []
        for name in dict.fromkeys(named):
            whole = await self.usable(name, run_types)
            pins.append(whole.pin)
            blobs += [whole.contents.kept] if whole.contents.texts else []
        if AGENT in run_types:
            offered, more = await self._offered({*named})
            pins, blobs = [*pins, *offered], [*blobs, *more]
        return SkillAdmission(tuple(pins), tuple(blobs))

    async def digests(self, names: Sequence[str]) -> dict[str, str]:
        self.want()
        digests, book = {}, await self.book()
        for name in names:
            if name in book.skills:
                try:
                    digests[name] = (await self.whole(name)).contents.digest
                except NotFoundError:  # it cannot be used any more, as if it were gone
                    continue
        return digests

    async def held(self, created: JobCreated) -> str:
        if not self.holds:
            return ""
        book = await self.book()
        for pin in created.skills:
            skill = book.skills.get(pin.name)
            if skill is not None and not pin.offered and not await self.is_enabled(skill):
                return f"the skill {pin.name} is switched off"
        try:
            await self._require("plan" if created.kind == "plan" else created.name)
        except StateError as error:
            return error.message
        return ""

    async def files(self, names: Sequence[str]) -> dict[str, bytes]:
        bundle: dict[str, bytes] = {}
        for name in dict.fromkeys(names):
            whole = await self.usable(name, ())
            place, manifest = whole.skill.place, whole.skill.manifest
            if place.is_folder and SKILL_MD in dict(whole.contents.files):
                files = await asyncio.to_thread(place.files)
            else:
                head = msgspec.json.encode(manifest.description).decode()
                files = {SKILL_MD: f"---\nname: {name}\ndescription: {head}\n---\n\n{manifest.body}\n".encode()}
            bundle |= {f"{name}/{path}": data for path, data in files.items()}
        return bundle

    # --- what the part itself asks

    async def book(self) -> Book:
        """Return the skills, read when they are first asked for. Raises SettingsError."""
        if "_book" not in vars(self):  # every start of a job asks for it: no thread, no turn, once it is read
            async with self._lock:
                await asyncio.to_thread(lambda: self._book)
        return self._book

    @cached_property
    def _book(self) -> Book:
        from remit.parts.skills.folder import Book  # noqa: PLC0415 - most processes have no skills

        settings = self._parts.settings
        home = os.environ.get("HOME")
        trusted = self.is_wanted or os.environ.get(TRUST) == "1"
        return Book(self.settings, settings.folder, Path(home).resolve() if home else None, trusted=trusted)

    def want(self) -> None:
        """Offer the tools of skills from now on."""
        if not self.is_wanted:
            self._book  # noqa: B018 - whether the project's folders count is decided before
            self.is_wanted = True
            for changed in self._changed:
                changed()

    def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when the tools of skills are offered from then on."""
        self._changed.append(changed)

    async def is_enabled(self, skill: Skill) -> bool:
        """Return whether neither the settings nor anyone has switched a skill off."""
        return skill.word.enabled and skill.name not in await self.switches.off()

    async def lacking(self, skill: Skill) -> str:
        """Return why a skill is unavailable: the required tools that are missing or changed; empty: it is available."""
        required = skill.manifest.required_tools
        tools = {tool.meta.name: tool for tool in await self._parts.catalog.tools(_PATIENCE_S)} if required else {}
        missing, changed = [], []
        for name in required:
            matches = [tool for tool in tools.values() if fnmatchcase(tool.meta.name, name)]
            if not matches:
                missing.append(name)
            elif all(tool.quarantined is not None for tool in matches):
                changed.append(name)
        reasons = [f"missing: {', '.join(missing)}"] if missing else []
        reasons += [f"withheld: {', '.join(changed)}"] if changed else []
        return "; ".join(reasons)

    async def usable(self, name: str, run_types: Sequence[str]) -> Whole:
        """Return a skill that jobs of these run types may be under.

        Raises NotFoundError (SKILL_NOT_FOUND, SKILL_INVALID) or StateError (SKILL_DISABLED, SKILL_UNAVAILABLE).
        """
        whole = await self.whole(name)
        skill = whole.skill
        if not await self.is_enabled(skill):
            raise StateError(f"the skill {name} is switched off", code=Code.SKILL_DISABLED, remedy=self._switch(skill))
        outside = [kind for kind in run_types if skill.run_types and kind not in {*skill.run_types, "plan"}]
        if outside:
            reason = f"the skill {name} is not for {outside[0]}, only for {', '.join(skill.run_types)}"
            remedy = f"Say otherwise in [skills.{name}] run_types, or use another skill."
            raise StateError(reason, code=Code.SKILL_DISABLED, remedy=remedy)
        lacking = await self.lacking(skill)
        if lacking:
            reason = f"the skill {name} is unavailable: tools that it requires are {lacking}"
            raise StateError(reason, code=Code.SKILL_UNAVAILABLE, remedy="See `remit tools`, and add or approve them.")
        return whole

    async def whole(self, name: str) -> Whole:
        """Return a skill as it is now. Raises NotFoundError (SKILL_NOT_FOUND, SKILL_INVALID)."""
        skill = (await self.book()).get(name)
        from remit.parts.skills.manifest import InvalidManifestError  # noqa: PLC0415 - as above

        try:
            manifest, contents = await asyncio.to_thread(skill.place.read)
        except InvalidManifestError as error:
            reason = f"the skill {name} cannot be used any more: {error.finding.code}: {error}"
            raise NotFoundError(reason, code=Code.SKILL_INVALID, remedy="Correct it (remit skills check).") from error
        if manifest.name != name:
            reason = f"the skill in {skill.place.path} is called {manifest.name} now"
            raise NotFoundError(reason, code=Code.SKILL_NOT_FOUND, remedy="Start Remit again.")
        return Whole(msgspec.structs.replace(skill, manifest=manifest), contents)

    async def _require(self, run_type: str) -> None:
        """Raise StateError (SKILL_DISABLED) unless an enabled skill allows a run type, or no skill has to."""
        naming = (await self.book()).naming(run_type)
        off = [skill for skill in naming if not await self.is_enabled(skill)]
        for skill in naming:
            # One that lacks a tool allows its own run types, but stands in for none that is switched off.
            if not off or (skill not in off and not await self.lacking(skill)):
                return
        if off:
            names = ", ".join(skill.name for skill in off)
            reason = f"no enabled skill allows the run type {run_type}; switched off: {names}"
            raise StateError(reason, code=Code.SKILL_DISABLED, remedy=self._switch(off[0]))
        if self.settings.required:
            reason = f"no skill allows the run type {run_type}, and skills.required wants one"
            raise StateError(reason, code=Code.SKILL_DISABLED, remedy="Name it in the run types of a skill.")

    async def _offered(self, named: set[str]) -> tuple[list[SkillPin], list[Blob]]:
        """Return the skills that the model of a new job may activate."""
        pins, blobs = [], []
        for skill in (await self.book()).skills.values():
            allowed = not skill.run_types or AGENT in skill.run_types
            if skill.word.activate and allowed and skill.name not in named and await self.is_enabled(skill):
                whole = await self.whole(skill.name)
                if not await self.lacking(whole.skill):
                    pins.append(msgspec.structs.replace(whole.pin, offered=True))
                    blobs += [whole.contents.kept] if whole.contents.texts else []
        return pins, blobs

    def _switch(self, skill: Skill) -> str:
        if not skill.word.enabled:
            return f"Set enabled = true in [skills.{skill.name}] of remit.toml."
        return f"Switch it on: remit skills enable {skill.name}"


def _speaks(sources: Mapping[str, str]) -> bool:
    return any(key.startswith("skills.") and source != "default" for key, source in sources.items())


def open_skills(parts: Parts, settings: Section | None) -> LoadedSkills:
    """Return what knows the skills of a process."""
    return LoadedSkills(parts, cast("SkillSettings", settings))
