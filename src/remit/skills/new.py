"""A new skill: a folder with a SKILL.md to fill in."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from remit.codes import Code
from remit.errors import UsageError
from remit.skills.manifest import InvalidManifestError, read_skill_md

_TEXT: Final = """---
name: {name}
description: Say in one or two sentences what this skill does, and when an agent should use it.
metadata:
  remit-required-tools: ""
  remit-risk: "ask"
---

# {name}

1. Say what to do first.
2. Say how the result should look.
"""


def write_skill(name: str, folder: Path) -> Path:
    """Write a skill into a folder of skills; the path of its SKILL.md. Raises UsageError."""
    text = _TEXT.format(name=name)
    try:
        manifest = read_skill_md(text.encode(), name)
    except (InvalidManifestError, UnicodeEncodeError) as error:
        raise UsageError(f"{name!r:.80} cannot be a skill's name: {error}", code=Code.SKILL_INVALID) from error
    if manifest.findings:
        remedy = "Use lower-case letters, digits and single hyphens, such as release-notes."
        raise UsageError(f"{name!r:.80}: {manifest.findings[0].message}", code=Code.SKILL_INVALID, remedy=remedy)
    file = folder / name / "SKILL.md"
    try:
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(f"{file.parent} is there already", remedy="Choose another name.") from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", remedy="Choose another folder: --in FOLDER.") from error
    return file
