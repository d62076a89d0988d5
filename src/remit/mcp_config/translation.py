"""What other clients write for a variable, in our words: `${NAME}` for all that comes from outside."""

from __future__ import annotations

import re
from typing import Final

from remit.mcp_config.foreign import Foreign

_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_OURS: Final = re.compile(r"(?:env:)?[A-Za-z_]\w*(?::-[^}]*)?", re.ASCII)
_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")


class Translation:
    """Turns the texts of one entry into ours, and remembers what has to be set for them."""

    def __init__(self, foreign: Foreign) -> None:
        self.notes: dict[str, None] = {}
        """What its user should know, in order, each once."""
        self.variables: dict[str, str] = {}
        """Variables to set, and what they stand for."""
        self._foreign = foreign
        self._fixed = _fixed(foreign)

    def text(self, value: str) -> str:
        """A text with the references of its client turned into ours."""
        if self._foreign.client == "claude-desktop":
            if "${" in value:
                self.notes["Claude Desktop does not expand ${…}, so it is kept as it is"] = None
            return value.replace("${", "$${")
        return _REFERENCE.sub(self._reference, value)

    def _reference(self, found: re.Match[str]) -> str:
        inner = found[1]
        kind, separator, name = inner.partition(":")
        if inner in self._fixed:
            return self._fixed[inner]
        if kind == "input" and separator:
            return self._input(name)
        if _OURS.fullmatch(inner):
            return found[0]
        variable = _variable(inner)
        self.variables[variable] = f"what {found[0]} stood for"
        return f"${{{variable}}}"

    def _input(self, name: str) -> str:
        asked = self._foreign.inputs.get(name, {})
        variable = _variable(name)
        default = asked.get("default")
        if isinstance(default, str) and default and not asked.get("password") and "}" not in default:
            return f"${{{variable}:-{default}}}"
        words = asked.get("description")
        self.variables[variable] = words if isinstance(words, str) else f"what VS Code asks for as {name}"
        return f"${{{variable}}}"


def _fixed(foreign: Foreign) -> dict[str, str]:
    """What the editors' own variables stand for here."""
    if foreign.client not in {"cursor", "vscode"}:
        return {}
    fixed: dict[str, str] = {"userHome": "${HOME}", "pathSeparator": "/", "/": "/"}
    folder = foreign.file.absolute().parent
    if folder.name in {".cursor", ".vscode"}:
        project = folder.parent
        fixed |= {
            "workspaceFolder": str(project),
            "workspaceRoot": str(project),
            "workspaceFolderBasename": project.name,
        }
    return fixed


def _variable(text: str) -> str:
    name = _WORDS.sub("_", text).strip("_").upper()
    return f"_{name}" if name[:1].isdigit() else name or "VALUE"
