"""The program of this folder as one file without dependencies: `verify.py` in every package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_MODULES: Final = ("rejected", "strict_json", "container", "ledger", "values")
"""In the order in which one knows the other; verify.py comes last."""
_FUTURE: Final = "from __future__ import annotations\n"


def program() -> bytes:
    """Return its text: that of verify.py, with the modules that it imports put in their place."""
    about, _, rest = _text("verify").partition(_FUTURE)
    imports, bodies = set[str](), list[str]()
    for text in (*(_text(name).partition(_FUTURE)[2] for name in _MODULES), rest):
        lines = text.splitlines(keepends=True)
        imports |= {line for line in lines if line.startswith(("import ", "from ")) and "remit" not in line}
        bodies.append("".join(line for line in lines if not line.startswith(("import ", "from "))).strip())
    return "\n".join([about + _FUTURE, "".join(sorted(imports)), "\n\n\n".join(bodies), ""]).encode()


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
