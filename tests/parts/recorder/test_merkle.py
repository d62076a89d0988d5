"""The tree of RFC 6962, compared with its definition."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from remit.evidence.merkle import Subtrees, Tree, proof
from remit.evidence.proofs import is_leaf, is_prefix, leaf_of


def root(leaves: list[bytes]) -> bytes:
    """MTH, as section 2.1 says it."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else sha256(b"").digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha256(b"\x01" + root(leaves[:half]) + root(leaves[half:])).digest()


LEAVES = [leaf_of(str(number).encode()) for number in range(70)]


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 6))
def test_a_tree_proves_what_it_began_as_and_nothing_else(one: int, other: int, wrong: int) -> None:
    old, new = sorted((one, other))
    before, tree = Tree().grown(LEAVES[:old]), Tree().grown(LEAVES[:new])
    assert (tree.root, tree.fits) == (root(LEAVES[:new]), True)
    assert before.grown(LEAVES[old:new]) == tree
    hashes = proof(before, LEAVES[old:new])
    assert is_prefix(old, before.root, new, tree.root, hashes)
    assert not old or not is_prefix(old, LEAVES[wrong], new, tree.root, hashes) or before.root == LEAVES[wrong]
    if hashes:
        place = wrong % len(hashes)
        assert not is_prefix(old, before.root, new, tree.root, [*hashes[:place], b"x" * 32, *hashes[place + 1 :]])
        assert not is_prefix(old, before.root, new, tree.root, hashes[:-1])
        assert not is_prefix(old, before.root, new, tree.root, [*hashes, b"x" * 32])
        assert not is_prefix(new, tree.root, old, before.root, hashes)


@given(st.integers(0, 69), st.integers(0, 69), st.integers(1, 70), st.integers(0, 69))
def test_a_tree_proves_what_it_holds_and_nothing_else(old: int, index: int, size: int, wrong: int) -> None:
    old, index, size = sorted((old, index, size)) if index < size else sorted((old, index, index + 1))
    index = min(index, size - 1)
    tree, subtrees = Tree().grown(LEAVES[:size]), Subtrees(Tree().grown(LEAVES[:old]), LEAVES[old:])
    if index < old:
        return
    hashes = subtrees.path(index, size)
    assert is_leaf(LEAVES[index], index, size, tree.root, hashes)
    assert not is_leaf(LEAVES[wrong], index, size, tree.root, hashes) or wrong == index
    assert not is_leaf(LEAVES[index], wrong, size, tree.root, hashes) or wrong == index
    assert not is_leaf(LEAVES[index], index, size, tree.root, [*hashes, b"x" * 32])
    assert not is_leaf(LEAVES[index], index, size, tree.root, hashes[1:]) or not hashes


def test_the_vector_of_rfc_6962_for_an_empty_tree_and_leaf() -> None:
    assert Tree().root.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert leaf_of(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
