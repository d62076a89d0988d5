"""Clues to secrets: parts of names, and beginnings of tokens. Most texts hold none, which is quick to see.

A token is a long run of characters without a blank. Runs are looked for first, as bytes, and only where one begins (or
goes on behind a hyphen, a dot …) the beginnings of tokens are: so a megabyte of prose costs a few milliseconds, however
many kinds of tokens are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pkgutil import get_data
from typing import Final, NamedTuple

_KEYS: Final = ("api", "access", "private", "signing", "encryption", "account", "shared")
NAMES: Final = (
    *("authorization", "cookie", "token", "password", "passwd", "passphrase", "passcode", "pwd", "secret"),
    *("credential", "jwt", "bearer"),
    *(f"{of}{between}key" for of in _KEYS for between in ("", "_", "-", " ")),
)
"""Parts of names that hold secrets, in lower case."""
_WORDS: Final = tuple(name for name in NAMES if not name.endswith("key"))
_KEY_NAMES: Final = tuple(name for name in NAMES if name.endswith("key"))
_ESCAPES: Final = ("\\u", "\\/")
"""In which any clue may be written."""


class Clues(NamedTuple):
    """Those that a text holds."""

    names: tuple[str, ...]
    shapes: tuple[TokenShape, ...]

    def within(self, text: str) -> bool:
        """Return whether this part of the text may hold one of them."""
        lowered = lower(text)
        for name in self.names:
            if name in lowered:
                return True
        for shape in self.shapes:
            if shape.clue in text:
                return True
        return "\\" in text and any(escape in text for escape in _ESCAPES)


def clues_of(text: str) -> Clues | None:
    """Return what the text holds; None where it holds nothing."""
    lowered = lower(text)
    names = NAMES
    if not any(escape in text for escape in _ESCAPES):
        names = tuple([name for name in _WORDS if name in lowered])
        if "key" in lowered:  # most texts hold none, and need not be searched for each
            names += tuple([name for name in _KEY_NAMES if name in lowered])
    shapes = shapes_of(text)
    return Clues(names, shapes) if names or shapes else None


def names_secret(name: str, names: Iterable[str] = NAMES) -> bool:
    """Return whether one of the parts of names is in it."""
    lowered = lower(name)
    return any(part in lowered for part in names)


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("İ", "I").lower()


class TokenShape(NamedTuple):
    """A kind of token."""

    clue: str
    """A part of every text that holds such a token."""
    source: str
    """A regular expression; it begins with a fixed text, which is quick to search for."""
    stays: str = ""
    """The part of what the expression matches that stays, as the template of a substitution."""

    def without(self, text: str, mask: str) -> str:
        """The text with `mask` in the place of such tokens."""
        return _pattern(self.source).sub(self.stays + mask, text) if self.clue in text else text


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


_CUT: Final = r"(?=[\s\"'\\.…]{0,16}\Z)"
"""The end of a text that may have been cut there."""
_AFTER: Final = (
    r"(?<![A-Za-z0-9]{0})",
    r"(?<=\\[nrtbf]{0})",
    r"(?<=\\u[0-9a-fA-F]{{4}}{0})",
    r"(?<=%[0-9A-Fa-f]{{2}}{0})",
    r"(?<=[0-9;\[]m{0})",
)
"""Places that a token begins after: no letter and no digit, unless they end an escape sequence or set a colour."""


def _shape(head: str, body: str, least: int, cut: int = 1) -> TokenShape:
    """A token: `least` of the characters of its body behind its head, or before the end of the text `cut` of them.

    There one has to be a digit, for a text may well end with a word that begins like a token.
    """
    fixed, after = re.escape(head), f"[{body}]"
    begin = "|".join([place.format(fixed) for place in _AFTER])
    many = f"|{after}{{16}}" if cut == 1 else ""
    rest = rf"(?={after}{{0,32}}[0-9]{many}){after}{{{cut},256}}+{_CUT}"
    return TokenShape(head, rf"{fixed}(?:{begin})(?:{after}{{{least},}}[\w-]*+|{rest})")


_DISTINCT: Final = 5
"""Characters of a beginning of shapes.txt that no word has; behind a shorter one a cut token needs eight more."""


def kinds(file: str) -> list[tuple[str, str, int]]:
    """Return the rows of `shapes.txt` or `own_shapes.txt`: a beginning, what characters follow, how many at least."""
    lines = (get_data(__package__, file) or b"").decode().splitlines()  # a part of the program, like its code
    rows = [line.split(" ") for line in lines if not line.startswith("#")]
    return [(head, body, int(least)) for _, head, body, least in rows]


@cache
def _rows() -> dict[str, tuple[TokenShape, ...]]:
    """Return the shapes by what their tokens begin with, the longest first; each with those of shorter ones."""
    rows: dict[str, list[TokenShape]] = {}
    for head, body, least in kinds("own_shapes.txt"):
        rows[head] = [_shape(head, body, least, 1 if len(head) > 2 else 24)]  # noqa: PLR2004 - SK begins words
    for head, body, least in kinds("shapes.txt"):
        rows.setdefault(head, []).append(_shape(head, body, least, 1 if len(head) >= _DISTINCT else 8))
    return {
        head: tuple([shape for end in range(len(head)) for shape in rows.get(head[: end + 1], ())])
        for head in sorted(rows, key=len, reverse=True)
    }


@cache
def _heads() -> re.Pattern[str]:
    """Return what finds a beginning behind a character that no word has, or an escape sequence."""
    by_first: dict[str, list[str]] = {}
    for head in _rows():
        by_first.setdefault(head[0], []).append(re.escape(head[1:]))
    heads = "|".join([f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in by_first.items()])
    escape = r"(?:(?<=\\)(?:[nrtbf]|u[0-9a-fA-F]{4})|(?<=%)[0-9A-Fa-f]{2}|(?<=[\[;])[0-9]{1,3}m|)"
    return re.compile(rf"[^A-Za-z0-9]{escape}(?=({heads}))")


_LEAST: Final = 16
"""Characters of the shortest token."""
_LONG: Final = b"\1" * _LEAST
_TOKEN_CHARS: Final = bytes([byte in b"_.~+/=-" or (byte < 128 and chr(byte).isalnum()) for byte in range(256)])  # noqa: PLR2004 - ASCII


def shapes_of(text: str) -> tuple[TokenShape, ...]:
    """Return the shapes of tokens that the text may hold."""
    shapes = {shape: None for shape in _OTHER if shape.clue in text}
    runs = "".join(_runs(text))
    if runs:
        for head in {match[1] for match in _heads().finditer(runs)}:
            shapes.update(dict.fromkeys(_rows()[head]))
    return tuple(shapes)


def _runs(text: str) -> Iterator[str]:
    """Give the long runs of characters of tokens, and the last one, which may be cut; each behind what is before it."""
    marks = text.encode("latin-1", "replace").translate(_TOKEN_CHARS)  # a byte for each character
    end, at = 0, marks.find(_LONG)
    while at >= 0:
        end = marks.find(0, at + _LEAST)
        end = len(marks) if end < 0 else end
        yield text[at - 1 : end] if at else " " + text[:end]
        at = marks.find(_LONG, end)
    last = len(marks.rstrip(b"\0"))
    start = marks.rfind(0, 0, last) + 1
    if last > end and not text[start:last].isalpha():
        yield text[start - 1 : last] if start else " " + text[:last]


_OTHER: Final = (
    # What keys, and the tokens of a few, begin with in base64.
    *(
        TokenShape(begin, rf"{begin}(?:[\w+/-]{{16,}}=*|[\w+/=-]{{1,256}}+{_CUT})")
        for begin in ("LS0tLS1CRUdJTi", "Z2hwX", "Z2l0aHViX3BhdF", "c2stYW50L", "c2stcHJva", "eG94Y")
    ),
    TokenShape(":AA", r":AA(?<=[0-9]{8}:AA)[\w-]{30,}", ":"),
    TokenShape("/webhooks/", r"/webhooks/[0-9]{10,24}/[\w-]{30,}", "/webhooks/"),
    TokenShape("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{20,}", "hooks.slack.com/"),
    TokenShape(
        "machine ", r"(machine\s{1,8}\S{1,256}\s{1,8}(?:login\s{1,8}\S{1,256}\s{1,8})?password\s{1,8})\S{1,256}", r"\1"
    ),
    *(
        TokenShape(
            clue,
            rf"({clue}(?i:(?<={word}))\s{{1,8}})(?=[^\s\"'\\]{{0,64}}[0-9A-Z_~+/=-])(?:[\w.~+/-]{{8,}}=*|[\w.~+/=-]{{1,256}}+{_CUT})",
            r"\1",
        )
        for word, clues in (("bearer", ("earer", "EARER")), ("basic", ("asic", "ASIC")))
        for clue in clues
    ),
    TokenShape(
        "://",
        rf"://[^\s\"'/@:]{{0,256}}:(?![0-9]{{1,5}}{_CUT}|(?:password|PASSWORD|\$\{{\w+\}})@)[^\s\"'/@]{{1,256}}+(?:(?=@)|{_CUT})",
        "://",
    ),
    TokenShape(
        "PRIVATE KEY",
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,6}-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,6}-----|\Z)",
    ),
)
