"""Check an evidence package of Remit. Needs Python 3.9 or newer only: no Remit, no network, no key.

    python3 verify.py PACKAGE.zip [--key KEY ...] [--decisions] [--json]

With --decisions, the rules that are in the package decide again what they decided, from the recorded facts. The
modules of Remit that decide stand at the end of this file. With --key, the public key of a recorder or a witness
(name+id+key, as `remit recorder key` prints it), every event must stand under a checkpoint that one of them signed.

A package is a zip with these files:

    manifest.json    the other files (kind, path, sha256, bytes), what is checked, and its own hash:
                     over its canonical form (RFC 8785) without `hash`
    events.ndjson    an event a line: stream, seq, kind, at (microseconds), data (the recorded JSON text), hash (hex)
    ledger.ndjson    a call a line: what was announced, and how it ended; made from the events
    proof.json       each stream with its last hash, each value with its state, and calls without an outcome
    metadata.json    the job, session or interval in short; made from the events, for people
    checkpoints.json signed checkpoints of a log in which the streams stand, with proofs; if a recorder signed
    stamps/N.tsr     the stamp of an authority (RFC 3161) over stamps/N.checkpoint, for `openssl ts -verify`
    blobs/HEX        a value that does not stand in its event, named by the SHA-256 of its bytes
    verify.py        this program; take one that you trust

The hash of an event covers the one before it: h(0) = SHA-256("remit-chain-1" 00 stream), and h(n) = SHA-256(h(n-1) ‖
seq:8 ‖ at:8 ‖ length of kind:2 ‖ kind ‖ data), integers big-endian. The answer is one of four: `whole` (all is as it
was recorded, and the job or ticket has ended), `prefix` (the same, and more may follow), `rejected`, or `undecidable`:
events are under no checkpoint of the keys that were given, or a newer Remit made the package. Status 0, 2, 1, 3.
If the manifest's scope is an interval (ISO 8601), the package is about all streams written to in it, and it is `whole`
if every job and ticket in it has ended, and no session is among them.

What a package cannot show: that it was not made up as a whole, cut at an earlier end, or made without a stream that
belongs to the interval. For the first, give the key of its recorder or of a witness; for the others, compare the hashes
of its streams with ones that were kept elsewhere.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from remit.evidence.checkpoints import Checkpoints, SignedLog
from remit.evidence.container import FIRST, NEWER, read_manifest
from remit.evidence.decisions import Decisions, DerivedDecisions
from remit.evidence.interval import read_interval
from remit.evidence.ledger import CallLedger, LedgerEvent
from remit.evidence.note import NoteKey
from remit.evidence.rejected import RejectedError
from remit.evidence.rules import SOURCES
from remit.evidence.strict_json import read_json, read_text
from remit.evidence.values import References, check_values

_ENDS = {"job_completed", "job_failed", "job_cancelled", "ticket_completed", "ticket_failed", "ticket_blocked"}
_BEGINS_AGAIN = {"ticket_retried"}
_OPTIONAL = ("decisions", "checkpoints", "uncovered")
_NAMED = 3
"""Streams that a sentence names at most."""
_MAX_LINE, _PART = 64 << 20, 1 << 20
_BEGIN = re.compile(r'\{"at":(0|[1-9][0-9]*),"data":"')
_REST = re.compile(r',"hash":"([0-9a-f]{64})","kind":"([\w.]+)","seq":([1-9][0-9]*),"stream":"([\w/.-]+)"\}')
_frame = struct.Struct(">QqH").pack


STATUSES = {"rejected": 1, "undecidable": 3, "prefix": 2, "whole": 0}
"""The exit status of each answer, the worst one first."""


class PackageVerdict(NamedTuple):
    """The answer about a package."""

    state: str
    """`whole`, `prefix`, `undecidable` or `rejected`."""
    problem: str
    """Why it was rejected, or cannot be decided; empty otherwise."""
    reason: str = ""
    """The same as a code."""
    scope: str = ""
    events: int = 0
    streams: int = 0
    values: tuple[tuple[str, int], ...] = ()
    """The number of values in each state."""
    pending: tuple[str, ...] = ()
    """Calls that were announced and have no outcome: whether they happened is unknown."""
    hash: str = ""
    decisions: DerivedDecisions | None = None
    """The decisions that were taken again; None: this was not asked for."""
    checkpoints: tuple[SignedLog, ...] = ()
    """The logs of recorders that cover it."""
    uncovered: tuple[tuple[str, int, int], ...] = ()
    """With keys: streams with events that none of them signed, how many are signed, and how many there are."""

    def members(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        derived = self.decisions and {"derived": self.decisions[0], "not_derived": dict(self.decisions[1])}
        logs = [log._asdict() for log in self.checkpoints]
        members = {**self._asdict(), "values": dict(self.values), "decisions": derived, "checkpoints": logs}
        return {name: value for name, value in members.items() if value or name not in _OPTIONAL}


def check(path: str, rules: Mapping[str, str] | None = None, keys: Sequence[NoteKey] = ()) -> PackageVerdict:
    """Check a package; whatever is in it gives a verdict. Raise OSError if the file cannot be read.

    With `rules`, the texts of the modules that decide, every decision is taken again, too. With `keys`, one of them
    must have signed a checkpoint over each event.
    """
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as package:  # noqa: PTH123 - a program of its own
            return _check(package, file.seek(0, 2), rules, keys)
    except RejectedError as error:
        return PackageVerdict("undecidable" if error.reason == NEWER else "rejected", str(error), error.reason)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, NotImplementedError, EOFError) as error:
        return PackageVerdict("rejected", f"it is not a zip as Remit writes it: {error}", "container_invalid")
    except OSError as error:
        if error.errno != errno.EINVAL:  # which a place before the beginning gives
            raise
        return PackageVerdict("rejected", "it names a place outside the file", "container_invalid")
    except (LookupError, OverflowError, TypeError, ValueError, AttributeError, struct.error, RuntimeError) as error:
        reason = f"it does not have the form of a package: {type(error).__name__}: {error}"
        return PackageVerdict("rejected", reason, "form_invalid")


def _check(
    package: zipfile.ZipFile, size: int, rules: Mapping[str, str] | None, keys: Sequence[NoteKey]
) -> PackageVerdict:
    manifest = read_manifest(package, size)
    checkpoints = Checkpoints(package)
    proof = read_json(package.read("proof.json"), "proof.json")
    ledger = hashlib.sha256()
    calls = CallLedger(ledger.update, has_effects=manifest["format"] != FIRST)
    refs, erased, is_in_time = References(), False, False
    interval, ended = read_interval(manifest["scope"]), dict[str, bool]()
    decisions = Decisions(package, rules) if rules else None
    last: dict[str, tuple[int, bytes]] = {}
    for event in _events(package, last):
        if event.kind in CallLedger.KINDS:
            calls.take(event)
        elif event.kind == "subject_erased":
            erased = True
        elif event.kind in _ENDS | _BEGINS_AGAIN:
            ended[event.stream] = event.kind in _ENDS
        is_in_time = is_in_time or (interval is not None and interval.since <= event.at < interval.until)
        refs.take(event)
        if (place := event[:2]) in checkpoints.chained:
            checkpoints.chained[place] = last[event.stream][1]
        if decisions is not None:
            decisions.take(event)
    calls.end()
    _check_streams(proof["streams"], last)
    if not (is_in_time if interval else manifest["scope"] in last):
        raise RejectedError("chain_broken", f"there is nothing of {manifest['scope']} in it")
    _check_forks(package, calls.forks)
    if (f"sha256:{ledger.hexdigest()}",) != tuple(
        row["sha256"] for row in manifest["artifacts"] if row["path"] == "ledger.ndjson"
    ):
        raise RejectedError("ledger_mismatch", "ledger.ndjson is not what the events say")
    if proof["pending"] != calls.pending:
        raise RejectedError("ledger_mismatch", "proof.json names other calls without an outcome than the events")
    counts = check_values(package, proof["values"], refs, manifest, erased=erased)
    refs.check_arguments(package)
    pruned = _check_metadata(package, manifest["scope"])
    gone = _gone(calls.questions - last.keys(), pruned)
    derived = decisions.derive() if decisions is not None else None
    is_whole = interval.is_over(last, ended) if interval else ended.get(manifest["scope"], False)
    logs = checkpoints.check(keys)
    lengths = {**dict.fromkeys(gone, 1), **{stream: seq for stream, (seq, _) in last.items()}}
    uncovered = checkpoints.uncovered(lengths) if keys else {}
    return PackageVerdict(
        "undecidable" if uncovered else "whole" if is_whole else "prefix",
        _unsigned(uncovered) if uncovered else "",
        "checkpoint_partial" if uncovered else "",
        scope=manifest["scope"],
        events=sum(seq for seq, _ in last.values()),
        streams=len(last),
        values=tuple(sorted(counts.items())),
        pending=tuple(calls.pending),
        hash=manifest["hash"],
        decisions=derived,
        checkpoints=logs,
        uncovered=tuple((stream, *counts) for stream, counts in uncovered.items()),
    )


def _unsigned(uncovered: Mapping[str, tuple[int, int]]) -> str:
    """Say which events no key signed."""
    events = sum(there - signed for signed, there in uncovered.values())
    streams = [
        f"{stream} from event {signed + 1} on" if signed else stream for stream, (signed, _) in uncovered.items()
    ]
    more = f" and {counted(len(streams) - _NAMED, 'more stream')}" if len(streams) > _NAMED else ""
    are = "is" if events == 1 else "are"
    return (
        f"{counted(events, 'event')} {are} under no checkpoint that your keys signed, and can be made up: "
        f"{', '.join(streams[:_NAMED])}{more}"
    )


def _events(package: zipfile.ZipFile, last: dict[str, tuple[int, bytes]]) -> Iterator[LedgerEvent]:
    """Walk the events and their chains; `last` gets the number and chain value of the newest event of each stream."""
    for number, line in enumerate(_lines(package, "events.ndjson"), 1):
        stream, seq, kind, at, text, recorded = _row(line, number)
        data, name = text.encode(), kind.encode()
        before, previous = last.get(stream) or (0, hashlib.sha256(b"remit-chain-1\0" + stream.encode()).digest())
        value = hashlib.sha256(b"".join((previous, _frame(seq, at, len(name)), name, data))).digest()
        if seq != before + 1 or value.hex() != recorded:
            raise RejectedError("chain_broken", f"{stream}: event {seq} ({kind}) does not follow the event before it")
        last[stream] = (seq, value)
        yield LedgerEvent(stream, seq, kind, read_text(text, f"{stream} event {seq}"), text, at)


def _row(line: bytes, number: int) -> tuple[str, int, str, int, str, str]:
    """Return stream, number, kind, time, data and hash of a line; as Remit writes it, it takes no parser."""
    text = line.decode()
    begin = _BEGIN.match(text)
    if begin is not None:
        data, at = scanstring(text, begin.end())
        rest = _REST.fullmatch(text, at)
        if rest is not None:
            return rest[4], int(rest[3]), rest[2], int(begin[1]), data, rest[1]
    row = read_json(line, f"events.ndjson line {number}")
    return row["stream"], row["seq"], row["kind"], row["at"], row["data"], row["hash"]


def _lines(package: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with package.open(name) as content:
        rest = b""
        while part := content.read(_PART):
            *lines, rest = (rest + part).split(b"\n")
            yield from lines
            if len(rest) > _MAX_LINE:
                break
        if rest:
            raise RejectedError("json_invalid", f"{name} has a line that is cut short or too long")


def _check_metadata(package: zipfile.ZipFile, scope: str) -> set[str]:
    """Return the streams that are said to be pruned, which nothing proves."""
    metadata = read_json(package.read("metadata.json"), "metadata.json")
    if scope not in {metadata.get("stream"), metadata.get("interval")}:
        raise RejectedError("form_invalid", f"metadata.json is about something else than {scope}")
    return {row["stream"] for row in metadata.get("pruned", ())}


def _gone(questions: set[str], pruned: set[str]) -> set[str]:
    """Return the questions that are not in the package, all of which have to be pruned."""
    if not questions <= pruned:
        raise RejectedError("event_contradicted", f"{min(questions - pruned)} was asked, and is not in the package")
    return questions


def _check_forks(package: zipfile.ZipFile, forks: dict[tuple[str, int], str]) -> None:
    """Check that forks begin after the events that they name, which are in the package too."""
    for line in _lines(package, "events.ndjson") if forks else ():
        stream, seq, *_, chained = _row(line, 0)
        if forks.get((stream, seq)) == chained:
            del forks[stream, seq]
    if forks:
        raise RejectedError("event_contradicted", f"a fork begins after another event of {next(iter(forks))[0]}")


def _check_streams(streams: list[dict[str, Any]], last: dict[str, tuple[int, bytes]]) -> None:
    counts = {row["stream"]: (row["events"], row["hash"]) for row in streams}
    there = {stream: (seq, value.hex()) for stream, (seq, value) in last.items()}
    if counts != there or len(counts) != len(streams):
        raise RejectedError("chain_broken", "the streams do not end as proof.json says")


# --- the program


def main(arguments: list[str]) -> int:
    """Check the packages that are named; return the status."""
    if sys.version_info < (3, 9):  # noqa: UP036 - this also runs without Remit
        sys.stderr.write(f"this program needs Python 3.9 or newer, and this is {sys.version.split()[0]}\n")
        return 69
    places = [place for place, name in enumerate(arguments, 1) if name == "--key"]
    paths = [
        name
        for place, name in enumerate(arguments)
        if place not in places and name not in ("--json", "--decisions", "--key")
    ]
    if not paths or {"-h", "--help"} & set(paths):
        sys.stderr.write((__doc__ or "") + "\n")
        return 64
    try:
        keys = [NoteKey.parse(arguments[place]) for place in places]
        verdicts = [check(path, SOURCES if "--decisions" in arguments else None, keys) for path in paths]
    except (ValueError, IndexError) as error:
        sys.stderr.write(f"--key: {error}\n")
        return 64
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 66
    for path, verdict in zip(paths, verdicts):  # noqa: B905 - Python 3.9 knows no `strict`
        as_json = {"package": path, **verdict.members()}
        sys.stdout.write((json.dumps(as_json) if "--json" in arguments else describe(path, verdict)) + "\n")
    states = {verdict.state for verdict in verdicts}
    return next((status for state, status in STATUSES.items() if state in states), 0)


def describe(path: str, verdict: PackageVerdict) -> str:
    """Say the verdict about a package in a sentence, fit for a terminal whatever the package says."""
    values = ", ".join(f"{counted(number, 'value')} {state}" for state, number in verdict.values)
    recorded = f"{counted(verdict.events, 'event')} in {counted(verdict.streams, 'stream')} of {verdict.scope}"
    parts = [
        f"{recorded}, {values or 'no values beside the events'}",
        f"; outcome unknown: {', '.join(verdict.pending)}" if verdict.pending else "",
        "" if verdict.state == "whole" else "; it has not ended: more may follow",
        _describe_decisions(verdict.decisions) if verdict.decisions is not None else "",
        *(f"; {log.words()}" for log in verdict.checkpoints),
    ]
    reason = f"{verdict.reason}: {verdict.problem}"
    text = reason if not verdict.hash else f"{''.join(parts)}{f'; {reason}' if verdict.problem else ''}; {verdict.hash}"
    return "".join(char if char.isprintable() else "?" for char in f"{verdict.state} {path}: {text}")


def _describe_decisions(derived: DerivedDecisions) -> str:
    missing = "".join(f", {number} not derived: {reason}" for reason, number in derived.not_derived)
    return f"; {counted(derived.decisions, 'decision')} derived again{missing}"


def counted(number: int, noun: str) -> str:
    """Return a number of things: `1 event`, `2 events`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
