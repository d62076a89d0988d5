"""The skills of a process: those that ship, and those in the folders of the settings, as they are when it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, SettingsError
from remit.nearest import did_you_mean
from remit.policy.overlay import parse_overlay
from remit.skills.folder import SkillPlace, places_in
from remit.skills.manifest import RISKS, Finding, InvalidManifestError, Manifest
from remit.skills.settings import HOME, SkillSettings, Word, words_of

MAX_SKILLS: Final = 500
"""Skills of one folder."""
SHIPPED: Final = Path(__file__).parent / "shipped"
_OURS: Final = "remit"
_EFFECTS: Final = {"ask": "ask", "read-only": "deny"}


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill, and the operator's word on it."""

    manifest: Manifest
    place: SkillPlace
    source: str
    """`remit` for one that ships, `project`, `user`, or `folder` for any other place."""
    word: Word = Word()
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """Return its name."""
        return self.manifest.name

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the tools that an agent under it may call: those that it requires, and those of the operator."""
        return tuple(dict.fromkeys((*self.manifest.required_tools, *self.word.tools)))

    @property
    def run_types(self) -> tuple[str, ...]:
        """Return the run types that it allows; empty: it says nothing."""
        return self.manifest.run_types if self.word.run_types is None else self.word.run_types

    @property
    def rules(self) -> tuple[dict[str, Any], ...]:
        """Return its author's rules, and the operator's: they deny or ask."""
        return tuple(
            {**rule, "id": f"{whose}.{rule.get('id', number)}"}
            for whose, policy in (("author", self.manifest.risk or self.manifest.rules), ("operator", self.word.policy))
            for number, rule in enumerate(_rules_of(policy, self.tools), 1)
        )

    @property
    def sandbox(self) -> tuple[dict[str, Any], ...]:
        """Return what its author leaves of the sandbox, and what the operator does."""
        layers = (msgspec.to_builtins(layer) for layer in (self.manifest.sandbox, self.word.sandbox))
        return tuple(layer for layer in layers if layer)


class Unloaded(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder of skills that is not loaded, or of which the settings speak and that is not there."""

    name: str
    """Name of the skill, or that of the entry."""
    path: str = ""
    source: str = "settings"
    findings: tuple[Finding, ...]


class Book:
    """The skills by name, and what is not loaded."""

    def __init__(self, settings: SkillSettings, project: Path, home: Path | None, *, trusted: bool) -> None:
        self.skills: dict[str, Skill] = {}
        self.unloaded: list[Unloaded] = []
        self._words = words_of(settings)
        self._home = home
        for folder in dict.fromkeys(settings.folders):
            root, source = Path(folder), self._source(Path(folder), project)
            if source == "project" and not trusted:
                self._note_untrusted(root)
            else:
                self._take(root, source)
        self._take(SHIPPED, _OURS)
        for name in sorted(self._words):
            _check_policy(name, self._words[name])
            if name not in self.skills and not any(one.name == name for one in self.unloaded):
                said = f"no folder has it. {did_you_mean(name, self.skills)}".strip()
                self.unloaded.append(
                    Unloaded(name=name, findings=(Finding(code="unknown_skill", message=said, fatal=True),))
                )

    def get(self, name: str) -> Skill:
        """Return a skill. Raises NotFoundError (SKILL_NOT_FOUND), or (SKILL_INVALID) for one that is not loaded."""
        skill = self.skills.get(name)
        if skill is not None:
            return skill
        entry = next((one for one in self.unloaded if one.name == name), None)
        if entry is not None and entry.path:
            said = entry.findings[0]
            remedy = "Correct it (remit skills check), and start Remit again."
            why = f"the skill {name} is not loaded: {said.code}: {said.message}"
            raise NotFoundError(why, code=Code.SKILL_INVALID, remedy=remedy)
        hint = did_you_mean(name, self.skills) or "`remit skills` lists them."
        raise NotFoundError(f"there is no skill {name!r:.80}", code=Code.SKILL_NOT_FOUND, remedy=hint)

    def naming(self, run_type: str) -> list[Skill]:
        """Return the skills that name a run type."""
        return [skill for skill in self.skills.values() if run_type in skill.run_types]

    def _source(self, root: Path, project: Path) -> str:
        if self._home is not None and root == self._home / HOME.removeprefix("~/"):
            return "user"
        return "project" if root.is_relative_to(project) else "folder"

    def _take(self, root: Path, source: str) -> None:
        """Load the skills of a folder."""
        try:
            places, more = places_in(root, MAX_SKILLS)
        except InvalidManifestError as error:
            self._leave(root.name, root, source, error.finding)
            return
        if more:
            said = Finding(
                code="too_many", message=f"it holds more than {MAX_SKILLS}; the others do not count", fatal=True
            )
            self._leave(root.name, root, source, said)
        for place in places:
            try:
                manifest = place.manifest()
                links = place.links() if place.is_folder else []
            except InvalidManifestError as error:
                self._leave(place.name, place.path, source, error.finding)
                continue
            before = self.skills.get(manifest.name)
            if before is not None:
                said = Finding(code="collision", message=f"{before.place.path} counts", fatal=True)
                self._leave(manifest.name, place.path, source, said)
                continue
            self.skills[manifest.name] = Skill(
                manifest=manifest,
                place=place,
                source=source,
                word=self._words.get(manifest.name, Word()),
                findings=(*manifest.findings, *_said_of(links)),
            )

    def _note_untrusted(self, root: Path) -> None:
        try:
            there = bool(places_in(root, 1)[0])
        except InvalidManifestError:
            there = True
        if there:
            message = "say in [skills] of remit.toml which folders count, and review it with `remit trust`"
            self._leave(root.name, root, "project", Finding(code="untrusted_folder", message=message, fatal=True))

    def _leave(self, name: str, path: Path, source: str, said: Finding) -> None:
        self.unloaded.append(Unloaded(name=name, path=str(path), source=source, findings=(said,)))


def _said_of(links: list[str]) -> Iterator[Finding]:
    if links:
        yield Finding(code="link", message=f"{', '.join(links[:3])} {'is' if len(links) == 1 else 'are'} not followed")


def _rules_of(policy: str | tuple[dict[str, Any], ...], tools: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return the rules of a policy: a word is about what its tools change, run or send."""
    if not isinstance(policy, str):
        return policy
    if not policy or not tools:
        return ()
    return ({"id": policy, "effect": _EFFECTS[policy], "tools": list(tools), "levels": ["L1", "L2"]},)


def _check_policy(name: str, word: Word) -> None:
    """Raise SettingsError for an operator's word that would not be understood later."""
    policy, known = word.policy, ", ".join(RISKS)
    if isinstance(policy, str):
        if policy not in {"", *RISKS}:
            raise SettingsError(f"skills.{name}.policy is {policy!r:.80}", remedy=f"Use one of {known}, or rules.")
        policy = ()
    parse_overlay(f"skill:{name}", policy, word.tools or None)
