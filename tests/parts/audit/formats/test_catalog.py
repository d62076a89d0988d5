"""Every format: written the same each time, read back, and refused once anything in it is changed."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit.journal.kinds import KINDS
from remit.parts.audit.formats import ENDINGS, Form, catalog
from remit.parts.audit.formats.account import ExportAccount, pack
from remit.parts.audit.formats.agent_action import envelope_message
from remit.parts.audit.formats.keys import OperatorSigner
from remit.parts.audit.formats.table import ROWS
from tests.parts.audit.formats.errands import signed

SIGNED: tuple[Form, ...] = ("ael", "in-toto", "receipts")
UNSIGNED: tuple[Form, ...] = ("ocsf", "otlp")
Change = Callable[[list[bytes]], list[bytes]]


def written(account: ExportAccount, form: Form, folder: Path) -> Path:
    """The file of an account in a format; the keys to check it with lie beside it, in `keys`."""
    by, _ = signed(folder)
    (folder / "keys").mkdir(exist_ok=True)
    for name, data in by.published().items():
        (folder / "keys" / name).write_bytes(data)
    place = folder / f"one{ENDINGS[form]}"
    signs = catalog.SIGNED.get(form)
    place.write_bytes(signs(account, by) if signs else catalog.UNSIGNED[form](account))
    return place


def changed(place: Path, change: Change) -> Path:
    """The same file with the lines of its longest member changed."""
    target = place.with_stem(f"changed-{place.stem}")
    if place.suffix != ".zip":
        target.write_bytes(b"".join(change(place.read_bytes().splitlines(keepends=True))))
        return target
    with zipfile.ZipFile(BytesIO(place.read_bytes())) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    longest = max(files, key=lambda name: len(files[name]))
    files[longest] = b"".join(change(files[longest].splitlines(keepends=True)))
    target.write_bytes(pack(files))
    return target


def flip(lines: list[bytes]) -> list[bytes]:
    """One digit of the third line changed."""
    return [*lines[:2], lines[2].replace(b"1", b"2", 1), *lines[3:]]


CHANGES: dict[str, Change] = {
    "a digit": flip,
    "a record left out": lambda lines: lines[:2] + lines[3:],
    "two records exchanged": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a record twice": lambda lines: [lines[0], lines[0], *lines[1:]],
    "the first record left out": lambda lines: lines[1:],
}


@pytest.mark.parametrize("form", SIGNED)
def test_what_is_signed_is_valid_under_its_key_only(ended: ExportAccount, tmp_path: Path, form: Form) -> None:
    place = written(ended, form, tmp_path)
    for keys in (tmp_path / "keys", tmp_path / "keys" / "keys.json"):
        answer = catalog.check(place, keys)
        assert answer is not None
        assert (answer.verdict, answer.code) == ("valid", None)
    alone = catalog.check(place, None)
    assert alone is not None
    assert alone.verdict == "undecidable"


@pytest.mark.parametrize("form", SIGNED)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_invalid(ended: ExportAccount, tmp_path: Path, form: Form, change: str) -> None:
    answer = catalog.check(changed(written(ended, form, tmp_path), CHANGES[change]), tmp_path / "keys")
    assert answer is not None
    assert answer.verdict == "invalid"


@pytest.mark.parametrize("form", UNSIGNED)
def test_what_is_not_signed_never_counts_as_valid(ended: ExportAccount, tmp_path: Path, form: Form) -> None:
    answer = catalog.check(written(ended, form, tmp_path), tmp_path / "keys")
    assert answer is not None
    assert (answer.verdict, answer.code) == ("undecidable", "not_signed")


@pytest.mark.parametrize("form", [*SIGNED, *UNSIGNED])
def test_the_same_record_gives_the_same_bytes(waiting: ExportAccount, tmp_path: Path, form: Form) -> None:
    assert written(waiting, form, tmp_path).read_bytes() == written(waiting, form, tmp_path).read_bytes()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"resourceSpans": 5}', b'{"class_uid": 1}', b"[" * 100_000]
)
def test_any_bytes_get_an_answer(tmp_path: Path, data: bytes) -> None:
    place = tmp_path / "one.json"
    place.write_bytes(data)
    answer = catalog.check(place, None)
    assert answer is not None
    assert answer.verdict != "valid"


def test_the_table_names_kinds_that_there_are_and_each_case_once() -> None:
    assert {row.kind for row in ROWS} <= KINDS.keys()
    assert len({(row.kind, row.case) for row in ROWS}) == len(ROWS)
    assert {*get_args(Form)} == ENDINGS.keys() == {"package", *catalog.SIGNED, *catalog.UNSIGNED}


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
