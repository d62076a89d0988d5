"""A skill's manifest, in both of its forms: the front matter of a SKILL.md, and the seed's YAML or JSON.

The open format (agentskills.io, specification of August 2026) has `name description license compatibility metadata
allowed-tools`; what is ours stands in its `metadata`, under `remit-required-tools`, `remit-run-types`, `remit-risk` and
`remit-sandbox`, so that the format's own validator stays content. The older form has `skill_name required_tools
allowed_run_types risk_policy`, and `description`, `sandbox` and `template`. Both are read into one value.

What is wrong is said as findings. A fatal one means that the skill is not loaded; with any other it is, since most
skills in use were written for readers that are lenient. A skill without findings is valid for the format's validator,
too.
"""

from __future__ import annotations

import re
import unicodedata
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import PolicyError
from remit.parts.skills.settings import SandboxLayer
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.jobs.plans.document import PlanDocument

MAX_HEAD: Final = 64 * 1024
"""Bytes of a front matter, and of a manifest without a text."""
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1_024
MAX_COMPATIBILITY: Final = 500
MAX_ITEMS: Final = 200
"""Tools, run types and rules that a manifest may name, each."""

FINDINGS: Final[dict[str, str]] = {
    "no_manifest": "There is no SKILL.md, and no manifest.",
    "unreadable": "A file or folder cannot be opened, or is no regular one.",
    "link": "It is reached by a symbolic link, which may lead out of its folder.",
    "too_large": "A manifest, a file or the whole folder is larger than the limit.",
    "too_many": "The folder holds more files, or a folder of skills more skills, than the limit.",
    "too_deep": "Folders are nested more deeply than the limit.",
    "encoding": "The manifest is not UTF-8, holds a NUL character, or begins with a byte order mark.",
    "front_matter": "SKILL.md does not begin with a front matter between two lines `---`, or it is not a table.",
    "yaml": "The YAML cannot be read, or holds anchors, aliases, tags or a key twice.",
    "json": "The JSON cannot be read, or holds a key twice.",
    "name": "The name is missing, or is not lower-case letters, digits and single hyphens, at most 64.",
    "name_unusable": "The name is not a text of 1 to 64 printable characters without slashes.",
    "folder_name": "The folder has another name than the skill.",
    "description": "The description is missing, or longer than 1,024 characters.",
    "template": "The description is still that of the template.",
    "field": "A field has another type than it should, or is too long.",
    "unknown_field": "The format has no such field.",
    "tools": "A required tool is not a tool's name or pattern.",
    "run_types": "A run type is not a recipe's name.",
    "risk": "The risk policy is neither `ask` nor `read-only` nor a list of rules that deny or ask.",
    "sandbox": "What it leaves of the sandbox is not a table of `limits`, `network`, `commands` and `min_isolation`.",
    "hooks": "The skill brings hooks; they are never run.",
    "collision": "Another skill of this name, from an earlier folder, counts.",
    "unknown_skill": "The settings have a table for a skill that does not exist.",
    "untrusted_folder": "The folder belongs to a project whose settings say nothing of skills, or are not trusted.",
}
"""Codes of findings, each with its meaning."""
UNWRITTEN: Final = "Say in one or two sentences what this skill does, and when an agent should use it."
"""The description in the template of a skill."""

RISKS: Final = ("ask", "read-only")
_FIELDS: Final = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_SEED_FIELDS: Final = frozenset(
    {"skill_name", "description", "required_tools", "allowed_run_types", "risk_policy", "sandbox", "template"}
)
_TOOL: Final = regex(r"[A-Za-z0-9_.*?-]{1,200}")
_RUN_TYPE: Final = regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_PLAIN: Final = regex(r"^([A-Za-z][\w-]*): +(?![\"'|>&*!\[{%@`#])(.*:(?: .*|))$", re.MULTILINE)
"""A line of a table whose text needs quotes, as it holds a colon: YAML refuses it, other readers do not."""

_FLOW: Final = regex(r"^[ -]*(?:[\w.-]+:)? *[\[{]", re.MULTILINE)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a skill."""

    code: str
    """Code of `FINDINGS`."""
    message: str
    fatal: bool = False
    """Whether the skill is not loaded."""


class InvalidManifestError(Exception):
    """A manifest cannot be used."""

    def __init__(self, code: str, message: str) -> None:
        self.finding = Finding(code=code, message=message, fatal=True)
        super().__init__(message)


class SkillManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill says of itself."""

    name: str
    description: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    """The tools that the author would have pre-approved; shown, and never a grant."""
    required_tools: tuple[str, ...] = ()
    run_types: tuple[str, ...] = ()
    """The run types that the author proposes it for; empty: the author says nothing."""
    risk: str = ""
    """`ask`, `read-only` or nothing."""
    rules: tuple[dict[str, Any], ...] = ()
    """Rules that deny or ask, in place of a word."""
    sandbox: SandboxLayer = SandboxLayer()
    body: str = ""
    """The instructions."""
    findings: tuple[Finding, ...] = ()


def read_skill_md(data: bytes, folder: str) -> SkillManifest:
    """Read a SKILL.md; `folder` is the name of its folder. Raises InvalidManifestError."""
    text = text_of(data).replace("\r\n", "\n")
    head, body = _split(text)
    mended = False
    try:
        fields = _yaml(head)
    except InvalidManifestError:  # as many readers do, take a text for one though it needs quotes
        fields, mended = _yaml(_PLAIN.sub(_quoted, head)), True
    reader = _Reader(_table(fields), _FIELDS)
    if mended:
        reader.note("yaml", "a text with a colon stands without quotes")
    if data.startswith(BOM_UTF8):
        reader.note("encoding", "it begins with a byte order mark")
    if _FLOW.search(head):
        reader.note("yaml", "a list or a table stands in brackets, which the format's validator refuses")
    return reader.skill_md(folder, body)


def read_seed(data: bytes, file: str) -> SkillManifest:
    """Read a YAML or JSON manifest of the older form, by the ending of its `file`. Raises InvalidManifestError."""
    text = text_of(data)
    fields = _table(_json(text) if file.endswith(".json") else _yaml(text))
    return _Reader(fields, _SEED_FIELDS).seed()


def text_of(data: bytes) -> str:
    """Return the text in a file. Raises InvalidManifestError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidManifestError("encoding", f"it is not UTF-8: {error.reason} at byte {error.start}") from error
    if "\0" in text:
        raise InvalidManifestError("encoding", "it holds a NUL character")
    return text


def _split(text: str) -> tuple[str, str]:
    """Return the front matter, and the rest."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        raise InvalidManifestError("front_matter", "the first line is not ---")
    end = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if end is None:
        raise InvalidManifestError("front_matter", "no second line --- ends it")
    if end.start() > MAX_HEAD:
        raise InvalidManifestError("too_large", f"the front matter is longer than {MAX_HEAD:,} characters")
    return rest[: end.start()], rest[end.end() :].strip("\n")


def _yaml(text: str) -> Any:
    from remit.jobs.plans.yaml_text import read_yaml  # noqa: PLC0415 - the parser is slow to load

    if len(text) > MAX_HEAD:
        raise InvalidManifestError("too_large", f"the YAML is longer than {MAX_HEAD:,} characters")
    if {"\ue000", "\ue001"} & {*text}:
        raise InvalidManifestError("yaml", "it holds a character of private use")
    return _parsed(read_yaml, text, "yaml")


def _quoted(line: re.Match[str]) -> str:
    return f"{line[1]}: {msgspec.json.encode(line[2]).decode()}"


def _json(text: str) -> Any:
    from remit.jobs.plans.document import read_json  # noqa: PLC0415 - as above

    return _parsed(read_json, text, "json")


def _parsed(read: Callable[[str, PlanDocument], object], text: str, code: str) -> Any:
    from remit.jobs.plans.document import PlanDocument, UnreadablePlanError  # noqa: PLC0415 - as above

    document = PlanDocument()
    try:
        read(text, document)
    except (UnreadablePlanError, RecursionError) as error:
        raise InvalidManifestError(code, str(error)) from error
    if document.problems:
        raise InvalidManifestError(code, f"line {document.problems[0].line}: {document.problems[0].message}")
    return document.value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifestError("front_matter", "it is not a table of fields")
    return value


class _Reader:
    """Reads the fields of one manifest."""

    def __init__(self, fields: dict[str, Any], known: frozenset[str]) -> None:
        self._fields = fields
        self._findings: list[Finding] = []
        if "hooks" in fields:
            self.note("hooks", "hooks are never run")
        for name in sorted(fields.keys() - known - {"hooks"}):
            self.note("unknown_field", f"{name[:MAX_NAME]} is not read")

    def skill_md(self, folder: str, body: str) -> SkillManifest:
        metadata = self._metadata()
        name = self._name("name", folder)
        if name != unicodedata.normalize("NFKC", folder):
            self.note("folder_name", f"the skill {name} lies in the folder {folder}")
        risk = metadata.get("remit-risk", "").strip()
        if risk not in {"", *RISKS}:
            raise InvalidManifestError("risk", f"remit-risk is {risk[:MAX_NAME]!r}")
        return SkillManifest(
            name=name,
            description=self._description(needed=True),
            license=self._text("license"),
            compatibility=self._text("compatibility", MAX_COMPATIBILITY),
            metadata=metadata,
            allowed_tools=self._allowed(),
            required_tools=_tools(metadata.get("remit-required-tools", "").split()),
            run_types=_run_types(metadata.get("remit-run-types", "").split()),
            risk=risk,
            sandbox=_sandbox(_json(metadata.get("remit-sandbox", "") or "{}")),
            body=body,
            findings=tuple(self._findings),
        )

    def seed(self) -> SkillManifest:
        name, risk = self._name("skill_name", ""), self._fields.get("risk_policy") or ""
        rules = _rules(risk) if isinstance(risk, list) else ()
        if not isinstance(risk, list) and risk not in ("", *RISKS):
            raise InvalidManifestError("risk", f"risk_policy is {str(risk)[:MAX_NAME]!r}")
        return SkillManifest(
            name=name,
            description=self._description(needed=False),
            required_tools=_tools(self._items("required_tools")),
            run_types=_run_types(self._items("allowed_run_types")),
            risk="" if isinstance(risk, list) else risk,
            rules=rules,
            sandbox=_sandbox(self._fields.get("sandbox", {})),
            body=self._text("template", 1_000_000),
            findings=tuple(self._findings),
        )

    def note(self, code: str, message: str) -> None:
        """Keep something that is wrong, and no reason to leave the skill out."""
        self._findings.append(Finding(code=code, message=message))

    def _name(self, field: str, folder: str) -> str:
        """Return the name, or in its place that of the folder."""
        value = self._fields.get(field)
        name = unicodedata.normalize("NFKC", _plain(value).strip()) if _is_plain(value) else ""
        if not name and not folder:
            raise InvalidManifestError("name", f"{field} is missing, or is not a text")
        if not name:
            self.note("name", f"{field} is missing; the folder's is taken")
            name = unicodedata.normalize("NFKC", folder)
        check_name(name)
        if field == "name" and (
            name != name.lower() or "--" in name or name[0] == "-" or name[-1] == "-" or not _has_only_words(name)
        ):
            self.note("name", f"{name} is not lower-case letters, digits and single hyphens")
        return name

    def _description(self, *, needed: bool) -> str:
        description = self._fields.get("description")
        if description == UNWRITTEN:
            self.note("template", "say in the description what it does")
        if description is not None and not _is_plain(description):
            raise InvalidManifestError("description", "the description is not a text")
        text = "" if description is None else _plain(description).strip()
        if needed and not text:
            raise InvalidManifestError("description", "there is no description: no agent would know when to use it")
        if len(text) > MAX_DESCRIPTION:
            self.note("description", f"the description has {len(text):,} characters; {MAX_DESCRIPTION:,} count")
        return text[:MAX_DESCRIPTION]

    def _text(self, field: str, longest: int = MAX_DESCRIPTION) -> str:
        value = self._fields.get(field)
        if value is None:
            return ""
        if not _is_plain(value):
            self.note("field", f"{field} is not a text")
            return ""
        text = _plain(value)
        if len(text) > longest:
            self.note("field", f"{field} is longer than {longest:,} characters")
        return text[:longest]

    def _allowed(self) -> tuple[str, ...]:
        """Return the tools that the author would have pre-approved; many write a list."""
        allowed_tools = self._fields.get("allowed-tools")
        items = allowed_tools if isinstance(allowed_tools, list) else self._text("allowed-tools", 100_000).split()
        return tuple(_plain(item) for item in items[:MAX_ITEMS] if _is_plain(item))

    def _metadata(self) -> dict[str, str]:
        metadata = self._fields.get("metadata")
        if metadata is None:
            return {}
        if not isinstance(metadata, dict):
            self.note("field", "metadata is not a table")
            return {}
        odd = [name for name, value in metadata.items() if not _is_plain(value)]
        if odd:
            self.note("field", f"metadata: {', '.join(odd)[:MAX_DESCRIPTION]} is not a text")
        return {name: _plain(value) for name, value in metadata.items() if _is_plain(value)}

    def _items(self, field: str) -> list[str]:
        value = self._fields.get(field)
        items = [] if value is None else value.split() if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise InvalidManifestError("field", f"{field} is not a list of texts")
        return items


def check_name(name: str) -> None:
    """Raise InvalidManifestError for a name under which nothing could be found, or that would be a path."""
    if len(name) > MAX_NAME or not name.isprintable() or {"/", "\\"} & {*name} or name in {"", ".", ".."}:
        raise InvalidManifestError("name_unusable", f"{name[:MAX_NAME]!r} cannot be a skill's name")


def _has_only_words(name: str) -> bool:
    return all(char.isalnum() or char == "-" for char in name)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _plain(value: Any) -> str:
    """Return a scalar as it was meant: what looks like a number or a truth is a text here."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _tools(names: list[str]) -> tuple[str, ...]:
    return _names(names, "tools", _TOOL, "a tool's name")


def _run_types(names: list[str]) -> tuple[str, ...]:
    return _names(names, "run_types", _RUN_TYPE, "a recipe's name")


def _names(names: list[str], code: str, form: re.Pattern[str], what: str) -> tuple[str, ...]:
    for name in names:
        if not form.fullmatch(name):
            raise InvalidManifestError(code, f"{name[:MAX_NAME]!r} is not {what}")
    if len(names) > MAX_ITEMS:
        raise InvalidManifestError(code, f"it names more than {MAX_ITEMS}")
    return tuple(dict.fromkeys(names))


def _rules(raw: list[Any]) -> tuple[dict[str, Any], ...]:
    """Return rules that deny or ask, as they are written."""
    try:
        from remit.policy.overlay import parse_overlay  # noqa: PLC0415 - rules are slow to load, and who looks has none

        parse_overlay("skill", raw)
    except PolicyError as error:
        raise InvalidManifestError("risk", error.message) from error
    if len(raw) > MAX_ITEMS:
        raise InvalidManifestError("risk", f"it has more than {MAX_ITEMS} rules")
    return tuple(raw)


def _sandbox(raw: Any) -> SandboxLayer:
    try:
        return msgspec.convert(raw, SandboxLayer)
    except msgspec.ValidationError as error:
        raise InvalidManifestError("sandbox", str(error)) from error
