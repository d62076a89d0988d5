"""Texts as they are compared: strictly where a match makes a call freer, widely where it only explains.

- *Strict*: composed characters (NFC); in JSON, the characters behind its escapes. Nothing else is taken for equal.
- *Wide*: also without percent-encoding and HTML's entities, without characters that show nothing, with compatibility
  forms (NFKC) as their plain ones; what is encoded twice is decoded twice. Case is the reader's to ignore (`folded`).
"""

from __future__ import annotations

import html
import re
from typing import Final
from unicodedata import is_normalized, normalize

import msgspec

_ROUNDS: Final = 2
_ESCAPES: Final = re.compile(r'(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+')
_PERCENT: Final = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)


def strict(text: str, *, is_json: bool = False) -> str:
    """The text, in one of the several ways to write its characters."""
    if is_json:
        text = unescaped(text)
    return text if text.isascii() or is_normalized("NFC", text) else normalize("NFC", text)


def wide(text: str) -> str:
    """The text as someone may have meant it."""
    for _ in range(_ROUNDS):
        before = text
        text = unescaped(text)
        if "%" in text:
            text = _PERCENT.sub(_decode, text)
        if "&" in text:
            text = html.unescape(text)
        if not text.isascii():
            text = _UNSEEN.sub("", normalize("NFKC", text))
        if text == before:
            break
    return text


def folded(text: str) -> str:
    """The text in lower case, every character in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.replace("\u0130", "I").lower()


def unescaped(text: str) -> str:
    """The characters behind JSON's escapes; what is not an escape stays as it is."""
    return _ESCAPES.sub(_unescape, text) if "\\" in text else text


def _unescape(found: re.Match[str]) -> str:
    try:
        plain: str = msgspec.json.decode(f'"{found[0]}"', type=str)
    except msgspec.DecodeError:  # half of a pair of surrogates
        return found[0]
    return plain


def _decode(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode(errors="replace")
