"""JSON as editors write it: with comments, trailing commas and a byte order mark, within caps; TOML as Codex does."""

from __future__ import annotations

import json
import re
import tomllib
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


def read_json(file: Path, twice: list[str] | None = None) -> Any:
    """The value in a file; keys that an object has twice, the last of which counts, are added to `twice`.

    Raises SettingsError with file, line and column, and quotes nothing of the file.
    """
    text = text_of(file, MAX_BYTES, "configuration file").removeprefix("\ufeff")
    return parse(text, str(file), twice)


def read_toml(file: Path) -> dict[str, Any]:
    """The tables in a file. Raises SettingsError."""
    try:
        return tomllib.loads(text_of(file, MAX_BYTES, "configuration file"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise SettingsError(f"{file}: is not TOML", remedy="Correct the TOML there.") from exc


def parse(text: str, where: str, twice: list[str] | None = None) -> Any:
    """The value of a text; `where` begins its errors. Raises SettingsError."""
    try:
        value = _parsed(text, [] if twice is None else twice)
    except json.JSONDecodeError as exc:
        raise SettingsError(f"{where}:{exc.lineno}:{exc.colno}: {exc.msg}", remedy=_REMEDY) from exc
    except (RecursionError, ValueError) as exc:
        raise SettingsError(f"{where}: is nested too deeply or contains too long a number", remedy=_REMEDY) from exc
    if _is_deeper(value, MAX_DEPTH):
        raise SettingsError(f"{where}: is nested more than {MAX_DEPTH} deep", remedy=_REMEDY)
    if "\\ud" in text.lower() and not _is_unicode(value):
        raise SettingsError(f"{where}: contains a lone surrogate (half a character)", remedy=_REMEDY)
    return value


def _parsed(text: str, twice: list[str]) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in value if names.count(name) > 1)
        return value

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError:
        twice.clear()
        # Blanks in the place of what strict JSON does not know keep every line and column.
        plain = _COMMA.sub(_blank, _COMMENT.sub(_blank, text))
        return json.loads(plain, object_pairs_hook=members)


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
