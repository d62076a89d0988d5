"""The program that checks packages without Remit: canonical JSON as Remit's, and no hostile zip gets through."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import canonical, digest
from remit.evidence import verify
from tests.audit.packages import packed, repacked
from tests.opened import OpenRemit
from tests.test_canonical import NUMBERS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_it_writes_what_remit_writes(value: Any) -> None:
    value = json.loads(json.dumps(value))
    assert verify.canonical(value) == canonical(value)


@pytest.mark.parametrize("bits", NUMBERS)
def test_it_writes_numbers_as_the_standard_says(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert verify.canonical(value) == NUMBERS[bits].encode()


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "NaN", "[1e999, Infinity]", "[" * 200_000, "\xff", "", "{}x"])
def test_json_that_two_readers_could_take_differently_is_refused(text: str) -> None:
    with pytest.raises(verify.RejectedError):
        verify.read_json(text.encode("latin-1"), "here")


def edited(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    """A package in which a file was changed, and the manifest made to fit."""
    return lambda source, target: repacked(source, target, {name: change})


def line(number: int, **fields: Any) -> Callable[[bytes], bytes]:
    """Change fields of a line."""

    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        lines[number] = canonical(json.loads(lines[number]) | fields) + b"\n"
        return b"".join(lines)

    return change


def proof(**fields: Any) -> Callable[[bytes], bytes]:
    """Change fields of a JSON file."""
    return lambda data: canonical(json.loads(data) | fields)


def raw(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    """A package whose bytes were changed."""

    def write(source: Path, target: Path) -> None:
        target.write_bytes(change(source.read_bytes()))

    return write


def added(name: str, data: bytes = b"x", **fields: Any) -> Callable[[Path, Path], None]:
    """A package with one more file."""

    def change(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        with zipfile.ZipFile(target, "a") as package:
            entry = zipfile.ZipInfo(name)
            for field, value in fields.items():
                setattr(entry, field, value)
            package.writestr(entry, data)

    return change


def _commented(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    with zipfile.ZipFile(target, "a") as package:
        package.comment = b"see attachment"


HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    "no zip": raw(lambda _: b"PK nothing"),
    "empty": raw(lambda _: b""),
    "cut short": raw(lambda data: data[: len(data) // 2]),
    "bytes before it": raw(lambda data: b"#!/bin/sh\n" + data),
    "bytes after it": raw(lambda data: data + b"x"),
    "a byte changed": raw(lambda data: data[:150] + bytes([data[150] ^ 1]) + data[151:]),
    "a comment": _commented,
    "a file more": added("blobs/" + "0" * 64),
    "a file outside": added("../x"),
    "an absolute path": added("/etc/passwd"),
    "a link": added("blobs/" + "0" * 64, external_attr=0o120777 << 16),
    "an event changed": edited("events.ndjson", line(0, data='{"kind":"recipe","name":"other"}')),
    "a time changed": edited("events.ndjson", line(1, at=1)),
    "an event left out": edited("events.ndjson", lambda data: data.split(b"\n", 1)[1]),
    "the last event left out": edited("events.ndjson", lambda data: data[: data.rstrip().rfind(b"\n") + 1]),
    "an event twice": edited("events.ndjson", lambda data: data.split(b"\n", 1)[0] + b"\n" + data),
    "a line that is no event": edited("events.ndjson", lambda data: data + b"[]\n"),
    "a line without an end": edited("events.ndjson", lambda data: data.rstrip()),
    "a member twice": edited("events.ndjson", lambda data: data.replace(b'{"at"', b'{"at":1,"at"', 1)),
    "a ledger that says more": edited("ledger.ndjson", lambda data: data * 2),
    "streams that end elsewhere": edited("proof.json", proof(streams=[])),
    "a call that is pending": edited("proof.json", proof(pending=["inv_1"])),
    "a value that is none": edited("proof.json", proof(values=[{"sha256": "sha256:00", "state": "kept"}])),
    "a state that is none": edited("proof.json", proof(values=[{"sha256": "sha256:00", "state": "lost"}])),
    "a value that was erased by nobody": edited("proof.json", proof(values=[{"sha256": "x", "state": "erased"}])),
    "a value left out": edited("proof.json", proof(values=[{"sha256": "x", "state": "redacted"}])),
    "another format": edited("manifest.json", proof(format="remit-evidence-2")),
    "another hash": edited("manifest.json", proof(hash="sha256:0")),
    "no files": edited("manifest.json", proof(files=[])),
    "files that are no list": edited("manifest.json", proof(files=7)),
    "a scope that is not there": edited("manifest.json", proof(scope="job/other")),
}


async def test_hostile_packages_are_rejected_each_with_a_sentence(remit_in: OpenRemit, tmp_path: Path) -> None:
    good = await packed(remit_in, tmp_path / "good.zip")
    assert verify.check(str(good)).state == "whole"
    for number, (name, change) in enumerate(HOSTILE.items()):
        bad = tmp_path / f"{number}.zip"
        change(good, bad)
        verdict = verify.check(str(bad))
        assert (verdict.state, bool(verdict.problem)) == ("rejected", True), name


async def test_it_runs_with_python_alone(remit_in: OpenRemit, tmp_path: Path) -> None:
    good = await packed(remit_in, tmp_path / "good.zip")
    with zipfile.ZipFile(good) as package:
        package.extract("verify.py", tmp_path)
    command = [sys.executable, "-I", "-S", str(tmp_path / "verify.py"), str(good)]
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stdout.split()[0], ended.stderr) == (0, "whole", "")
    good.write_bytes(good.read_bytes()[:-1])
    ended = await asyncio.to_thread(
        subprocess.run, [*command, "--json"], capture_output=True, check=False, text=True, cwd=tmp_path
    )
    assert (ended.returncode, json.loads(ended.stdout)["state"]) == (1, "rejected")


def test_what_it_says_cannot_move_a_terminal() -> None:
    said = verify.describe("x.zip", verify.Verdict("rejected", "\x1b[2J\u202eevil\n"))
    assert said == "rejected x.zip: ?[2J?evil?"


def test_digest_is_remits() -> None:
    assert verify.digest({"b": 1.0, "a": [True, None, "é"]}) == digest({"b": 1.0, "a": [True, None, "é"]})
