r"""Readings of a text argument, so that a constraint on a path is not talked around.

A tool resolves a path its own way, and policy does not know how. So there are two readings, for two needs:

- An *allow* rule needs certainty: `strict` gives the one form a text can only be read as, or nothing. There is none
  for a text with a `..` step (even one that seems to stay inside: behind a symbolic link it does not), with a
  backslash, a control character or one that is drawn as nothing, or white space at an end, with a `/` or `.` that is
  encoded or only looks like one, and for a URL whose host is not plain.
- A *deny* or *ask* rule needs all that may be meant: `wide` gives the text as it is and as a tool may see it: without
  case and compatible characters, decoded, with `.`, `//` and `..` resolved, without control characters and what is
  drawn as nothing, cut at a NUL, without an NTFS stream, a URL without user, port and trailing dot.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from remit.redact.visible import IGNORED
from remit.regex import regex

MAX_TEXT: Final = 262_144
"""Characters of the longest text that is read at all; so much costs some milliseconds at worst."""

_UNCERTAIN: Final = regex(r"[\x00-\x1f\x7f\\]|^\s|\s$")
_CLIMBS: Final = regex(r"(?:^|/)(?:\.|%(?:25)*2e){2}(?:[/;]|$)|%(?:25)*(?:2f|5c)", re.IGNORECASE)
_PLAIN_URL: Final = regex(r"[a-z][a-z0-9+.-]*://[a-z0-9.-]+(?::[0-9]+)?(?:/|$)", re.IGNORECASE)
_URL: Final = regex(r"([a-z][a-z0-9+.-]+):/*([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_ENCODED: Final = regex(r"(?:%(?:25)*[0-9a-f]{2})+")
_ENCODED_BYTE: Final = regex(r"%(?:25)*([0-9a-f]{2})")
_PART: Final = r"[A-Za-z0-9_-][A-Za-z0-9_.-]*+(?<!\.)"
_TIDY_URL: Final = regex(rf"[A-Za-z]{{2,}}://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?:/{_PART})*+")
_CONTROLS: Final = regex(r"[\x00-\x1f\x7f-\x9f]")
_STREAM: Final = "::$data"
"""Behind a name in NTFS: the file's content, under another name."""
_MARKS: Final = regex(r"[./\\:~%]")
_UNTIDY: Final = regex(r"//|::|[\\%\x00-\x1f\x7f-\x9f]|(?:^|/)\.\.?(?:/|$)|/$|^\s|\s$|[. ](?:/|$)")
_ENDS: Final = regex(r"(?<=[^./ ])[. ]+(?=/|$)")
"""Dots and blanks at the end of a name: Windows drops them."""


class Readings(NamedTuple):
    """A text in every form that a tool may see, folded."""

    texts: tuple[str, ...]
    rooted: tuple[str, ...]
    """Those of `texts` that start from a place policy does not know: absolute, climbing out, at home, or a URL."""


is_plain: Final = re.compile(rf"{_PART}(?:/{_PART})*+").fullmatch
"""Whether a text is so simple a path that, except for case, it can only be read as it stands; most are."""


def strict(text: str) -> str | None:
    """The only form a text can be read as, or None where there might be several."""
    if is_plain(text):
        return text
    if len(text) > MAX_TEXT or _UNCERTAIN.search(text) or _disguised(text):
        return None
    if "://" not in text:
        return None if _CLIMBS.search(text) else _tidy(text)
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    if not _PLAIN_URL.match(text) or _CLIMBS.search(path):
        return None
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{_tidy(rest)}{text[len(path) :]}"


def wide(text: str) -> Readings | None:
    """Every form of a text, or None where it is too long to tell."""
    if len(text) > MAX_TEXT:
        return None
    if _TIDY_URL.fullmatch(text):
        same = (text.lower(),)
        return Readings(same, same)
    plain = fold(text)
    if plain and not _UNTIDY.search(plain) and not starts_elsewhere(plain):
        return Readings((plain,), ())
    decoded = fold(_ENCODED.sub(_decode, plain)).strip().replace("\\", "/")
    texts = tuple(dict.fromkeys((plain, _tidy(plain), _tidy(decoded), *_url(decoded), *_hidden(plain, decoded))))
    return Readings(texts, tuple(path for path in texts if starts_elsewhere(path) or path.startswith("..")))


def starts_elsewhere(text: str) -> bool:
    """Return whether a text or pattern starts from a place of its own: a root, a home, a drive or a scheme."""
    return text.startswith(("/", "~")) or ":" in text.partition("/")[0]


def fold(text: str) -> str:
    """A text without the differences that a file system or a reader may ignore.

    Those are case, compatible characters, and characters that are drawn as nothing.
    """
    if text.isascii():
        return text.lower()
    text = IGNORED.sub("", text)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _url(text: str) -> tuple[str, ...]:
    """A folded URL as most clients understand it; nothing where the text has no scheme."""
    match = _URL.fullmatch(text)
    if match is None:
        return ()
    scheme, authority, path, rest = match.groups()
    host, colon, port = authority.rpartition("@")[2].rpartition(":")
    name = host if colon and (port.isdigit() or not port) else host + colon + port
    below = _tidy("/" + path) if path.strip("/") else ""
    bare = f"{scheme}://{name.rstrip('.')}{below}"
    return (bare, f"{bare}{'' if below else '/'}{rest}") if rest else (bare,)


def _hidden(plain: str, decoded: str) -> tuple[str, ...]:
    """Return what a text means to who drops or stops at its control characters, or opens a file as Windows names it."""
    readings: list[str] = []
    for text in (plain, decoded):
        if _CONTROLS.search(text):
            readings += (_CONTROLS.sub("", text), text.partition("\0")[0])
    readings += [text.removesuffix(_STREAM) for text in (plain, decoded, *readings) if text.endswith(_STREAM)]
    readings += [_ENDS.sub("", text) for text in (plain, decoded, *readings) if _ENDS.search(text)]
    return (*readings, *map(_tidy, readings))


def _disguised(text: str) -> bool:
    """Say whether a character is drawn as nothing, or would become one that matters in a path, were it normalised."""
    if text.isascii():
        return False
    return bool(IGNORED.search(text)) or _MARKS.findall(text) != _MARKS.findall(unicodedata.normalize("NFKC", text))


def _decode(match: re.Match[str]) -> str:
    return bytes(int(pair, 16) for pair in _ENCODED_BYTE.findall(match[0])).decode("utf-8", "replace")


def _tidy(text: str) -> str:
    """A path without empty parts, `.` and such `..` as can be resolved; the empty path is `.`."""
    head = "/" if text.startswith("/") else ""
    parts: list[str] = []
    for part in text.split("/"):
        if part in {"", "."}:
            continue
        if part != ".." or (not head and (not parts or parts[-1] == "..")):
            parts.append(part)
        elif parts:
            parts.pop()
    return head + "/".join(parts) or "."
