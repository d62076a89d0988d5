"""Secrets in a recorded job, replaced consistently: the same text becomes the same word wherever it stands.

What is a secret is what `remit.redact` masks: what a name gives away, and what has the shape of a token. Each is found
first, and then replaced in every string of the job, so that a token that a tool returned and a later call sent on stays
one and the same. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from remit.redact import MASK, mask
from remit.redact.clues import names_secret

_LEAST: Final = 6
"""Characters from which on a secret is looked for inside other texts; a shorter one only where it stands alone."""
_DEPTH: Final = 64


class Secrets:
    """The secrets of one job, each with the word that takes its place."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.words: dict[str, str] = {}
        for text in known:
            self._add(text)

    def find(self, value: Any, depth: int = _DEPTH) -> None:
        """Find the secrets of a JSON value."""
        if depth == 0:
            return
        if isinstance(value, str):
            self._find_in(value, depth)
        elif isinstance(value, dict):
            named = names_secret(str(value.get("name", value.get("key", ""))))
            for name, item in value.items():
                if isinstance(item, str) and (names_secret(name) or (named and name == "value")):
                    self._add(item)
                else:
                    self.find(item, depth - 1)
        elif isinstance(value, list):
            for item in value:
                self.find(item, depth - 1)

    def replaced(self, value: Any) -> Any:
        """The same value with every secret replaced."""
        if isinstance(value, str):
            return self._replaced_in(value)
        if isinstance(value, dict):
            return {self._replaced_in(name): self.replaced(item) for name, item in value.items()}
        return [self.replaced(item) for item in value] if isinstance(value, list) else value

    def _add(self, text: str) -> None:
        if text and text != MASK and not text.startswith("secret-"):
            self.words.setdefault(text, f"secret-{len(self.words) + 1}")

    def _find_in(self, text: str, depth: int) -> None:
        if text[:1] in {"{", "["}:
            try:
                inner = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                self.find(inner, depth - 1)
                return
        shown = mask(text)
        if shown != text:
            for gap in _gaps(text, shown.split(MASK)):
                self._add(gap)

    def _replaced_in(self, text: str) -> str:
        if text in self.words:
            return self.words[text]
        for secret in sorted(self.words, key=len, reverse=True):
            if len(secret) >= _LEAST and secret in text:
                text = text.replace(secret, self.words[secret])
        return text


def _gaps(text: str, pieces: list[str]) -> list[str]:
    """The parts of a text between pieces of it; all of it, if they do not stand there in this order."""
    gaps, at = [], 0
    for number, piece in enumerate(pieces):
        start = text.find(piece, at) if number < len(pieces) - 1 or not piece else text.rfind(piece)
        if number == len(pieces) - 1 and not piece:
            start = len(text)
        if start < at:
            return [text]
        if number:
            gaps.append(text[at:start])
        at = start + len(piece)
    return gaps
