"""Clues to secrets: parts of names, and parts of tokens. Most texts hold none, which is quick to see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
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
    shapes: tuple[Shape, ...]

    def within(self, text: str) -> bool:
        """Return whether this part of the text may hold one of them."""
        return (
            names_secret(text, self.names)
            or any(shape.clue in text for shape in self.shapes)
            or any(escape in text for escape in _ESCAPES)
        )


def clues_of(text: str) -> Clues | None:
    """Return what the text holds; None where it holds nothing."""
    if any(escape in text for escape in _ESCAPES):
        return Clues(NAMES, SHAPES)
    lowered = lower(text)
    names = tuple([name for name in _WORDS if name in lowered])
    if "key" in lowered:  # most texts hold none, and need not be searched for each
        names += tuple([name for name in _KEY_NAMES if name in lowered])
    shapes = tuple([shape for shape in SHAPES if shape.clue in text])
    return Clues(names, shapes) if names or shapes else None


def names_secret(name: str, names: Iterable[str] = NAMES) -> bool:
    """Return whether one of the parts of names is in it."""
    lowered = lower(name)
    return any(part in lowered for part in names)


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    return text.replace("İ", "I").lower()


_BEGIN: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4}))"
"""Where a word begins: also after an escape sequence."""
_CUT: Final = r"(?=[\s\"'\\.…]{0,16}\Z)"
"""The end of a text that may have been cut there."""


class Shape(NamedTuple):
    """A kind of token."""

    clue: str
    """A part of every text that holds such a token."""
    source: str
    """A regular expression; most begin with a fixed text, which is quick to search for."""

    def without(self, text: str, mask: str) -> str:
        """The text with `mask` in the place of such tokens."""
        return _pattern(self.source).sub(mask, text) if self.clue in text else text


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


def _shape(clue: str, head: str, body: str, *, least: int = 1) -> Shape:
    """A token: a `body` behind its `head`, or `least` characters or more of it before the end of the text."""
    return Shape(clue, rf"{head}(?:{body}|[\w.~+/=-]{{{least},256}}+{_CUT})")


SHAPES: Final = (
    *(_shape(f"{k}{s}", f"{_BEGIN}{k}{s}", r"[\w-]{16,}") for k in ("sk", "rk") for s in "-_"),
    # In the middle of a word only with a long part that has a digit: "task-…" and "risk-…" are words.
    *(
        _shape(
            f"k{s}",
            rf"[spr]k{s}(?:[a-z]{{2,8}}[0-9]{{0,2}}[-_]){{0,4}}(?=[A-Za-z]{{0,64}}[0-9])",
            r"[A-Za-z0-9]{16,}[\w-]*",
            least=8,  # what is shorter may be a name, such as that of the model "desk-1"
        )
        for s in "-_"
    ),
    *(_shape(f"gh{k}_", f"gh{k}_", "[A-Za-z0-9]{20,}") for k in "pousr"),
    _shape("github_pat_", "github_pat_", r"\w{20,}"),
    _shape("gl", "gl(?:pat|dt|rt|cbt|ptt|soat)-", r"[\w-]{16,}"),
    _shape("xox", "xox[a-z]-", r"[\w-]{10,}"),
    *(_shape(f"A{k}IA", f"A{k}IA", "[0-9A-Z]{16,}") for k in "KS"),
    _shape("AIza", "AIza", r"[\w-]{30,}"),
    _shape("ya29.", r"ya29\.", r"[\w-]{16,}"),
    _shape("hf_", "hf_", "[A-Za-z0-9]{30,}"),
    _shape("npm_", "npm_", "[A-Za-z0-9]{30,}"),
    _shape("pypi-", "pypi-", r"[\w-]{16,}"),
    _shape("dop_v1_", "dop_v1_", "[a-f0-9]{32,}"),
    _shape("SG.", r"SG\.", r"[\w-]{16,}[\w.-]*"),
    _shape("hv", r"hv[sbr]\.", r"[\w-]{20,}"),
    _shape("shp", "shp(?:at|ca|pa|ss)_", "[A-Fa-f0-9]{24,}"),
    _shape("SK", f"{_BEGIN}SK(?=[0-9a-f])", "[0-9a-f]{32}", least=24),
    _shape(":AA", f"{_BEGIN}[0-9]{{8,12}}:AA", r"[\w-]{30,}"),
    _shape("/webhooks/", "(?<=/webhooks/)[0-9]{10,24}/", r"[\w-]{30,}"),
    _shape("hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/", r"[\w/]{20,}"),
    Shape("machine ", r"(?<=\spassword\s)\S{1,256}"),  # .netrc
    # The same in base64: what keys, and the tokens of a few, begin with.
    *(
        _shape(begin, begin, r"[\w+/-]{16,}=*")
        for begin in ("LS0tLS1CRUdJTi", "Z2hwX", "Z2l0aHViX3BhdF", "c2stYW50L", "c2stcHJva", "eG94Y")
    ),
    _shape("whsec_", "whsec_", r"[\w+/]{16,}"),
    _shape("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1", "[0-9A-Z]{16,}"),
    _shape("eyJ", "eyJ", r"[\w-]{10,}[\w.-]*"),
    *(
        _shape(clue, rf"(?i:{word})\s{{1,8}}(?=[^\s\"'\\]{{0,64}}[0-9A-Z_~+/=-])", r"[\w.~+/-]{8,}=*")
        for word, clues in (("bearer", ("earer", "EARER")), ("basic", ("asic", "ASIC")))
        for clue in clues
    ),
    Shape("://", rf"(?<=://)[^\s\"'/@:]{{0,256}}:[^\s\"'/@]{{1,256}}+(?:(?=@)|{_CUT})"),
    Shape(
        "PRIVATE KEY",
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    ),
)
