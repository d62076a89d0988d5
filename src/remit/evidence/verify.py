"""Check an evidence package of Remit. Needs Python 3.9 or newer only: no Remit, no network, no key.

    python3 verify.py PACKAGE.zip [--json]

A package is a zip with these files:

    manifest.json    the other files with SHA-256 and size, and its own hash: over its canonical form without `hash`
    events.ndjson    an event a line: stream, seq, kind, at (microseconds), data (the recorded JSON text), hash (hex)
    ledger.ndjson    a call a line: what was announced, and how it ended; made from the events
    proof.json       each stream with its last hash, each value with its state, and calls without an outcome
    metadata.json    the job or session in short; made from the events, for people
    blobs/HEX        a value that does not stand in its event, named by the SHA-256 of its bytes
    verify.py        this program; take one that you trust

The hash of an event covers the one before it: h(0) = SHA-256("remit-chain-1" 00 stream), and h(n) = SHA-256(h(n-1) ‖
seq:8 ‖ at:8 ‖ length of kind:2 ‖ kind ‖ data), integers big-endian. The answer is one of three: `whole` (all is as it
was recorded, and the job or session has ended), `prefix` (the same, and more may follow) or `rejected`. Status 0, 2, 1.

What a package cannot show: that it was not made up as a whole, or cut at an earlier end. For that, compare the hashes
of its streams with ones that were kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

FORMAT = "remit-evidence-1"
STATES = ("kept", "erased", "expired", "missing", "redacted")
MAX_BYTES, MAX_FILES, MAX_LINE = 4 << 30, 1_000_000, 64 << 20
"""The most bytes that all files unpack to together, files, and bytes in a line."""
_POINT_FROM, _EXPONENT_FROM = 1e-6, 1e21
"""The sizes between which ECMAScript writes a number without an exponent."""
_ENDS = {"job_completed", "job_failed", "job_cancelled", "ticket_completed", "ticket_failed", "ticket_blocked"}
_BEGINS = {"tool_invocation_started", "command_started"}
_FINISHES = {"tool_invocation_finished", "command_committed"}
_NAME = re.compile(r"(manifest|proof|metadata)\.json|(events|ledger)\.ndjson|verify\.py|blobs/[0-9a-f]{64}")
_LEDGER = ("invocation_id", "step", "tool_name", "tool_version", "arguments_hash", "idempotency_key", "attempt")
_ALLOWED_BY = ("principal", "rule_id", "policy_hash", "confirmation", "llm_provider", "llm_model", "prompt_hash")


class RejectedError(Exception):
    """The package is no evidence: the sentence says where it fails."""


class Verdict(NamedTuple):
    """The answer about a package."""

    state: str
    """`whole`, `prefix` or `rejected`."""
    problem: str
    """Why it was rejected; empty otherwise."""
    scope: str = ""
    events: int = 0
    streams: int = 0
    values: tuple[tuple[str, int], ...] = ()
    """The number of values in each state."""
    pending: tuple[str, ...] = ()
    """Calls that were announced and have no outcome: whether they happened is unknown."""
    hash: str = ""


class Event(NamedTuple):
    """A recorded event."""

    stream: str
    seq: int
    kind: str
    payload: dict[str, Any]


def check(path: str) -> Verdict:
    """Check a package; whatever is in it gives a verdict. Raise OSError if the file cannot be read."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as package:  # noqa: PTH123 - a program of its own
            return _check(package, file.seek(0, 2))
    except RejectedError as error:
        return Verdict("rejected", str(error))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        return Verdict("rejected", f"it is not a zip as Remit writes it: {error}")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, struct.error, RuntimeError) as error:
        return Verdict("rejected", f"it does not have the form of a package: {type(error).__name__}: {error}")


def _check(package: zipfile.ZipFile, size: int) -> Verdict:
    _check_zip(package, size)
    manifest = read_json(package.read("manifest.json"), "manifest.json")
    if manifest["format"] != FORMAT:
        raise RejectedError(f"its format is {manifest['format']!r}, and this program knows {FORMAT}")
    if manifest_hash(manifest) != manifest["hash"]:
        raise RejectedError("manifest.json does not match its own hash")
    _check_files(package, manifest["files"])
    proof = read_json(package.read("proof.json"), "proof.json")
    calls, refs, erased, ended = Ledger(), References(), set[str](), False
    last: dict[str, tuple[int, bytes]] = {}
    count = 0
    for event in _events(package, last):
        count += 1
        calls.take(event)
        refs.take(event)
        ended = event.kind in _ENDS if event.stream == manifest["scope"] else ended
        erased |= {event.stream} if event.kind == "subject_erased" else set()
    _check_streams(proof["streams"], last, manifest["scope"])
    if package.read("ledger.ndjson") != calls.text():
        raise RejectedError("ledger.ndjson is not what the events say")
    if proof["pending"] != calls.pending:
        raise RejectedError("proof.json names other calls without an outcome than the events")
    counts = _check_values(package, proof["values"], refs, erased=bool(erased), redacted=manifest["redacted"])
    refs.check_arguments(package)
    state, pending = "whole" if ended else "prefix", tuple(calls.pending)
    return Verdict(
        state, "", manifest["scope"], count, len(last), tuple(sorted(counts.items())), pending, manifest["hash"]
    )


def _check_zip(package: zipfile.ZipFile, size: int) -> None:
    """Refuse a zip that two readers could see differently, or that unpacks to too much."""
    entries = package.infolist()
    names = package.namelist()
    if package.comment or len(set(names)) != len(names) or len(names) > MAX_FILES:
        raise RejectedError("the zip has a comment, a name twice, or too many files")
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise RejectedError(f"its files are larger than {MAX_BYTES} bytes together")
    end = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        if not _NAME.fullmatch(entry.filename) or entry.orig_filename != entry.filename:
            raise RejectedError(f"{entry.filename!r} is not a file of a package")
        if entry.flag_bits & 0x1 or entry.extra or entry.comment or entry.external_attr >> 28 not in (0, 8):
            raise RejectedError(f"{entry.filename} is encrypted, a link, or has fields that say more")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.header_offset != end:
            raise RejectedError(f"{entry.filename} does not begin where the file before it ends")
        end = entry.header_offset + 30 + len(entry.filename.encode()) + entry.compress_size
    directory = sum(46 + len(name.encode()) for name in names)
    if end != package.start_dir or size not in (end + directory + 22, end + directory + 98):
        raise RejectedError("there are bytes between the files, or after them")


def _check_files(package: zipfile.ZipFile, files: list[dict[str, Any]]) -> None:
    named = [file["path"] for file in files]
    if sorted([*named, "manifest.json"]) != sorted(package.namelist()) or named != sorted(named):
        raise RejectedError("the files are not those that manifest.json names")
    for file in files:
        found, size = hashlib.sha256(), 0
        with package.open(file["path"]) as content:
            while part := content.read(1 << 20):
                size += len(part)
                found.update(part)
        if (f"sha256:{found.hexdigest()}", size) != (file["sha256"], file["bytes"]):
            raise RejectedError(f"{file['path']} is not the file that manifest.json names")


def _events(package: zipfile.ZipFile, last: dict[str, tuple[int, bytes]]) -> Iterator[Event]:
    """Walk the events and their chains; `last` gets the number and chain value of the newest event of each stream."""
    for number, line in enumerate(_lines(package, "events.ndjson"), 1):
        row = read_json(line, f"events.ndjson line {number}")
        stream, seq, kind, data = row["stream"], row["seq"], row["kind"], row["data"].encode()
        before, previous = last.get(stream, (0, hashlib.sha256(b"remit-chain-1\0" + stream.encode()).digest()))
        name = kind.encode()
        frame = struct.pack(">QqH", seq, row["at"], len(name))
        value = hashlib.sha256(b"".join((previous, frame, name, data))).digest()
        if seq != before + 1 or value.hex() != row["hash"]:
            raise RejectedError(f"{stream}: event {seq} ({kind}) does not follow the event before it")
        last[stream] = (seq, value)
        yield Event(stream, seq, kind, read_json(data, f"{stream} event {seq}"))


def _lines(package: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with package.open(name) as content:
        while line := content.readline(MAX_LINE):
            if not line.endswith(b"\n"):
                raise RejectedError(f"{name} has a line that is cut short or too long")
            yield line


def _check_streams(streams: list[dict[str, Any]], last: dict[str, tuple[int, bytes]], scope: str) -> None:
    said = {one["stream"]: (one["events"], one["hash"]) for one in streams}
    found = {stream: (seq, value.hex()) for stream, (seq, value) in last.items()}
    if said != found or len(said) != len(streams) or scope not in found:
        raise RejectedError("the streams do not end as proof.json says")


class Ledger:
    """Every call, what it was announced as, and how it ended."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}

    def take(self, event: Event) -> None:
        """Take in an event."""
        payload = event.payload
        key = (event.stream, payload.get("invocation_id", ""))
        if event.kind in _BEGINS:
            if key in self._rows:
                raise RejectedError(f"{event.stream}: {key[1]} was announced twice")
            facts = {name: payload[name] for name in (*_LEDGER, *_ALLOWED_BY) if name in payload}
            self._rows[key] = {"stream": event.stream, "announced": event.seq, "outcome": "unknown", **facts}
        elif event.kind in _FINISHES and key[1]:
            row = self._rows.get(key)
            if row is None or row.get("step", "") != payload.get("step", ""):
                raise RejectedError(f"{event.stream}: {key[1]} ended, and was not announced for that step")
            row |= {"ended": event.seq, "outcome": payload.get("outcome", "success")}
            if payload.get("step_outcome") == "uncertain" or payload.get("uncertain"):
                row["outcome"] = "unknown"

    def text(self) -> bytes:
        """Return ledger.ndjson."""
        return b"".join(canonical(row) + b"\n" for row in self._rows.values())

    @property
    def pending(self) -> list[str]:
        """The calls without an outcome."""
        return [invocation for (_, invocation), row in self._rows.items() if row["outcome"] == "unknown"]


class References:
    """The values that events keep beside themselves, and what the events say of those in them."""

    def __init__(self) -> None:
        self.digests: dict[str, int] = {}
        """By digest, the size that the event says."""
        self.timed: set[str] = set()
        """Those that are kept for a time only."""
        self._arguments: list[tuple[str, str, str]] = []
        """Arguments beside their event: where, their digest, the digest of their canonical form."""

    def take(self, event: Event) -> None:
        """Take in an event. Raise RejectedError if what follows from other facts in it does not."""
        self._walk(event.payload)
        if event.kind != "tool_invocation_started":
            return
        payload, where = event.payload, f"{event.stream}: event {event.seq}"
        said, ref = payload.get("arguments_hash", ""), payload.get("args_blob")
        if said and isinstance(ref, dict) and not ref.get("key"):
            self._arguments.append((where, ref["digest"], said))
        elif said and "args" in payload and digest(payload["args"]) != said:
            raise RejectedError(f"{where}: arguments_hash is not the digest of the arguments")

    def check_arguments(self, package: zipfile.ZipFile) -> None:
        """Compare the arguments that stand beside their events with the digests that the events say."""
        kept = set(package.namelist())
        for where, ref, said in self._arguments:
            path = _path(ref)
            if path in kept and digest(read_json(package.read(path), path)) != said:
                raise RejectedError(f"{where}: arguments_hash is not the digest of the arguments")

    def _walk(self, value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                self._walk(item)
        elif isinstance(value, dict):
            for name, item in value.items():
                if name.endswith("_blob") and isinstance(item, dict) and "digest" in item:
                    self.digests[item["digest"]] = item["bytes"] + (32 if item.get("key") == "salt" else 0)
                    self.timed |= {item["digest"]} if "until" in value else set()
                elif name == "raw_pointer" and isinstance(item, str):
                    self.timed.add(item)
                else:
                    self._walk(item)


def _check_values(
    package: zipfile.ZipFile, values: list[dict[str, Any]], refs: References, *, erased: bool, redacted: bool
) -> dict[str, int]:
    """Check that each value is there, or that it is known why not."""
    counts = dict.fromkeys(STATES, 0)
    for value in values:
        counts[value["state"]] += 1
        if why := _why_not(value["sha256"], value["state"], refs, erased=erased, redacted=redacted):
            raise RejectedError(f"{value['sha256']} is said to be {value['state']}, and {why}")
    files = {name: package.getinfo(name).file_size for name in package.namelist() if name.startswith("blobs/")}
    kept = {_path(value["sha256"]) for value in values if value["state"] == "kept"}
    if kept != files.keys() or not refs.digests.keys() <= {value["sha256"] for value in values}:
        raise RejectedError("the values are not those that the events name")
    for name, size in refs.digests.items():
        if files.get(_path(name), size) != size:
            raise RejectedError(f"{_path(name)} has another size than its event says")
    for path in kept:
        if hashlib.sha256(package.read(path)).hexdigest() != path.partition("/")[2]:
            raise RejectedError(f"{path} is not what its name says")
    return {state: number for state, number in counts.items() if number}


def _why_not(name: str, state: str, refs: References, *, erased: bool, redacted: bool) -> str:
    """Say why a value cannot be in a state; empty: it can."""
    if state == "erased" and not erased:
        return "no erasure is on record"
    if state == "expired" and name not in refs.timed:
        return "it was to be kept for good"
    if state == "missing" and name in refs.digests:
        return "it was recorded"
    if state == "redacted" and not redacted:
        return "the package leaves nothing out"
    return ""


def _path(name: str) -> str:
    return f"blobs/{name.partition(':')[2]}"


# --- JSON


def read_json(data: bytes, where: str) -> Any:
    """Read JSON strictly: UTF-8, no member twice, no NaN. Raise RejectedError."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{where}: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def canonical(value: Any) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785); integers keep all their digits."""
    return _text(value).encode()


def digest(value: Any) -> str:
    """Return the digest of a JSON value's canonical form."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def manifest_hash(manifest: dict[str, Any]) -> str:
    """Return the hash that a manifest has to state."""
    return digest({name: value for name, value in manifest.items() if name != "hash"})


def _text(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        members = (f"{json.dumps(name, ensure_ascii=False)}:{_text(value[name])}" for name in names)
        return "{" + ",".join(members) + "}"
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Write a number as ECMAScript does (RFC 8785, section 3.2.2.3)."""
    text = repr(value)
    if value == 0:
        return "0"
    if _POINT_FROM <= abs(value) < _EXPONENT_FROM:
        return format(Decimal(text), "f").removesuffix(".0")
    return re.sub(r"e([+-])0", r"e\1", text)


# --- the program


def main(arguments: list[str]) -> int:
    """Check the packages that are named; return the status."""
    paths = [one for one in arguments if one != "--json"]
    if not paths or any(one in ("-h", "--help") for one in paths):
        sys.stderr.write((__doc__ or "") + "\n")
        return 64
    try:
        verdicts = [check(path) for path in paths]
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 66
    for path, verdict in zip(paths, verdicts):  # noqa: B905 - Python 3.9 knows no `strict`
        as_json = {"package": path, **verdict._asdict(), "values": dict(verdict.values)}
        sys.stdout.write((json.dumps(as_json) if "--json" in arguments else describe(path, verdict)) + "\n")
    states = {verdict.state for verdict in verdicts}
    return 1 if "rejected" in states else 2 if "prefix" in states else 0


def describe(path: str, verdict: Verdict) -> str:
    """Say the verdict about a package in a sentence, fit for a terminal whatever the package says."""
    values = ", ".join(f"{number} values {state}" for state, number in verdict.values) or "no values beside the events"
    parts = [
        f"{verdict.events} events in {verdict.streams} streams of {verdict.scope}, {values}",
        f"; outcome unknown: {', '.join(verdict.pending)}" if verdict.pending else "",
        "" if verdict.state == "whole" else "; it has not ended: more may follow",
    ]
    said = verdict.problem if verdict.state == "rejected" else f"{''.join(parts)}; {verdict.hash}"
    return "".join(char if char.isprintable() else "?" for char in f"{verdict.state} {path}: {said}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
