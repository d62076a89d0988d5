"""A build's provenance: of the files beside it, signed by a key that is named, or not valid."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit.parts.audit.formats import catalog
from remit.parts.audit.formats.agent_action import envelope_message
from remit.parts.audit.formats.keys import OperatorSigner

SIGNER = OperatorSigner(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = OperatorSigner(Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))


def statement(**members: Any) -> dict[str, Any]:
    digest = hashlib.sha256(b"wheel").hexdigest()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "one.whl", "digest": {"sha256": digest}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {},
        **members,
    }


def envelope(body: bytes, by: OperatorSigner = SIGNER, name: str = SIGNER.name) -> bytes:
    signature = {"keyid": name, "sig": base64.b64encode(by.sign(envelope_message(body))).decode()}
    payload = base64.b64encode(body).decode()
    kind = "application/vnd.in-toto+json"
    return json.dumps({"payloadType": kind, "payload": payload, "signatures": [signature]}).encode()


def encoded(**members: Any) -> bytes:
    return json.dumps(statement(**members)).encode()


def verdict(folder: Path, data: bytes, *, keys: bool = True) -> tuple[str, str | None]:
    (folder / "keys.json").write_bytes(SIGNER.published()["keys.json"])
    (folder / "one.intoto.jsonl").write_bytes(data)
    answer = catalog.check(folder / "one.intoto.jsonl", folder / "keys.json" if keys else None)
    assert answer is not None
    return answer.verdict, answer.code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.whl").write_bytes(b"wheel")
    return tmp_path


def test_a_signed_one_of_the_files_beside_it_is_valid(folder: Path) -> None:
    assert verdict(folder, envelope(encoded())) == ("valid", None)


def subject(name: str, data: bytes = b"wheel") -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (encoded(), ("undecidable", "not_signed")),
        (envelope(encoded(subject=[])), ("undecidable", "not_signed")),
        (envelope(encoded(), OTHER), ("invalid", "signature_invalid")),
        (envelope(encoded(), OTHER, OTHER.name), ("undecidable", "unknown_kid")),
        (envelope(encoded(subject=[subject("one.whl", b"other")])), ("invalid", "subject_mismatch")),
        (encoded(subject=[subject("one.whl", b"other")]), ("invalid", "subject_mismatch")),
        (envelope(encoded(subject=[subject("two.whl")])), ("undecidable", "subject_missing")),
        (envelope(encoded(subject=[subject("../one.whl")])), ("invalid", "subject_name")),
        (envelope(encoded(predicateType="https://example.org/1")), ("undecidable", "unknown-type")),
        (envelope(encoded(subject=[{"name": "one.whl"}])), ("undecidable", "form_invalid")),
        (envelope(b"[]"), ("undecidable", "form_invalid")),
    ],
)
def test_whatever_else_says_why_not(folder: Path, data: bytes, said: tuple[str, str]) -> None:
    assert verdict(folder, data) == said


def test_without_keys_it_is_undecidable(folder: Path) -> None:
    assert verdict(folder, envelope(encoded()), keys=False) == ("undecidable", "unknown_kid")
