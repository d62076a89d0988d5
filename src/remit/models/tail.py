"""Answers while they come, for anyone who watches: bounded, addressed by offset, never recorded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

import msgspec

from remit.models.reply import Delta, Watch

MAX_CHARACTERS: Final = 256 * 1024
"""Characters of one answer that are kept for watchers who come late or fall behind."""


class AnswerPiece(msgspec.Struct, frozen=True):
    """A piece of an answer."""

    step: str
    """The question's place in its stream."""
    offset: int
    """Characters of this stream of pieces before it; a gap says that older pieces are gone."""
    delta: Delta


class _Tail:
    """The pieces of one stream."""

    def __init__(self) -> None:
        self.pieces: deque[AnswerPiece] = deque()
        self.end = 0
        self._size = 0
        self.news = asyncio.Event()
        self.watchers = 0
        self.writers: dict[str, int] = {}
        """The steps that speak, and the offset at which each began."""

    def add(self, step: str, delta: Delta) -> None:
        self.pieces.append(AnswerPiece(step, self.end, delta))
        self.end += len(delta.text)
        self._size += len(delta.text)
        while self._size > MAX_CHARACTERS and len(self.pieces) > 1:
            self._size -= len(self.pieces.popleft().delta.text)
        self.news.set()

    def since(self, offset: int) -> list[AnswerPiece]:
        """The pieces from an offset on: looked for from the end, as a watcher wants the newest."""
        pieces = [*takewhile(lambda piece: piece.offset >= offset, reversed(self.pieces))]
        pieces.reverse()
        return pieces


class Tails:
    """The words that models of this process are saying, by the stream that asks them."""

    def __init__(self) -> None:
        self._tails: dict[str, _Tail] = {}

    @contextmanager
    def open(self, stream: str, step: str) -> Iterator[Watch]:
        """Take pieces of the answer to one question."""
        tail = self._tails.setdefault(stream, _Tail())
        tail.writers[step] = tail.end
        try:
            yield lambda delta: tail.add(step, delta)
        finally:
            tail.writers.pop(step, None)
            self._forget(stream, tail)

    async def heard(self, stream: str, since: int) -> int:
        """Wait until the number of characters that were said in a stream is not `since`; that number."""
        tail = self._tails.setdefault(stream, _Tail())
        tail.watchers += 1
        try:
            while tail.end == since:
                tail.news.clear()
                await tail.news.wait()
            return tail.end
        finally:
            tail.watchers -= 1
            self._forget(stream, tail)

    def speech(self, stream: str) -> dict[str, str]:
        """Return what is being said in a stream right now, by step, as far as it is kept."""
        tail = self._tails.get(stream)
        if tail is None:
            return {}
        speech = dict.fromkeys(tail.writers, "")
        for piece in tail.since(min(tail.writers.values(), default=tail.end)):
            if piece.delta.kind == "text" and piece.offset >= tail.writers.get(piece.step, tail.end):
                speech[piece.step] += piece.delta.text
        return {step: text for step, text in speech.items() if text}

    async def follow(self, stream: str, after: int = 0) -> AsyncIterator[AnswerPiece]:
        """Every piece of a stream from the offset `after` on that is still kept, and each new one; without an end."""
        tail = self._tails.setdefault(stream, _Tail())
        tail.watchers += 1
        try:
            while True:
                tail.news.clear()
                for piece in tail.since(after):
                    yield piece
                    after = piece.offset + max(1, len(piece.delta.text))
                await tail.news.wait()
        finally:
            tail.watchers -= 1
            self._forget(stream, tail)

    def _forget(self, stream: str, tail: _Tail) -> None:
        if not tail.writers and not tail.watchers:
            self._tails.pop(stream, None)
