"""Proofs about the append-only tree of RFC 6962: that a leaf is in one, and that one is the beginning of another."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def leaf_of(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + data).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return sha256(b"\x01" + left + right).digest()


def is_leaf(leaf: bytes, index: int, size: int, root: bytes, hashes: Sequence[bytes]) -> bool:
    """Return whether hashes prove that the tree of `size` leaves holds that leaf (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    node, place, last = leaf, index, size - 1
    for digest in hashes:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = node_of(digest, node)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            node = node_of(node, digest)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def is_prefix(old: int, old_root: bytes, size: int, root: bytes, hashes: Sequence[bytes]) -> bool:
    """Return whether hashes prove that the tree of `size` leaves begins with that of `old` (RFC 9162, 2.1.4.2)."""
    if old in {0, size}:
        return old <= size and not hashes and (old == 0 or old_root == root)
    if not 0 < old < size:
        return False
    rest = list(hashes)
    if not old & (old - 1):
        rest.insert(0, old_root)
    if not rest:
        return False
    left, right = old - 1, size - 1
    while left & 1:
        left, right = left >> 1, right >> 1
    first = second = rest[0]
    for bit in rest[1:]:
        if right == 0:
            return False
        if left & 1 or left == right:
            first, second = node_of(bit, first), node_of(bit, second)
            while left and not left & 1:
                left, right = left >> 1, right >> 1
        else:
            second = node_of(second, bit)
        left, right = left >> 1, right >> 1
    return right == 0 and (first, second) == (old_root, root)
