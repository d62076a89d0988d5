"""The append-only tree of RFC 6962 (2.1): how it grows, and the proofs about it that `proofs` checks.

    leaf = SHA-256(00 ‖ bytes)        node = SHA-256(01 ‖ left ‖ right)

A tree is kept as its *peaks*: the roots of its full subtrees, the largest first. They are enough to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from remit.evidence.proofs import node_of

_SMALL: Final = 64
"""Subtrees of so many leaves are made again each time: to keep all of a long log would take more memory than it."""


class Tree(msgspec.Struct, frozen=True):
    """A tree of so many leaves."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self.peaks:
            return sha256(b"").digest()
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_of(peak, root)
        return root

    def grown(self, leaves: Iterable[bytes]) -> Tree:
        """The tree with these hashes of leaves after its own."""
        size, peaks = self.size, list(self.peaks)
        for leaf in leaves:
            node, rest = leaf, size
            while rest & 1:
                node, rest = node_of(peaks.pop(), node), rest >> 1
            peaks.append(node)
            size += 1
        return Tree(size, tuple(peaks))

    @property
    def fits(self) -> bool:
        """Return whether a tree of this size has so many peaks."""
        return self.size >= 0 and len(self.peaks) == self.size.bit_count()


def proof(old: Tree, leaves: Sequence[bytes]) -> list[bytes]:
    """The proof that a tree with these leaves after those of `old` begins as `old` does."""
    return Subtrees(old, leaves).prefix(old.size, old.size + len(leaves))


class Subtrees:
    """The subtrees of a tree that grew: the peaks that it had, and what is made of the leaves after them."""

    def __init__(self, old: Tree, leaves: Sequence[bytes]) -> None:
        self._old, self._leaves = old.size, leaves
        self._roots: dict[tuple[int, int], bytes] = {}
        """By its first leaf and the one after its last, each larger subtree that is known."""
        begin = 0
        for peak, bit in zip(old.peaks, _bits(old.size), strict=True):
            self._roots[begin, begin + bit] = peak
            begin += bit

    def root(self, begin: int, end: int) -> bytes:
        """The hash of the leaves from `begin` to before `end`, of which none is below a peak."""
        known = self._roots.get((begin, end))
        if known is None and begin >= self._old and end - begin <= _SMALL:
            return Tree().grown(self._leaves[begin - self._old : end - self._old]).root
        if known is None:
            middle = begin + half(end - begin)
            known = self._roots[begin, end] = node_of(self.root(begin, middle), self.root(middle, end))
        return known

    def path(self, index: int, size: int) -> list[bytes]:
        """PATH of RFC 6962: the proof that the tree of `size` leaves holds the leaf at `index`, a new one."""
        hashes, begin, end = list[bytes](), 0, size
        while end - begin > 1:
            middle = begin + half(end - begin)
            hashes.append(self.root(middle, end) if index < middle else self.root(begin, middle))
            begin, end = (begin, middle) if index < middle else (middle, end)
        return hashes[::-1]

    def prefix(self, old: int, size: int) -> list[bytes]:
        """PROOF of RFC 6962: that the tree of `size` leaves begins with that of `old`, which had all peaks."""
        return self._between(old, 0, size, whole=True) if 0 < old < size else []

    def _between(self, old: int, begin: int, end: int, *, whole: bool) -> list[bytes]:
        """SUBPROOF for the leaves from `begin` to `end`."""
        if old == end:
            return [] if whole else [self.root(begin, end)]
        middle = begin + half(end - begin)
        if old <= middle:
            return [*self._between(old, begin, middle, whole=whole), self.root(middle, end)]
        return [*self._between(old, middle, end, whole=False), self.root(begin, middle)]


def _bits(size: int) -> list[int]:
    return [1 << bit for bit in reversed(range(size.bit_length())) if size >> bit & 1]


def half(length: int) -> int:
    """The largest power of two below a length: so many leaves stand on the left of a tree of that length."""
    return 1 << (length - 1).bit_length() - 1
