"""JSON as editors write it: with comments, trailing commas and a byte order mark, within caps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from remit.errors import SettingsError
from remit.settings.file import text_of

MAX_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not read; Claude Code keeps its history beside its servers."""
MAX_DEPTH: Final = 64
"""A value nested more deeply is refused."""

_STRING: Final = r'"(?:[^"\\\n]|\\.)*+"'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_REMEDY: Final = "Correct the JSON there."


def read_json(file: Path) -> Any:
    """The value in a file. Raises SettingsError with file, line and column, and quotes nothing of the file."""
    text = text_of(file, MAX_BYTES, "configuration file").removeprefix("\ufeff")
    return parse(text, str(file))


def parse(text: str, where: str) -> Any:
    """The value of a text; `where` begins its errors. Raises SettingsError."""
    try:
        value = _parsed(text)
    except json.JSONDecodeError as exc:
        raise SettingsError(f"{where}:{exc.lineno}:{exc.colno}: {exc.msg}", remedy=_REMEDY) from exc
    except (RecursionError, ValueError) as exc:
        raise SettingsError(f"{where}: is nested too deeply or contains too long a number", remedy=_REMEDY) from exc
    if _is_deeper(value, MAX_DEPTH):
        raise SettingsError(f"{where}: is nested more than {MAX_DEPTH} deep", remedy=_REMEDY)
    if "\\ud" in text.lower() and not _is_unicode(value):
        raise SettingsError(f"{where}: contains a lone surrogate (half a character)", remedy=_REMEDY)
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        # Blanks in the place of what strict JSON does not know keep every line and column.
        plain = _COMMA.sub(_blank, _COMMENT.sub(_blank, text))
        return json.loads(plain)


def _blank(found: re.Match[str]) -> str:
    piece = found[0]
    return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [item for one in level if isinstance(one, dict | list) for item in _items(one)]
    return any(isinstance(one, dict | list) for one in level)


def _items(container: dict[str, Any] | list[Any]) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
