"""The account that a package gives: its events in order, each with its row of the table and what belongs to it.

Formats are made of packages and of nothing else: anyone who holds a package can make the same of it.

Several files as one: a zip that is the same each time, and a folder or such a zip read back.

The error that ends a check, and JSON that two readers take alike.
"""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from remit.canonical import canonical
from remit.errors import NotCanonicalError, RemitError
from remit.evidence.answer import CheckAnswer, Verdict
from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import read_json
from remit.evidence.values import path_of
from remit.evidence.verify import counted
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.journal.effects import READS, Effect, effect_of
from remit.journal.kinds import Payload, decode
from remit.journal.references import reveal
from remit.parts.audit.formats.table import FormatRow, row_of
from remit.parts.audit.sessions import RecorderSession
from remit.record.walk import root_of
from remit.regex import regex


class AccountEntry(NamedTuple):
    """An event, and what it is in each format."""

    stream: str
    seq: int
    kind: str
    at: int
    """When it was recorded, in microseconds since the Unix epoch."""
    chain: str
    """The chain value after it, in hexadecimal."""
    payload: Payload | None
    row: FormatRow

    @property
    def place(self) -> str:
        """Return what no other event of the journal is named."""
        return f"{self.stream}#{self.seq}"

    @property
    def root(self) -> str:
        """Return the stream of the job or session that it belongs to."""
        return root_of(self.stream)


class Links:
    """Events, each with what belongs to it."""

    def __init__(self) -> None:
        self.entries: list[AccountEntry] = []
        self.outcomes: dict[tuple[str, str], AccountEntry] = {}
        """The ends of calls, by stream and invocation."""
        self.calls: dict[tuple[str, str], k.ToolInvocationStarted] = {}
        """Announced calls of tools, by the same."""
        self.questions: dict[str, AccountEntry] = {}
        self.answers: dict[str, list[AccountEntry]] = defaultdict(list)
        """Answers to questions; both by the question's identifier."""
        self.openings: dict[str, AccountEntry] = {}
        """The first events of jobs and sessions, by stream."""
        self.endings: dict[str, AccountEntry] = {}
        self.salted: set[str] = set()
        """Jobs and sessions with a subject: digests of their values are not told, for small values can be guessed."""
        self.last: dict[str, AccountEntry] = {}
        """The last event of each stream."""
        self._sessions: dict[str, str] = {}
        """The session of each call that has a stream of its own."""
        self._requests: dict[str, list[AccountEntry]] = defaultdict(list)
        """Questions to models, by stream."""

    def take(self, entry: AccountEntry) -> None:
        """Link an event; those of a stream come in their order, and openings first."""
        self.entries.append(entry)
        self.last[entry.stream] = entry
        match entry.payload:
            case k.ToolInvocationStarted() as call:
                self.calls[entry.stream, call.invocation_id] = call
            case k.ToolInvocationFinished() | k.CommandCommitted() as ended:
                self.outcomes[entry.stream, ended.invocation_id] = entry
            case k.ConfirmationRequested() as question if entry.row.case != "wait":
                self.questions[question.confirmation] = entry
            case k.ConfirmationDecided() as answer if entry.row.case != "wait":
                self.answers[answer.confirmation].append(entry)
            case k.CommandStarted():
                self._requests[entry.stream].append(entry)
            case k.JobCreated() | k.SessionOpened():
                self.openings[entry.stream] = entry
            case k.CallOpened() as opened:
                self._sessions[entry.stream] = f"session/{opened.session}"
            case k.JobCompleted() | k.JobFailed() | k.JobCancelled():
                self.endings[entry.stream] = entry
            case _:
                pass
        if entry.root not in self.salted and entry.payload is not None and is_salted(entry.payload):
            self.salted.add(entry.root)

    def digest(self, entry: AccountEntry) -> str:
        """Return the digest of a call's arguments, as `sha256:…`; empty: there is none, or it may not be told."""
        recorded: str = getattr(entry.payload, "arguments_hash", "") or getattr(entry.payload, "request_hash", "")
        return "" if entry.root in self.salted else recorded

    def outcome(self, entry: AccountEntry) -> AccountEntry | None:
        """Return how an announced call ended; None: whether it happened is unknown."""
        return self.outcomes.get((entry.stream, getattr(entry.payload, "invocation_id", "")))

    def effect(self, entry: AccountEntry) -> Effect:
        """Return what is known of the effect of a call of a tool: in the end, or as an event of its end says."""
        call = self.calls.get((entry.stream, getattr(entry.payload, "invocation_id", "")))
        ended = entry if isinstance(entry.payload, k.ToolInvocationFinished) else self.outcome(entry)
        outcome = ended.payload if ended is not None else None
        if call is None:
            return READS
        return effect_of(call, outcome if isinstance(outcome, k.ToolInvocationFinished) else None)

    def principal(self, entry: AccountEntry) -> str:
        """Return who made a call, or for whom the job runs."""
        opening = self.opening(entry)
        return getattr(entry.payload, "principal", "") or getattr(opening and opening.payload, "principal", "")

    def opening(self, entry: AccountEntry) -> AccountEntry | None:
        """Return the first event of the job or session that an event belongs to."""
        return self.openings.get(self._sessions.get(entry.root, entry.root))


class ExportAccount(Links):
    """Everything in a package, linked."""

    def __init__(self, package: IO[bytes]) -> None:
        super().__init__()
        self._zip = zipfile.ZipFile(package)
        self.manifest: dict[str, Any] = json.loads(self._zip.read("manifest.json"))
        self.scope: str = self.manifest["scope"]
        self.states: dict[str, str] = {
            value["sha256"]: value["state"] for value in json.loads(self._zip.read("proof.json"))["values"]
        }
        self.sessions: list[RecorderSession] = []
        """The sessions of a recorder that signed meanwhile. No package holds them: they tell of all streams."""
        for entry in _entries(self._zip):
            self.take(entry)

    def value(self, inline: Any, ref: Any) -> Any:
        """Return a value that stands in an event or beside it, decoded; UNSET: it is not there, or no more."""
        if isinstance(inline, msgspec.Raw):
            return msgspec.json.decode(inline)
        if not isinstance(ref, BlobRef) or self.states.get(ref.digest) != "kept":
            return msgspec.UNSET
        return msgspec.json.decode(reveal(ref, self._zip.read(path_of(ref.digest))))

    def state_of(self, inline: Any, ref: Any) -> str:
        """Return the state of a value, in the words of packages; `absent`: there was none."""
        if isinstance(inline, msgspec.Raw):
            return "kept"
        return self.states.get(ref.digest, "missing") if isinstance(ref, BlobRef) else "absent"

    def arguments(self, entry: AccountEntry) -> bytes | None:
        """Return the arguments of a call in canonical form; None: they may not be told, or are not there."""
        payload = entry.payload
        if entry.root in self.salted or not isinstance(payload, k.ToolInvocationStarted | k.GateRefused):
            return None
        value = self.value(payload.args, payload.args_blob)
        return canonical(value) if isinstance(value, dict) else None

    def model(self, entry: AccountEntry) -> k.CommandStarted | None:
        """Return the question whose answer asked for a call; None: no model did, or its answer is gone."""
        call = getattr(entry.payload, "call_id", "")
        for request in reversed(self._requests[entry.stream] if call else ()):
            ended = self.outcome(request) if request.seq < entry.seq else None
            answer = ended.payload if ended is not None else None
            if isinstance(answer, k.CommandCommitted) and isinstance(request.payload, k.CommandStarted):
                value = self.value(answer.result, answer.result_blob)
                if value is not msgspec.UNSET and json.dumps(call) in json.dumps(value):
                    return request.payload
        return None

    @property
    def streams(self) -> Iterator[list[AccountEntry]]:
        """Give the events of each stream."""
        by_stream: dict[str, list[AccountEntry]] = defaultdict(list)
        for entry in self.entries:
            by_stream[entry.stream].append(entry)
        yield from by_stream.values()

    def in_time(self) -> list[AccountEntry]:
        """Return the events of all streams by time; those of a stream stay in its order, whatever its clock did."""
        latest: dict[str, int] = {}
        times: list[tuple[int, int, AccountEntry]] = []
        for number, entry in enumerate(self.entries):
            latest[entry.stream] = max(entry.at, latest.get(entry.stream, 0))
            times.append((latest[entry.stream], number, entry))
        return [entry for _, _, entry in sorted(times)]  # no two have the same number


class _Line(msgspec.Struct, gc=False):
    """A line of events.ndjson."""

    stream: str
    seq: int
    kind: str
    at: int
    hash: str
    data: str


_line: Final = msgspec.json.Decoder(_Line).decode


def _entries(package: zipfile.ZipFile) -> Iterator[AccountEntry]:
    for text in package.read("events.ndjson").splitlines():
        line = _line(text)
        yield entry_of(line.stream, line.seq, line.kind, line.at, line.hash, line.data.encode())


def entry_of(stream: str, seq: int, kind: str, at: int, chain: str, data: bytes) -> AccountEntry:
    """Return an event with its row of the table; `chain` is in hexadecimal."""
    payload = _decoded(kind, data)
    return AccountEntry(stream, seq, kind, at, chain, payload, row_of(kind, stream, payload))


def _decoded(kind: str, data: bytes) -> Payload | None:
    try:
        return decode(kind, data)
    except RemitError:
        return None  # its chain holds: it is told as an event of an unknown kind


def is_salted(payload: Payload) -> bool:
    """Say whether a value of an event is about a subject: its digest is not told."""
    values = (getattr(payload, name) for name in _blobs(type(payload)))
    return any(isinstance(ref, BlobRef) and bool(ref.key) for ref in values)


@cache
def _blobs(kind: type[Payload]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name.endswith("_blob"))


class FormError(Exception):
    """The check stops here: a verdict, its code, and a sentence."""

    def __init__(self, verdict: Verdict, code: str, words: str = "") -> None:
        super().__init__(words or code)
        self.answer = CheckAnswer(verdict, code, words or code)


def invalid(code: str, words: str = "") -> FormError:
    """Return the error that says that a file is not what it claims."""
    return FormError("invalid", code, words)


def not_signed(number: int, noun: str) -> FormError:
    """Return that a file holds so many records of its form, and no signature."""
    return undecidable(
        "not_signed", f"{counted(number, noun)} of this form; nothing signs them: export a package as well"
    )


def undecidable(code: str, words: str = "") -> FormError:
    """Return the error that says that a file cannot be judged."""
    return FormError("undecidable", code, words)


def strict(data: bytes, where: str, code: str = "") -> Any:
    """Return JSON that two readers take alike. Raise FormError (invalid), with `code` if there is one."""
    try:
        return read_json(data, where)
    except RejectedError as error:
        reason = "duplicate_member" if "twice" in str(error) else error.reason
        raise invalid(code or reason, str(error)) from None


def canonical_of(value: Any, code: str) -> bytes:
    """Return the canonical form. Raise FormError (undecidable) with `code` if there is none."""
    try:
        return canonical(value)
    except NotCanonicalError as error:
        raise undecidable(code, str(error)) from None


_TIME: Final = (1980, 1, 1, 0, 0, 0)
_NAME: Final = regex(r"(?:[A-Za-z0-9_-][A-Za-z0-9._:-]*/){0,2}[A-Za-z0-9_-][A-Za-z0-9._:-]*")
_MAX_BYTES: Final = 1 << 30
_LEVEL: Final = 1
"""Signatures and digests do not get smaller: more effort costs time alone."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return the zip of these files, in the order of their names."""
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, data, compresslevel=_LEVEL)
    return whole.getvalue()


class Bundle:
    """The files of a zip or of a folder."""

    def __init__(self, place: Path | IO[bytes]) -> None:
        self._folder = place if isinstance(place, Path) and place.is_dir() else None
        self._files: dict[str, bytes] = {}
        if self._folder is not None:
            return
        try:
            with zipfile.ZipFile(place) as archive:
                self._unpack(archive)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise undecidable("container_invalid", f"it is not a zip: {error}") from None

    @property
    def names(self) -> list[str]:
        """The names of the files of a zip."""
        return [*self._files]

    def has(self, name: str) -> bool:
        """Say whether there is such a file."""
        return (self._folder / name).is_file() if self._folder is not None else name in self._files

    def read(self, name: str) -> bytes:
        """Return a file. Raise FormError if it is not there."""
        if not _NAME.fullmatch(name) or ".." in name or not self.has(name):
            raise invalid("file_missing", f"there is no {name}")
        return (self._folder / name).read_bytes() if self._folder is not None else self._files[name]

    def _unpack(self, archive: zipfile.ZipFile) -> None:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        whole = sum(entry.file_size for entry in entries)
        if len(set(names)) != len(names) or whole > _MAX_BYTES or not all(map(_NAME.fullmatch, names)):
            raise invalid("container_invalid", "the zip holds a file twice, a strange name, or too much")
        for entry in entries:
            self._files[entry.filename] = archive.read(entry)
