"""Sixty skills in the shapes that public ones have, and forty that cannot be loaded: tables, written into a folder.

All of them are made up. The shapes are those of collections that people share: most have a name and a description
alone, some a license, a few odd metadata; bodies from a line to tens of kilobytes; scripts, references and assets
beside them; names that differ from the folder's; fields of one reader or another.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

LONG: Final = "\n".join(f"## Part {n}\n\n{'Consider the case at hand with care. ' * 20}" for n in range(100))


class Shape(NamedTuple):
    """One skill."""

    folder: str
    head: str
    """The front matter; `{name}` is the folder's name."""
    body: str = "# How to\n\nDo one thing after the other.\n"
    files: tuple[tuple[str, str | bytes], ...] = ()
    is_valid: bool = True
    """Whether the format's validator accepts it."""

    def write(self, root: Path) -> Path:
        """Write it below a folder of skills."""
        place = root / self.folder
        place.mkdir(parents=True)
        text = f"---\n{self.head.format(name=self.folder)}\n---\n\n{self.body}"
        (place / "SKILL.md").write_text(text, encoding="utf-8")
        for path, content in self.files:
            file = place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            if path.endswith(".sh"):
                file.chmod(0o755)
        return place


_PLAIN: Final = "name: {name}\ndescription: Use this for work with {name}."
_SCRIPT: Final = (("scripts/run.py", "print('hello')\n"), ("scripts/setup.sh", "#!/bin/sh\nexit 0\n"))
_REFERENCES: Final = tuple((f"references/part-{n}.md", f"# Part {n}\n") for n in range(12))
_ASSETS: Final = (("assets/logo.png", b"\x89PNG\r\n\x1a\n\x00\x00"), ("assets/template.html", "<p>{{ text }}</p>"))

_BARE: Final = (
    *("brainstorming", "writing-plans", "code-review", "debugging", "git-worktrees", "commit-messages"),
    *("release-notes", "api-design", "pdf", "docx", "xlsx", "pptx", "frontend-design", "mcp-builder"),
)
SHAPES: Final[tuple[Shape, ...]] = (
    *(Shape(name, _PLAIN) for name in _BARE),
    *(Shape(f"with-scripts-{n}", _PLAIN, files=_SCRIPT) for n in range(8)),
    *(Shape(f"with-references-{n}", _PLAIN, files=_REFERENCES) for n in range(5)),
    *(Shape(f"with-assets-{n}", _PLAIN, files=(*_ASSETS, *_SCRIPT)) for n in range(4)),
    Shape("long-body", _PLAIN, LONG),
    Shape("longer-body", _PLAIN, LONG * 2),
    Shape("no-body", _PLAIN, ""),
    Shape("licensed", _PLAIN + "\nlicense: Apache-2.0"),
    Shape("licensed-file", _PLAIN + "\nlicense: Complete terms in LICENSE.txt", files=(("LICENSE.txt", "Terms"),)),
    Shape("compatible", _PLAIN + "\ncompatibility: Needs git and python 3.11"),
    Shape("metadata", _PLAIN + '\nmetadata:\n  author: someone\n  version: "1.0"'),
    Shape("metadata-number", _PLAIN + "\nmetadata:\n  version: 2"),
    Shape("metadata-hint", _PLAIN + "\nmetadata:\n  argument-hint: file-or-folder\n  short-description: Short"),
    Shape("allowed-tools", _PLAIN + "\nallowed-tools: Read Grep Bash(git:*)"),
    Shape("allowed-list", _PLAIN + "\nallowed-tools:\n  - Read\n  - Bash(npm run *)"),
    Shape("allowed-flow", _PLAIN + "\nallowed-tools: [Read, Write]", is_valid=False),
    Shape("quoted", 'name: "{name}"\ndescription: "Use this: when a file is big."'),
    Shape("single-quoted", "name: '{name}'\ndescription: 'It''s for tables.'"),
    Shape("colon", "name: {name}\ndescription: Use this when: the user asks", is_valid=False),
    Shape("folded", "name: {name}\ndescription: >\n  Long words\n  over lines."),
    Shape("literal", "name: {name}\ndescription: |\n  Long words\n  over lines."),
    Shape("comment", "# about this skill\n" + _PLAIN + " # in short"),
    Shape("crlf", "name: {name}\r\ndescription: Lines as on Windows.\r"),
    Shape("umlaut-ü", _PLAIN),
    Shape("数据", _PLAIN),
    Shape("emoji-text", "name: {name}\ndescription: Make things shine ✨ and run 🚀"),
    Shape("Title_Case", "name: Title Case\ndescription: A name with a blank and capitals.", is_valid=False),
    Shape("other-folder", "name: another-name\ndescription: The folder has another name.", is_valid=False),
    Shape("with--hyphens", _PLAIN, is_valid=False),
    Shape("long-description", "name: {name}\ndescription: " + "Word " * 300, is_valid=False),
    Shape("no-name", "description: The name was forgotten.", is_valid=False),
    Shape("claude-keys", _PLAIN + "\nmodel: opus\nargument-hint: x\nuser-invocable: true", is_valid=False),
    Shape("with-hooks", _PLAIN + "\nhooks:\n  PreToolUse:\n    - command: rm -rf /", is_valid=False),
    Shape("version-key", _PLAIN + "\nversion: 1.2.3", is_valid=False),
    Shape("dashes-in-body", _PLAIN, "Text\n\n---\n\nMore text\n\n---\n"),
    Shape("nested", _PLAIN, files=(("a/b/c/d/e/deep.md", "deep"), (".git/config", "hidden"), ("x.pyc", b"\0"))),
    Shape("names-our-fields", _PLAIN + "\nmetadata:\n  remit-required-tools: fs.read\n  remit-run-types: agent"),
    Shape("asks", _PLAIN + "\nmetadata:\n  remit-risk: ask"),
)  # fmt: skip


class Wrong(NamedTuple):
    """A folder or a file that cannot be loaded as a skill, with the code of the finding."""

    name: str
    code: str
    write: Callable[[Path], object]


def _md(text: str | bytes) -> Callable[[Path], object]:
    def write(place: Path) -> None:
        place.mkdir()
        (place / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _head(head: str) -> Callable[[Path], object]:
    return _md(f"---\n{head}\n---\nBody\n")


def _file(text: str | bytes) -> Callable[[Path], object]:
    return lambda place: place.write_bytes(text if isinstance(text, bytes) else text.encode())


def _sparse(path: str) -> Callable[[Path], object]:
    def write(place: Path) -> None:
        _head("name: x\ndescription: y")(place)
        with (place / path).open("ab") as stream:
            stream.truncate(100 * 1024 * 1024)

    return write


def _filled(count: int, path: Callable[[int], str]) -> Callable[[Path], object]:
    def write(place: Path) -> None:
        _head("name: x\ndescription: y")(place)
        for number in range(count):
            file = place / path(number)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    return write


def _special(make: Callable[[Path], object], inside: str = "SKILL.md") -> Callable[[Path], object]:
    def write(place: Path) -> None:
        place.mkdir()
        make(place / inside)

    return write


_BOMB: Final = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)), "name: x"]
)
WRONG: Final[tuple[Wrong, ...]] = (
    Wrong("empty-folder", "no_manifest", lambda place: place.mkdir()),
    Wrong("readme-only", "no_manifest", _special(lambda path: path.write_text("x"), "README.md")),
    Wrong("empty-file", "front_matter", _md("")),
    Wrong("no-front-matter", "front_matter", _md("# A title\n")),
    Wrong("unclosed", "front_matter", _md("---\nname: x\ndescription: y\n")),
    Wrong("list-head", "front_matter", _head("- name\n- description")),
    Wrong("text-head", "front_matter", _head("just words")),
    Wrong("nothing-between", "front_matter", _md("---\n---\nBody")),
    Wrong("utf-16", "encoding", _md("---\nname: x\ndescription: y\n---\n".encode("utf-16"))),
    Wrong("latin-1", "encoding", _md("---\nname: x\ndescription: für\n---\n".encode("latin-1"))),
    Wrong("nul", "encoding", _md("---\nname: x\ndescription: y\0z\n---\n")),
    Wrong("half-a-character", "encoding", _md(b"---\nname: x\ndescription: \xed\xa0\x80\n---\n")),
    Wrong("bomb", "yaml", _head(_BOMB)),
    Wrong("alias", "yaml", _head("name: &n x\ndescription: *n")),
    Wrong("loop", "yaml", _head("name: x\ndescription: y\nmetadata: &m\n  self: *m")),
    Wrong("tag", "yaml", _head("name: x\ndescription: !!python/object/apply:os.system ['true']")),
    Wrong("twice", "yaml", _head("name: x\nname: z\ndescription: y")),
    Wrong("tabs", "yaml", _head("name: x\n\tdescription: y")),
    Wrong("broken-yaml", "yaml", _head("name: [x\ndescription: y")),
    Wrong("two-documents.yaml", "yaml", _file("skill_name: x\n---\nskill_name: z\n")),
    Wrong("deep-yaml", "yaml", _head("name: x\ndescription: " + "[" * 500 + "]" * 500)),
    Wrong("long-head", "too_large", _head("name: x\ndescription: y\n" + "# more\n" * 20_000)),
    Wrong("no-description", "description", _head("name: x")),
    Wrong("blank-description", "description", _head('name: x\ndescription: "  "')),
    Wrong("list-description", "description", _head("name: x\ndescription:\n  - a")),
    Wrong("path-name", "name_unusable", _head("name: ../../etc\ndescription: y")),
    Wrong("long-name", "name_unusable", _head(f"name: {'n' * 65}\ndescription: y")),
    Wrong("control-name", "name_unusable", _head('name: "a\\u001bb"\ndescription: y')),
    Wrong("tool-name", "tools", _head("name: x\ndescription: y\nmetadata:\n  remit-required-tools: rm -rf /")),
    Wrong("run-type", "run_types", _head('name: x\ndescription: y\nmetadata:\n  remit-run-types: "../x"')),
    Wrong("risk", "risk", _head("name: x\ndescription: y\nmetadata:\n  remit-risk: none at all")),
    Wrong("sandbox-text", "json", _head("name: x\ndescription: y\nmetadata:\n  remit-sandbox: no network")),
    Wrong("sandbox-list", "sandbox", _head('name: x\ndescription: y\nmetadata:\n  remit-sandbox: "[1]"')),
    Wrong("seed-sandbox.yaml", "sandbox", _file("skill_name: x\nsandbox: {netwrk: []}\n")),
    Wrong("seed-limit.yaml", "sandbox", _file("skill_name: x\nsandbox: {limits: {wall_ms: long}}\n")),
    Wrong("sparse", "too_large", _sparse("SKILL.md")),
    Wrong("manifest-folder", "unreadable", _special(lambda path: path.mkdir())),
    Wrong("manifest-pipe", "unreadable", _special(os.mkfifo)),
    Wrong("manifest-link", "link", _special(lambda path: path.symlink_to("/etc/passwd"))),
    Wrong("folder-link", "link", lambda place: place.symlink_to("/etc")),
    Wrong("own-loop", "link", lambda place: place.symlink_to(place.name)),
    Wrong("seed-list.json", "front_matter", _file("[1, 2]")),
    Wrong("seed-broken.json", "json", _file('{"skill_name": ')),
    Wrong("seed-twice.json", "json", _file('{"skill_name": "x", "skill_name": "y"}')),
    Wrong("seed-nameless.yaml", "name", _file("required_tools: [fs.read]\n")),
    Wrong("seed-type.json", "field", _file('{"skill_name": "x", "required_tools": {"a": 1}}')),
    Wrong("seed-numbers.json", "field", _file('{"skill_name": "x", "allowed_run_types": [1]}')),
    Wrong("seed-allows.json", "risk", _file('{"skill_name": "x", "risk_policy": [{"effect": "allow", "tools": "*"}]}')),
    Wrong("seed-risk.yaml", "risk", _file("skill_name: x\nrisk_policy:\n  level: high\n")),
    Wrong("seed-huge.json", "too_large", _file(b" " * (1024 * 1024 + 1))),
)
"""What is found out when a process starts, from the manifest alone."""
WRONG_WHEN_USED: Final[tuple[Wrong, ...]] = (
    Wrong("sparse-asset", "too_large", _sparse("asset.bin")),
    Wrong("many-files", "too_many", _filled(1_001, lambda number: f"{number}.md")),
    Wrong("deep-folders", "too_deep", _filled(1, lambda _: "/".join(["d"] * 12 + ["x.md"]))),
)
"""What is found out when all of a skill is read."""
