"""Values that are known to be secret, masked wherever they stand: by value, in the forms that programs write them in.

Each value is looked for as it is, as JSON writes it (once and twice, and in ASCII), as programs write it in URLs, in
hexadecimal, and in Base64 at each of its three alignments. A search for one form at a time is thirty times as fast as
one pattern of all. What forms have in common is looked for first, in a copy without quotes and backslashes that has one
case: only where it stands are they looked for themselves. Pure.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

SHORTEST: Final = 8
"""Characters of the shortest value that is masked: a shorter one stands in other words, too."""
_ALIGNMENTS: Final = 3
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"
_UNESCAPED: Final = (b"~", b"~/", b"~!'()*", b"~!'()*;,/?:@&=+$#", b"*")
"""Bytes that a URL holds as they are: by RFC 3986, 2.3, Python, encodeURIComponent, encodeURI, and forms of the web."""
_URL_SAFE: Final = str.maketrans("+/", "-_")
_LARGE: Final = 4_096
"""Bytes from which on a copy costs less than it saves."""
_ALIKE: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ+/", b"abcdefghijklmnopqrstuvwxyz-_")
"""Makes one of what differs in hexadecimal and Base64 by its alphabet alone."""
_QUOTING: Final = b'"\\'
"""Bytes by which the forms of JSON differ from the value."""


def forms_of(value: str) -> frozenset[str]:
    """Return a value in each form that is looked for."""
    data = value.encode("utf-8", "surrogatepass")
    quoted = _quoted(value)
    forms = {value, *quoted, *(twice for once in quoted for twice in _quoted(once))}
    forms |= {*_in_urls(data), data.hex(), data.hex().upper()}
    for before in range(_ALIGNMENTS):
        # Characters that hold bits of what stands before or behind are not the value's own.
        whole = b64encode(bytes(before) + data).decode()[-(-before * 4 // 3) : (before + len(data)) * 4 // 3]
        forms |= {whole, whole.translate(_URL_SAFE)}
    return frozenset(forms)


def _in_urls(data: bytes) -> Iterator[str]:
    for unescaped in _UNESCAPED:
        for escape in ("%{:02X}", "%{:02x}"):
            text = "".join([chr(byte) if byte in _WORD + unescaped else escape.format(byte) for byte in data])
            yield from (text, text.replace("%20", "+"))


def _quoted(text: str) -> set[str]:
    """Return a text within quotes of JSON, of which PHP escapes the slashes, too."""
    import json  # noqa: PLC0415 - for who masks something

    forms = {json.dumps(text)[1:-1], _within_json(text)}
    return forms | {form.replace("/", "\\/") for form in forms}


def _within_json(text: str) -> str:
    import json  # noqa: PLC0415 - as above

    return json.dumps(text, ensure_ascii=False)[1:-1]


def with_lines(values: Iterable[str]) -> list[str]:
    """Return values and the lines of each, for what is masked line by line, such as a key of many."""
    return [part for value in values for part in dict.fromkeys((value, *value.splitlines())) if len(part) >= SHORTEST]


class ValueMask:
    """Masks known values; it never says what they are."""

    def __init__(self, values: Iterable[str], mask: str) -> None:
        self._mask = mask
        self._texts = sorted({form for value in values for form in forms_of(value)}, key=len, reverse=True)
        self._data = _alike(self._texts)
        escaped = {*self._texts, *map(_within_json, self._texts)}
        self._json = _alike(sorted(escaped, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text without the values."""
        for form in self._texts:
            if form in text:
                text = text.replace(form, self._mask)
        return text

    def data(self, data: bytes) -> bytes:
        """Bytes without the values."""
        return self._replaced(data, self._data)

    def encoded(self, encoded: bytes) -> bytes:
        """JSON without the values; a number with one leaves broken JSON: see `value`."""
        return self._replaced(encoded, self._json)

    def value(self, value: Any) -> Any:
        """A JSON value without the values, names of members and numbers included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(name): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and self.text(str(value)) != str(value):
            return self._mask
        return value

    def _replaced(self, data: bytes, forms: Mapping[bytes, Sequence[bytes]]) -> bytes:
        mask = self._mask.encode()
        if len(data) < _LARGE:
            near = [form for alike in forms.values() for form in alike]
        else:
            plain = data.translate(_ALIKE, _QUOTING)
            near = [form for trace, alike in forms.items() if trace in plain for form in alike]
        for form in sorted(near, key=len, reverse=True):
            if form in data:
                data = data.replace(form, mask)
        return data


def _alike(texts: Iterable[str]) -> Mapping[bytes, Sequence[bytes]]:
    """Return forms by what is left of them where quotes, case and alphabet are."""
    forms: dict[bytes, list[bytes]] = {}
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        forms.setdefault(data.translate(_ALIKE, _QUOTING), []).append(data)
    return forms
