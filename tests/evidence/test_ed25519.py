"""Signatures are checked as `cryptography` does, and as RFC 8032 says."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.evidence.ed25519 import is_valid
from remit.journal.signing_key import is_signature

ORDER = 2**252 + 27742317777372353535851937790883648493
VECTORS = (  # RFC 8032, 7.1: key, message, signature
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
)


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard(key: str, message: str, signature: str) -> None:
    assert is_valid(bytes.fromhex(signature), bytes.fromhex(message), bytes.fromhex(key))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200), st.integers(0, 95), st.integers(0, 7))
def test_it_says_what_cryptography_says(seed: bytes, message: bytes, place: int, bit: int) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = private.public_key().public_bytes_raw(), private.sign(message)
    assert is_valid(signature, message, public)
    changed = bytearray(signature + public)
    changed[place] ^= 1 << bit
    forged, key = bytes(changed[:64]), bytes(changed[64:])
    assert is_valid(forged, message, key) == is_signature(forged, message, key) is False
    assert not is_valid(signature, message + b"x", public)


@pytest.mark.parametrize("length", [0, 31, 63, 65])
def test_a_signature_of_another_length_is_none(length: int) -> None:
    assert not is_valid(b"\x01" * length, b"", bytes.fromhex(VECTORS[0][0]))


def test_a_signature_has_one_form_only() -> None:
    key, message, text = (bytes.fromhex(one) for one in VECTORS[1])
    again = int.from_bytes(text[32:], "little") + ORDER
    assert not is_valid(text[:32] + again.to_bytes(32, "little"), message, key)


@pytest.mark.parametrize("key", [b"", b"\xff" * 32, (2**255 - 19).to_bytes(32, "little"), b"\x02" + b"\x00" * 31])
def test_bytes_that_are_no_key_sign_nothing(key: bytes) -> None:
    assert not is_valid(bytes(64), b"", key)
