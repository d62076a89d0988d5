"""The program of this folder as one file without dependencies: `verify.py` in every package."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_MODULES: Final = (
    *("rejected", "strict_json", "container", "interval", "ledger", "values", "rules", "decisions"),
    *("proofs", "ed25519", "note", "checkpoints"),
)
"""In the order in which one knows the other; verify.py comes last."""
_FUTURE: Final = "from __future__ import annotations\n"


_POLICY: Final = (
    *("approval", "checks", "condition", "constraint", "decision", "expression", "globs", "groups", "levels", "limit"),
    *("overlay", "places", "readings", "record", "rule", "rules", "table", "verdict"),
)
_RULES: Final = (
    *("clock", "nearest", "origins.roles", "redact.visible", "regex", "tools.meta", "tools.names"),
    *(f"policy.{name}" for name in _POLICY),
)
"""The modules that decide, and what they need of the floors below."""
_MAIN: Final = "\n\nif __name__ =="


@cache
def program() -> bytes:
    """Return its text: that of verify.py, with the modules that it imports put in their place."""
    about, _, rest = _text("verify").partition(_FUTURE)
    imports, bodies = set[str](), list[str]()
    for text in (*(_text(name).partition(_FUTURE)[2] for name in _MODULES), rest):
        lines = text.splitlines(keepends=True)
        imports |= {line for line in lines if line.startswith(("import ", "from ")) and "remit" not in line}
        bodies.append("".join(line for line in lines if not line.startswith(("import ", "from "))).strip())
    body, _, main = "\n\n\n".join(bodies).rpartition(_MAIN)
    texts = "".join(f"SOURCES[{name!r}] = r'''{text}'''\n\n" for name, text in sources().items())
    parts = [about + _FUTURE, "".join(sorted(imports)), f"{body}\n\n\n{texts}{_MAIN}{main}", ""]
    return "\n".join(parts).encode()


@cache
def sources() -> dict[str, str]:
    """Return the texts of the modules that decide by rules, by their names."""
    texts = {f"remit.{name}": _FOLDER.parent.joinpath(*name.split(".")).with_suffix(".py") for name in _RULES}
    return {name: path.read_text(encoding="utf-8") for name, path in texts.items()}


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
