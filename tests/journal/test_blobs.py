from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import sha256
from remit.journal.blobs import INLINE_LIMIT, BlobRef, pack


@given(st.binary(max_size=200))
def test_a_small_value_stays_inline(value: bytes) -> None:
    packed = pack(value)
    assert isinstance(packed.inline, msgspec.Raw)
    assert bytes(packed.inline) == value
    assert (packed.ref, packed.blobs) == (msgspec.UNSET, ())


@pytest.mark.parametrize(("size", "kept"), [(INLINE_LIMIT, False), (INLINE_LIMIT + 1, True)])
def test_the_limit_is_exact(size: int, *, kept: bool) -> None:
    assert bool(pack(b"x" * size).blobs) is kept


def test_a_large_value_is_kept_by_digest() -> None:
    value = msgspec.json.encode({"password": "hunter2", "text": "x" * INLINE_LIMIT})
    packed = pack(value)
    assert packed.inline is msgspec.UNSET
    assert isinstance(packed.ref, BlobRef)
    assert (packed.ref.digest, packed.ref.bytes) == (sha256(value), len(value))
    assert [(blob.digest, blob.data) for blob in packed.blobs] == [(packed.ref.digest, value)]
    assert "hunter2" not in packed.ref.preview
    assert len(packed.ref.preview) <= 200
