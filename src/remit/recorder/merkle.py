"""The append-only tree of RFC 6962 (2.1, 2.1.2): its root, and the proof that one tree is the beginning of another.

    leaf = SHA-256(00 ‖ bytes)        node = SHA-256(01 ‖ left ‖ right)

A tree is kept as its *peaks*: the roots of its full subtrees, the largest first. They are enough to go on. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec


def leaf_of(data: bytes) -> bytes:
    """The hash of a leaf."""
    return sha256(b"\x00" + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


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
            root = _node(peak, root)
        return root

    def grown(self, leaves: Iterable[bytes]) -> Tree:
        """The tree with these hashes of leaves after its own."""
        size, peaks = self.size, list(self.peaks)
        for leaf in leaves:
            node, rest = leaf, size
            while rest & 1:
                node, rest = _node(peaks.pop(), node), rest >> 1
            peaks.append(node)
            size += 1
        return Tree(size, tuple(peaks))

    @property
    def fits(self) -> bool:
        """Whether a tree of this size has so many peaks."""
        return self.size >= 0 and len(self.peaks) == self.size.bit_count()


def proof(old: Tree, leaves: Sequence[bytes]) -> list[bytes]:
    """The proof that a tree with these leaves after those of `old` begins as `old` does."""
    if not old.size or not leaves:
        return []
    return _Proof(old, leaves).between(0, old.size + len(leaves), whole=True)


class _Proof:
    """The subtrees of a grown tree: the old peaks, and what is made of the new leaves."""

    def __init__(self, old: Tree, leaves: Sequence[bytes]) -> None:
        self._size, self._leaves, self._peaks = old.size, leaves, dict[tuple[int, int], bytes]()
        begin = 0
        for peak, bit in zip(old.peaks, _bits(old.size), strict=True):
            self._peaks[begin, begin + bit] = peak
            begin += bit

    def between(self, begin: int, end: int, *, whole: bool) -> list[bytes]:
        """SUBPROOF of RFC 6962 for the leaves from `begin` to `end`."""
        if self._size == end:
            return [] if whole else [self._subtree(begin, end)]
        middle = begin + _half(end - begin)
        if self._size <= middle:
            return [*self.between(begin, middle, whole=whole), self._subtree(middle, end)]
        return [*self.between(middle, end, whole=False), self._subtree(begin, middle)]

    def _subtree(self, begin: int, end: int) -> bytes:
        if (begin, end) in self._peaks:
            return self._peaks[begin, end]
        return Tree().grown(self._leaves[begin - self._size : end - self._size]).root


def is_prefix(old: int, old_root: bytes, size: int, root: bytes, hashes: Sequence[bytes]) -> bool:
    """Whether hashes prove that the tree of `size` leaves begins with that of `old` leaves (RFC 9162, 2.1.4.2)."""
    if old in {0, size}:
        return old <= size and not hashes and (old == 0 or old_root == root)
    if not 0 < old < size:
        return False
    rest = list(hashes)
    if old.bit_count() == 1:
        rest.insert(0, old_root)
    if not rest:
        return False
    left, right = old - 1, size - 1
    while left & 1:
        left, right = left >> 1, right >> 1
    first = second = rest[0]
    for one in rest[1:]:
        if right == 0:
            return False
        if left & 1 or left == right:
            first, second = _node(one, first), _node(one, second)
            while left and not left & 1:
                left, right = left >> 1, right >> 1
        else:
            second = _node(second, one)
        left, right = left >> 1, right >> 1
    return right == 0 and (first, second) == (old_root, root)


def _bits(size: int) -> list[int]:
    return [1 << bit for bit in reversed(range(size.bit_length())) if size >> bit & 1]


def _half(length: int) -> int:
    """The largest power of two below a length."""
    return 1 << (length - 1).bit_length() - 1
