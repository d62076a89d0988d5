"""Every format: written the same each time, read back, and refused once anything in it is changed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import get_args

import pytest

from remit.journal.kinds import KINDS
from remit.parts.audit.formats import ENDINGS, Form, catalog
from remit.parts.audit.formats.account import ExportAccount, pack
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
