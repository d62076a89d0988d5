"""The program that checks packages without Remit: canonical JSON as Remit's, and no hostile zip gets through."""

from __future__ import annotations

import ast
import asyncio
import json
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import canonical, digest
from remit.evidence import strict_json, verify
from remit.evidence.container import FIRST
from remit.evidence.program import program, sources
from remit.evidence.rejected import REASONS, RejectedError
from remit.journal.event import link, root
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, bought, export, packed, repacked
from tests.test_canonical import NUMBERS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_it_writes_what_remit_writes(value: Any) -> None:
    value = json.loads(json.dumps(value))
    assert strict_json.canonical(value) == canonical(value)


@pytest.mark.parametrize("bits", NUMBERS)
def test_it_writes_numbers_as_the_standard_says(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert strict_json.canonical(value) == NUMBERS[bits].encode()


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "NaN", "[1e999, Infinity]", "[" * 200_000, "\xff", "", "{}x"])
def test_json_that_two_readers_could_take_differently_is_refused(text: str) -> None:
    with pytest.raises(RejectedError):
        strict_json.read_json(text.encode("latin-1"), "here")


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


def chained(kind: str, name: str, value: str) -> Callable[[bytes], bytes]:
    """Change a field of the first event of a kind, and chain its stream again."""

    def change(data: bytes) -> bytes:
        rows, last, done = [json.loads(row) for row in data.splitlines()], dict[str, bytes](), False
        for row in rows:
            if row["kind"] == kind and not done:
                row["data"], done = canonical(json.loads(row["data"]) | {name: value}).decode(), True
            before = last.get(row["stream"], root(row["stream"]))
            last[row["stream"]] = link(before, row["seq"], row["at"], row["kind"], row["data"].encode())
            row["hash"] = last[row["stream"]].hex()
        return b"".join(canonical(row) + b"\n" for row in rows)

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
        with zipfile.ZipFile(target, "a") as package, warnings.catch_warnings(action="ignore"):
            entry = zipfile.ZipInfo(name)
            for field, value in fields.items():
                setattr(entry, field, value)
            package.writestr(entry, data)

    return change


def _commented(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    with zipfile.ZipFile(target, "a") as package:
        package.comment = b"see attachment"


def manifest(**change: Callable[[Any], Any]) -> Callable[[Path, Path], None]:
    """A package whose manifest has other members, and a hash that fits."""

    def edit(data: bytes) -> bytes:
        members = json.loads(data)
        return canonical(members | {name: how(members.get(name)) for name, how in change.items()})

    return edited("manifest.json", edit)


NO_BLOB = "blobs/" + "0" * 64
HOSTILE: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "no zip": (raw(lambda _: b"PK nothing"), "container_invalid"),
    "empty": (raw(lambda _: b""), "container_invalid"),
    "cut short": (raw(lambda data: data[: len(data) // 2]), "container_invalid"),
    "bytes before it": (raw(lambda data: b"#!/bin/sh\n" + data), "container_invalid"),
    "bytes after it": (raw(lambda data: data + b"x"), "container_invalid"),
    "a byte changed": (raw(lambda data: data[:150] + bytes([data[150] ^ 1]) + data[151:]), ""),
    "a comment": (_commented, "container_invalid"),
    "a file more": (added(NO_BLOB), "artifact_missing"),
    "a file twice": (added("proof.json"), "duplicate_artifact_path"),
    "a file outside": (added("../x"), "container_invalid"),
    "an absolute path": (added("/etc/passwd"), "container_invalid"),
    "a link": (added(NO_BLOB, external_attr=0o120777 << 16), "container_invalid"),
    "a package in it": (added("inner.zip"), "container_invalid"),
    "a long name": (added("blobs/" + "0" * 60_000), "container_invalid"),
    "a manifest that unpacks to too much": (manifest(note=lambda _: "x" * 2**22), "container_invalid"),
    "a proof that unpacks to too much": (edited("proof.json", lambda data: data + b" " * 2**22), "container_invalid"),
    "an event changed": (edited("events.ndjson", line(0, data='{"kind":"recipe","name":"other"}')), "chain_broken"),
    "a time changed": (edited("events.ndjson", line(1, at=1)), "chain_broken"),
    "an event left out": (edited("events.ndjson", lambda data: data.split(b"\n", 1)[1]), "chain_broken"),
    "the last one left out": (edited("events.ndjson", lambda data: data[: data.rstrip().rfind(b"\n") + 1]), ""),
    "an event twice": (edited("events.ndjson", lambda data: data.split(b"\n", 1)[0] + b"\n" + data), "chain_broken"),
    "a line that is no event": (edited("events.ndjson", lambda data: data + b"[]\n"), "form_invalid"),
    "a line without an end": (edited("events.ndjson", lambda data: data.rstrip()), "json_invalid"),
    "a member twice": (
        edited("events.ndjson", lambda data: data.replace(b'{"at"', b'{"at":1,"at"', 1)),
        "json_invalid",
    ),
    "a ledger that says more": (edited("ledger.ndjson", lambda data: data * 2), "ledger_mismatch"),
    "streams that end elsewhere": (edited("proof.json", proof(streams=[])), "chain_broken"),
    "a call that is pending": (edited("proof.json", proof(pending=["inv_1"])), "ledger_mismatch"),
    "a value that is none": (edited("proof.json", proof(values=[{"sha256": "x", "state": "kept"}])), "value_invalid"),
    "values that are not said": (edited("proof.json", proof(values=[])), "value_invalid"),
    "a member of metadata that stands there twice": (
        edited("metadata.json", lambda data: data.replace(b"{", b'{"kind":"x",', 1)),
        "json_invalid",
    ),
    "metadata of something else": (
        edited("metadata.json", lambda data: data.replace(b"job/", b"job/x")),
        "form_invalid",
    ),
    "no such state": (edited("proof.json", proof(values=[{"sha256": "x", "state": "lost"}])), "form_invalid"),
    "erased by no one": (edited("proof.json", proof(values=[{"sha256": "x", "state": "erased"}])), "value_invalid"),
    "left out": (edited("proof.json", proof(values=[{"sha256": "x", "state": "redacted"}])), "value_invalid"),
    "another format": (manifest(format=lambda _: "remit-evidence-x"), "manifest_schema_invalid"),
    "another hash": (edited("manifest.json", proof(hash="sha256:0")), "manifest_self_integrity_failed"),
    "no artifacts": (manifest(artifacts=lambda _: []), "artifact_missing"),
    "an artifact twice": (manifest(artifacts=lambda rows: [*rows, rows[0]]), "duplicate_artifact_path"),
    "another digest": (
        manifest(artifacts=lambda rows: [rows[0] | {"sha256": "x"}, *rows[1:]]),
        "artifact_sha_mismatch",
    ),
    "artifacts that are no list": (manifest(artifacts=lambda _: 7), "manifest_schema_invalid"),
    "a check twice": (manifest(checks=lambda checks: [*checks, checks[0]]), "duplicate_check_name"),
    "a check of nothing": (
        manifest(checks=lambda checks: [checks[0] | {"details_ref": "x"}, *checks[1:]]),
        "details_ref_not_listed",
    ),
    "a scope that is not there": (manifest(scope=lambda _: "job/other"), "chain_broken"),
}


@pytest.mark.slow
async def test_hostile_packages_are_rejected_each_with_a_sentence(remit_in: OpenRemit, tmp_path: Path) -> None:
    good = await packed(remit_in, tmp_path / "good.zip")
    assert verify.check(str(good)).state == "whole"
    for number, (name, (change, reason)) in enumerate(HOSTILE.items()):
        bad = tmp_path / f"{number}.zip"
        change(good, bad)
        verdict = verify.check(str(bad))
        assert (verdict.state, bool(verdict.problem)) == ("rejected", True), name
        assert verdict.reason in REASONS, name
        assert verdict.reason == (reason or verdict.reason), name


async def test_a_later_format_is_not_called_a_forgery(remit_in: OpenRemit, tmp_path: Path) -> None:
    good, newer = await packed(remit_in, tmp_path / "good.zip"), tmp_path / "newer.zip"
    added("attestation.json")(good, newer)
    assert verify.check(str(newer)).reason == "container_invalid"
    manifest(format=lambda _: "remit-evidence-3")(newer, newer)
    verdict = verify.check(str(newer))
    assert (verdict.state, verdict.reason) == ("undecidable", "format_newer")
    assert verify.main([str(newer)]) == 3


def _without_effects(data: bytes) -> bytes:
    rows = [json.loads(row) for row in data.splitlines()]
    told = ({name: row[name] for name in row if not name.startswith("effect")} for row in rows)
    return b"".join(canonical(row) + b"\n" for row in told)


async def test_in_the_first_format_the_ledger_says_nothing_of_effects(remit_in: OpenRemit, tmp_path: Path) -> None:
    good, mixed, first = await packed(remit_in, tmp_path / "good.zip"), tmp_path / "mixed.zip", tmp_path / "first.zip"
    edited("ledger.ndjson", _without_effects)(good, mixed)
    assert verify.check(str(mixed)).reason == "ledger_mismatch"
    manifest(format=lambda _: FIRST)(mixed, first)
    assert verify.check(str(first)).state == "whole"


async def test_no_flipped_bit_makes_it_fail_or_goes_by_where_files_begin(remit_in: OpenRemit, tmp_path: Path) -> None:
    good, bad = await packed(remit_in, tmp_path / "good.zip"), tmp_path / "bad.zip"
    data = good.read_bytes()
    with zipfile.ZipFile(good) as package:
        begins = [entry.header_offset for entry in package.infolist()][:3]
    for place in [at + step for at in begins for step in range(30)]:
        bad.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        verdict = verify.check(str(bad))
        assert (verdict.state, verdict.reason in REASONS) == ("rejected", True), place


async def test_an_event_that_was_chained_again_is_contradicted(remit_in: OpenRemit, tmp_path: Path) -> None:
    good = await packed(remit_in, tmp_path / "good.zip")
    for name, value in (("arguments_hash", "sha256:0"), ("idempotency_key", "0"), ("tool_name", "desk.other")):
        repacked(good, tmp_path / "bad.zip", {"events.ndjson": chained("tool_invocation_started", name, value)})
        assert verify.check(str(tmp_path / "bad.zip")).reason == "event_contradicted", name


@pytest.mark.slow
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


@pytest.mark.slow
async def test_decisions_are_derived_with_python_alone(remit_in: OpenRemit, tmp_path: Path) -> None:
    rules = [{"id": "no", "effect": "deny", "tools": ["desk.pay"], "where": "args.cents > 3 or args.note == 'x'"}]
    async with remit_in(**GIVEN, flags={"policy.rules": rules}) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "desk.pay", {"cents": 4})
        await remit.service.sessions.call(session, "desk.look", {"text": "a"})
    await export(remit_in, session, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as package:
        events = chained("gate_refused", "rule_id", "on")(package.read("events.ndjson"))
        (stream,) = json.loads(package.read("proof.json"))["streams"]
    ends = proof(streams=[stream | {"hash": json.loads(events.splitlines()[-1])["hash"]}])
    repacked(tmp_path / "good.zip", tmp_path / "bad.zip", {"events.ndjson": lambda _: events, "proof.json": ends})
    (tmp_path / "verify.py").write_bytes(program())
    said = {}
    for name in ("good.zip", "bad.zip"):
        command = [sys.executable, "-I", "-S", "verify.py", name, "--json", "--decisions"]
        ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, cwd=tmp_path)
        said[name] = json.loads(ended.stdout)
    assert said["good.zip"]["decisions"] == {"derived": 2, "not_derived": {}}
    assert (said["bad.zip"]["state"], said["bad.zip"]["reason"]) == ("rejected", "event_contradicted")
    assert "deny by on" in said["bad.zip"]["problem"]


async def test_a_decision_whose_facts_were_left_out_is_not_derived(remit_in: OpenRemit, tmp_path: Path) -> None:
    await export(remit_in, await bought(remit_in), tmp_path / "one.zip", redacted=True)
    decisions = verify.check(str(tmp_path / "one.zip"), sources()).decisions
    assert decisions is not None
    assert decisions.decisions == 0
    assert [why for why, _ in decisions.not_derived] == ["a value is not in the package"]


def test_the_one_file_knows_no_remit_and_only_the_standard_library() -> None:
    tree = ast.parse(program())
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names
    assert b"Check an evidence package" in program()[:80]


def test_no_two_modules_of_the_one_file_define_the_same_name() -> None:
    tree = ast.parse(program(), feature_version=(3, 9))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    stored = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    named = [name for target in stored for name in ast.walk(target) if isinstance(name, ast.Name)]
    names += [name.id for name in named if isinstance(name.ctx, ast.Store)]
    assert sorted(names) == sorted(set(names))


def test_an_older_python_says_so_and_judges_no_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    assert verify.main(["package.zip"]) == 69
    assert capsys.readouterr().err.startswith("this program needs Python 3.9 or newer")


def test_what_it_says_cannot_move_a_terminal() -> None:
    said = verify.describe("x.zip", verify.PackageVerdict("rejected", "\x1b[2J\u202eevil\n", "container_invalid"))
    assert said == "rejected x.zip: container_invalid: ?[2J?evil?"


def test_digest_is_remits() -> None:
    assert strict_json.digest({"b": 1.0, "a": [True, None, "é"]}) == digest({"b": 1.0, "a": [True, None, "é"]})
