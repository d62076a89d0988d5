"""Short, safe pictures of values for people: cut, on one line, with what looks like a secret masked.

Masked is what a name gives away (`password`, `api_key`, `Authorization` …) and what has the known shape of a token.
JSON is taken apart, also where it was cut and where it stands in a string, at any depth; any other text is searched for
such names in code, headers, options and query strings. In doubt more is masked. The journal keeps values whole, because
replay needs them; everything that is shown or logged passes here.
"""

from __future__ import annotations

from typing import Any, Final

from remit.redact.clues import clues_of

LENGTH: Final = 200
"""Characters of a preview (contract: tools, "Steps")."""
MASK: Final = "********"
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_KEY_BEGIN: Final = "-----BEGIN PRIVATE KEY-----\n"
_LONGEST_KEY: Final = 16_384
"""Characters of the longest private key: what stands further behind its beginning is shown, if its end never came."""
_SCAN: Final = 1_024
"""Bytes looked at to make a preview, so that a large value costs no more than a small one."""


def recordable(text: str) -> str:
    """The text as an event can hold it: half of a surrogate pair, which UTF-8 has not, as Python's escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def mask(text: str) -> str:
    """The text with secrets masked, whether it is JSON or not, and wherever it was cut."""
    return _masked(text, is_json=False)


class PieceMask:
    """Masks a text that comes in pieces, each of whole lines: a private key that begins in one goes on in the next."""

    def __init__(self) -> None:
        self._room = 0
        """Characters that may still belong to a key that has begun; 0 outside one."""

    def __call__(self, text: str) -> str:
        """The next piece, with secrets masked."""
        masked = mask(_KEY_BEGIN + text) if self._room else mask(text)
        before, mark, _ = text.replace("KEY BLOCK-----", "KEY-----").rpartition("PRIVATE KEY-----")  # a block is PGP's
        if mark:  # a certificate may follow the end of a key
            self._room = _LONGEST_KEY if before.rfind("-----BEGIN ") > before.rfind("-----END ") else 0
        else:
            self._room = max(0, self._room - len(text))
        return masked


def line(text: str, length: int = LENGTH) -> str:
    """A text for people, such as an error's: masked, on one line, printable, at most `length` characters."""
    scan = max(_SCAN, length * 4)
    return _cut(mask(text[:scan]), length, whole=len(text) <= scan)


def preview(encoded: bytes, length: int = LENGTH) -> str:
    """A JSON value, as recorded, on one line of at most `length` characters."""
    text = encoded[:_SCAN].decode("utf-8", "ignore")
    return _cut(_masked(text, is_json=True), length, whole=len(encoded) <= _SCAN)


def preview_of(value: Any, length: int = LENGTH) -> str:
    """A value on one line of at most `length` characters; what JSON cannot hold is shown as Python does."""
    import msgspec  # noqa: PLC0415 - `remit --help` does without

    try:
        encoded = msgspec.json.encode(value, enc_hook=repr)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return line(repr(value), length)
    return preview(encoded, length)


def words_of(value: Any, length: int = LENGTH) -> str:
    """A value as `name: value, …` on one line of at most `length` characters, without nulls and what is empty."""
    if not isinstance(value, dict):
        return preview_of(value, length)
    words = ""
    for name, item in value.items():
        if item not in _EMPTY and len(words) <= length:
            words += f"{', ' if words else ''}{_argument(str(name), item, length)}"
    return _cut(words, length, whole=True)


def _argument(name: str, value: Any, length: int) -> str:
    """A name with its value, masked if the name says so; a text stands without its quotes."""
    import msgspec  # noqa: PLC0415 - as above

    head = _cut(msgspec.json.encode(name).decode(), length, whole=True)
    shown = preview_of({name: value}, length + len(head) + 4)
    text = shown.removeprefix("{" + head + ":").removesuffix("}")
    bare = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    return f"{head[1:-1]}: {bare}"


def _masked(text: str, *, is_json: bool) -> str:
    clues = clues_of(text)
    if clues is None:
        return text
    from remit.redact.values import masked  # noqa: PLC0415 - its patterns take a while to compile

    return masked(text, clues, MASK, is_json=is_json)


def _cut(masked: str, length: int, *, whole: bool) -> str:
    shown = masked[: length + 1]
    if not shown.isprintable():
        shown = "".join([char if char.isprintable() else _visible(char) for char in shown])
    return shown if whole and len(shown) <= length else shown[: length - 1] + "…"


def _visible(char: str) -> str:
    """Return what stands for a character that would move the cursor or turn the writing direction round."""
    return " " if char.isspace() else f"\\u{ord(char):04x}"
