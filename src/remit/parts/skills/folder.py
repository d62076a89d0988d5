"""The folder of a skill: what it holds within the limits, its digest, and its texts; and a new one to fill in.

Nothing is reached by a link, nothing whose name begins with a dot is looked at, and nothing is run. The digest covers
the path and the content of every file, so that a skill with the same digest is the same skill.

The skills of a process: those that ship, and those in the folders of the settings, as they are when it starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.canonical import canonical, sha256
from remit.codes import Code
from remit.errors import NotFoundError, ProviderError, SettingsError, UsageError
from remit.files.directory import ConfinedDirectory, WalkEntry
from remit.files.text import is_utf8
from remit.journal.event import Blob
from remit.nearest import did_you_mean
from remit.parts.skills.manifest import (
    RISKS,
    UNWRITTEN,
    Finding,
    InvalidManifestError,
    SkillManifest,
    read_seed,
    read_skill_md,
)
from remit.parts.skills.settings import HOME, SKILL_MD, SkillSettings, Word, words_of
from remit.policy.overlay import parse_overlay

MAX_MANIFEST: Final = 1024 * 1024
"""Bytes of a SKILL.md, and of any other manifest."""
MAX_FILES: Final = 1_000
MAX_FOLDER: Final = 32 * 1024 * 1024
"""Bytes of all files of a skill."""
MAX_DEPTH: Final = 8
MAX_TEXT: Final = 256 * 1024
"""Bytes of a file that agents may read; a larger one, and a binary one, only counts for the digest."""
MAX_TEXTS: Final = 2 * 1024 * 1024
"""Bytes of all texts that a job keeps of a skill, the first ones by path; its SKILL.md is always among them."""
_MANIFESTS: Final = (SKILL_MD, "skill.md", "skill.yaml", "skill.yml", "skill.json")
_SEEDS: Final = (".yaml", ".yml", ".json")
_TEMPLATE: Final = """---
name: {name}
description: {description}
metadata:
  remit-required-tools: ""
  remit-risk: "ask"
---

# {name}

1. Say what to do first.
2. Say how the result should look.
"""


class SkillContents(msgspec.Struct, frozen=True):
    """The files that a skill consists of."""

    digest: str
    files: tuple[tuple[str, int], ...]
    """Path and size of each file."""
    texts: dict[str, str]
    """The texts that agents may read, by path; `SKILL.md` is the instructions."""

    @property
    def kept(self) -> Blob:
        """Return the texts as a job keeps them, under their digest."""
        data = msgspec.json.encode(self.texts, order="sorted")
        return Blob(sha256(data), data)


class SkillPlace(msgspec.Struct, frozen=True):
    """Place of a skill: a folder, or a manifest alone."""

    root: Path
    """The folder of skills."""
    name: str
    """The entry in it."""
    is_folder: bool

    @property
    def path(self) -> Path:
        """Return the folder or the file."""
        return self.root / self.name

    def manifest(self) -> SkillManifest:
        """Read the manifest. Raises InvalidManifestError."""
        if not self.is_folder:
            return read_seed(self._bytes(ConfinedDirectory(self.root), self.name), self.name)
        inside = ConfinedDirectory(self.root, (self.name,))
        for file in _MANIFESTS:
            data = self._maybe(inside, file)
            if data is not None:
                return self._manifest(data, file)
        raise InvalidManifestError("no_manifest", "there is no SKILL.md in it")

    def read(self) -> tuple[SkillManifest, SkillContents]:
        """Read everything, the manifest from the same bytes. Raises InvalidManifestError."""
        files = self.files()
        if not self.is_folder:
            data = files[self.name]
            manifest = read_seed(data, self.name)
            own, digest = {self.name}, sha256(data)
        else:
            file = next((candidate for candidate in _MANIFESTS if candidate in files), "")
            manifest = self._manifest(files[file], file) if file else self.manifest()
            own, digest = {*_MANIFESTS}, sha256(canonical([[path, sha256(data)] for path, data in files.items()]))
        texts, room = {SKILL_MD: manifest.body} if manifest.body or self.is_folder else {}, MAX_TEXTS
        for path, data in files.items():
            text = _text(data) if path not in own else None
            if text is not None and len(data) <= room:
                texts[path], room = text, room - len(data)
        return manifest, SkillContents(digest, tuple((path, len(data)) for path, data in files.items()), texts)

    def _manifest(self, data: bytes, file: str) -> SkillManifest:
        if len(data) > MAX_MANIFEST:
            raise InvalidManifestError("too_large", f"{file} is larger than {MAX_MANIFEST:,} bytes")
        return read_skill_md(data, self.name) if file.endswith(".md") else read_seed(data, file)

    def files(self) -> dict[str, bytes]:
        """Return every file, by path. Raises InvalidManifestError."""
        if not self.is_folder:
            return {self.name: self._bytes(ConfinedDirectory(self.root), self.name)}
        inside = ConfinedDirectory(self.root, (self.name,))
        return {entry.path: self._bytes(inside, entry.path, MAX_FOLDER) for entry in self._entries(inside)}

    def links(self) -> list[str]:
        """Return the links in it, which are not followed. Raises InvalidManifestError."""
        return [entry.path for entry in self._walk(ConfinedDirectory(self.root, (self.name,))) if entry.kind == "link"]

    def _entries(self, inside: ConfinedDirectory) -> list[WalkEntry]:
        """Return the regular files, within the limits."""
        files, total = [], 0
        for entry in self._walk(inside):
            if entry.kind != "file":
                continue
            files.append(entry)
            total += entry.size
            if len(files) > MAX_FILES:
                raise InvalidManifestError("too_many", f"it holds more than {MAX_FILES:,} files")
            if total > MAX_FOLDER:
                raise InvalidManifestError("too_large", f"its files have more than {MAX_FOLDER:,} bytes")
        return sorted(files)

    def _walk(self, inside: ConfinedDirectory) -> list[WalkEntry]:
        entries: list[WalkEntry] = []
        try:
            for entry in inside.walk(depth=MAX_DEPTH, enter=lambda entry: not entry.name.startswith(".")):
                if entry.name.startswith("."):
                    continue
                if entry.kind == "folder" and entry.path.count("/") >= MAX_DEPTH:
                    raise InvalidManifestError("too_deep", f"folders are nested more than {MAX_DEPTH} deep")
                entries.append(entry)
                if len(entries) > 2 * MAX_FILES:
                    raise InvalidManifestError("too_many", f"it holds more than {2 * MAX_FILES:,} entries")
        except ProviderError as error:
            raise self._invalid(error) from error
        return entries

    def _maybe(self, inside: ConfinedDirectory, file: str) -> bytes | None:
        try:
            return inside.read(file, MAX_MANIFEST).data
        except ProviderError as error:
            if error.code is Code.FILE_NOT_FOUND:
                return None
            raise self._invalid(error, file) from error

    def _bytes(self, inside: ConfinedDirectory, file: str, cap: int = MAX_MANIFEST) -> bytes:
        try:
            return inside.read(file, cap).data
        except ProviderError as error:
            raise self._invalid(error, file) from error

    def _invalid(self, error: ProviderError, file: str = "") -> InvalidManifestError:
        code = {Code.FILE_TOO_LARGE: "too_large"}.get(error.code or Code.FILE_IO_FAILED, "unreadable")
        is_link = any(os.path.islink(path) for path in (self.path, self.path / file))  # noqa: PTH114 - never raises
        return InvalidManifestError("link" if is_link else code, str(error))


def places_in(root: Path, most: int) -> tuple[list[SkillPlace], bool]:
    """Return the skills of a folder, at most so many, by name, and whether there are more.

    A folder that is not there has none. Raises InvalidManifestError if it cannot be listed.
    """
    if not os.path.isdir(root):  # noqa: PTH112 - which answers no for a folder above that cannot be entered
        return [], False
    try:
        entries = list(ConfinedDirectory(root).walk(depth=0, enter=lambda _: False))
    except ProviderError as error:
        raise InvalidManifestError("unreadable", str(error)) from error
    shown = [entry for entry in entries if not entry.name.startswith(".")]
    chosen = [entry for entry in shown if entry.kind in {"folder", "link"} or entry.name.endswith(_SEEDS)]
    places = [SkillPlace(root, entry.name, not entry.name.endswith(_SEEDS)) for entry in chosen[:most]]
    return places, len(chosen) > most


def write_skill(name: str, folder: Path) -> Path:
    """Write a skill into a folder of skills; the path of its SKILL.md. Raises UsageError."""
    text = _TEMPLATE.format(name=name, description=UNWRITTEN)
    try:
        manifest = read_skill_md(text.encode(), name)
    except (InvalidManifestError, UnicodeEncodeError) as error:
        raise UsageError(f"{name!r:.80} cannot be a skill's name: {error}", code=Code.SKILL_INVALID) from error
    if wrong := [finding for finding in manifest.findings if finding.code != "template"]:
        remedy = "Use lower-case letters, digits and single hyphens, such as release-notes."
        raise UsageError(f"{name!r:.80}: {wrong[0].message}", code=Code.SKILL_INVALID, remedy=remedy)
    file = folder / name / SKILL_MD
    try:
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(f"{file.parent} is there already", remedy="Choose another name.") from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", remedy="Choose another folder: --in FOLDER.") from error
    return file


def _text(data: bytes) -> str | None:
    if len(data) > MAX_TEXT or b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if is_utf8(text) else None


MAX_SKILLS: Final = 500
"""Skills of one folder."""
SHIPPED: Final = Path(__file__).parent / "shipped"
_OURS: Final = "remit"
_EFFECTS: Final = {"ask": "ask", "read-only": "deny"}


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill, and the operator's word on it."""

    manifest: SkillManifest
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
            if name not in self.skills and not any(skill_unloaded.name == name for skill_unloaded in self.unloaded):
                problem = f"no folder has it. {did_you_mean(name, self.skills)}".strip()
                self.unloaded.append(
                    Unloaded(name=name, findings=(Finding(code="unknown_skill", message=problem, fatal=True),))
                )

    def get(self, name: str) -> Skill:
        """Return a skill. Raises NotFoundError (SKILL_NOT_FOUND), or (SKILL_INVALID) for one that is not loaded."""
        skill = self.skills.get(name)
        if skill is not None:
            return skill
        entry = next((skill_unloaded for skill_unloaded in self.unloaded if skill_unloaded.name == name), None)
        if entry is not None and entry.path:
            finding = entry.findings[0]
            remedy = "Correct it (remit skills check), and start Remit again."
            reason = f"the skill {name} is not loaded: {finding.code}: {finding.message}"
            raise NotFoundError(reason, code=Code.SKILL_INVALID, remedy=remedy)
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
            finding = Finding(
                code="too_many", message=f"it holds more than {MAX_SKILLS}; the others do not count", fatal=True
            )
            self._leave(root.name, root, source, finding)
        for place in places:
            try:
                manifest = place.manifest()
                links = place.links() if place.is_folder else []
            except InvalidManifestError as error:
                self._leave(place.name, place.path, source, error.finding)
                continue
            before = self.skills.get(manifest.name)
            if before is not None:
                finding = Finding(code="collision", message=f"{before.place.path} counts", fatal=True)
                self._leave(manifest.name, place.path, source, finding)
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

    def _leave(self, name: str, path: Path, source: str, finding: Finding) -> None:
        self.unloaded.append(Unloaded(name=name, path=str(path), source=source, findings=(finding,)))


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
