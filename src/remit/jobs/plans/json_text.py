"""JSON with places (RFC 8259). YAML readers know almost all of it, but not an emoji written as a pair of escapes."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

import msgspec

from remit.jobs.plans.document import Document, UnreadableError, number
from remit.jobs.plans.problem import Place

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(r'[{}\[\],:]|"(?:[^"\\\x00-\x1f]|\\.)*"|[^ \t\r\n{}\[\],:"]+')
_WORDS: Final = {"true": True, "false": False, "null": None}
_CLOSES: Final = {"{": "}", "[": "]"}
_VALUE: Final = "a value"
_KEY: Final = "a key in quotes"
_COLON: Final = "`:`"
_COMMA: Final = "`,`"
_END: Final = "nothing more"
_SHOWN: Final = 40
"""Characters of a word that a message shows."""


def read_json(text: str, document: Document) -> None:
    """Put a JSON text's parts into a document. Raises UnreadableError."""
    _Reader(text, document).read()


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, document: Document) -> None:
        self.text = text
        self.document = document
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.open: list[str] = []
        self.due = _VALUE
        self.may_close = False
        """Whether the innermost object or list has only just begun."""

    def read(self) -> None:
        """Take word after word."""
        at = self.skip(0)
        while at < len(self.text):
            word = _TOKEN.match(self.text, at)
            if word is None:
                raise UnreadableError(self.place(at), "found a text without its closing quote", self.due)
            self.take(word[0], at)
            at = self.skip(word.end())
        if self.due != _END:
            expected = f"{self.due} or `{_CLOSES[self.open[-1]]}`" if self.open else self.due
            raise UnreadableError(self.place(at), "found the end of the text", expected)

    def skip(self, at: int) -> int:
        """The next position that holds no space."""
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def place(self, at: int) -> Place:
        """Line and column of a position."""
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def take(self, word: str, at: int) -> None:
        """One word: it has to be what is due."""
        if self.open and word == _CLOSES[self.open[-1]] and (self.may_close or self.due == _COMMA):
            self.open.pop()
            self.document.close()
            self.end_value()
            return
        self.may_close = False
        if self.due in {_COLON, _COMMA} and word == self.due[1]:
            self.due = _KEY if word == "," and self.open[-1] == "{" else _VALUE
        elif self.due == _KEY and word[0] == '"':
            self.document.scalar(self.decoded(word, at), None, self.place(at))
            self.due = _COLON
        elif self.due == _VALUE and word in _CLOSES:
            self.document.open({} if word == "{" else [], self.place(at))
            self.open.append(word)
            self.due, self.may_close = (_KEY if word == "{" else _VALUE), True
        elif self.due == _VALUE:
            self.document.scalar("", self.decoded(word, at), self.place(at))
            self.end_value()
        else:
            raise UnreadableError(self.place(at), f"found `{word[:_SHOWN]}`", self.due)

    def end_value(self) -> None:
        """A value is complete."""
        self.due = _COMMA if self.open else _END

    def decoded(self, word: str, at: int) -> Any:
        """Return what a word stands for."""
        if word[0] == '"':
            try:
                return msgspec.json.decode(word)
            except ValueError as error:
                raise UnreadableError(self.place(at), f"found a text that is not JSON's: {error}", self.due) from error
        value = _WORDS.get(word, number(word))
        if value is None and word != "null":
            raise UnreadableError(self.place(at), f"found `{word[:_SHOWN]}`", self.due)
        return value
