"""Agent Evidence Level (AEL) v0.1: two runs, of decisions and of events, and one for each trace of calls over MCP.

Decisions stand in a run of their own because each record there says what it was decided from, so that all of the run
can be decided again. So do calls that leave for an MCP server, or came with a caller's trace: recorders on both sides
of that boundary name the run by the trace, and each call by the caller's span, without asking each other. A level is
what a checker grants, never what stands in here.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from remit.canonical import canonical
from remit.parts.audit.formats import ael_record
from remit.parts.audit.formats.account import AccountEntry, ExportAccount
from remit.parts.audit.formats.ael_record import POLICY, POLICY_HASH, STRANGE, Records, Stretch, activity_of, span_of
from remit.parts.audit.formats.keys import OperatorSigner
from remit.parts.audit.formats.table import DECISIONS, EVENTS
from remit.parts.audit.sessions import RecorderSession

_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


class _Run(NamedTuple):
    records: Records
    payloads: Sequence[bytes]


class CoveringCheckpoint(NamedTuple):
    """The checkpoint that covers an event first: the place of its session, and its own place in that."""

    session: int
    beat: int


def write(account: ExportAccount, signer: OperatorSigner) -> dict[str, bytes]:
    """Return the files of the artifact: two runs a session of a recorder, one a trace, and two for what none covers."""
    stretches, rest = divided(account.sessions, account.in_time())
    runs = list[_Run]()
    for session, beats in stretches:
        for kind in (DECISIONS, EVENTS) if any(entries for _, entries in beats) else ():
            records = _records(f"{session.stream}:{kind}", signer)
            runs.append(_Run(records, [*_of_session(records, account, Stretch(session, beats), kind)]))
    for trace, held in calls_of(stretches).items():
        crossed = covering(stretches, held, max(held).session)
        records = ael_record.begin(trace, crossed[0].session.origin, signer.name)
        payloads = [*ael_record.write(records, crossed)]
        if (closed := crossed[-1].session.closed) is not None:
            payloads.append(records.close(closed))
        runs.append(_Run(records, payloads))
    for kind in (DECISIONS, EVENTS) if rest or not runs else ():
        records = _records(f"{account.scope}:{kind}", signer)
        runs.append(_Run(records, [*_uncovered(records, account, rest, kind)]))
    manifest = {
        "ael_format": 1,
        "runs": [records.run for records, _ in runs],
        "recorders": [
            {
                "id": records.recorder,
                "run": records.run,
                "key": signer.name,
                "file": f"recorders/{records.recorder}.jsonl",
            }
            for records, _ in runs
        ],
        "coverage": "mediated-only",
        "custody": "same-process",
    }
    return {
        "manifest.json": canonical(manifest),
        f"policy/{POLICY_HASH}.json": canonical(POLICY),
        **{f"recorders/{records.recorder}.jsonl": b"".join(_lines(payloads, signer)) for records, payloads in runs},
    }


def divided(
    sessions: Iterable[RecorderSession], entries: Sequence[AccountEntry]
) -> tuple[list[Stretch], list[AccountEntry]]:
    """Divide events into those that each checkpoint was the first to cover while they were made, and the rest."""
    stretches, rest = list[Stretch](), list(entries)
    for session in sessions:
        beats = []
        for beat in session.beats:
            live, ends = (rest if beat.ends else ()), {stream: end.seq for stream, end in beat.ends.items()}
            taken = [entry for entry in live if session.began <= entry.at and entry.seq <= ends.get(entry.stream, 0)]
            if taken:
                places = {entry.place for entry in taken}
                rest = [entry for entry in rest if entry.place not in places]
            beats.append((beat, taken))
        stretches.append(Stretch(session, beats))
    return stretches, rest


def calls_of(stretches: Sequence[Stretch]) -> dict[str, dict[CoveringCheckpoint, list[AccountEntry]]]:
    """Return by trace its calls, where they are covered."""
    calls: dict[str, dict[CoveringCheckpoint, list[AccountEntry]]] = {}
    for place, (_, beats) in enumerate(stretches):
        for number, (_, entries) in enumerate(beats):
            for entry in entries:
                if (span := span_of(entry)) is not None:
                    calls.setdefault(span.trace, {}).setdefault(CoveringCheckpoint(place, number), []).append(entry)
    return calls


def covering(
    stretches: Sequence[Stretch], held: Mapping[CoveringCheckpoint, list[AccountEntry]], last: int
) -> list[Stretch]:
    """Return the sessions from the first that covers one of these calls to the last wanted, with these calls alone."""
    return [
        Stretch(
            session, [(beat, held.get(CoveringCheckpoint(place, number), ())) for number, (beat, _) in enumerate(beats)]
        )
        for place, (session, beats) in enumerate(stretches[: last + 1])
        if place >= min(held).session
    ]


def _records(run: str, signer: OperatorSigner) -> Records:
    return Records(run, STRANGE.sub("-", run.replace(":", "-")), signer.name)


def _of_session(records: Records, account: ExportAccount, stretch: Stretch, kind: str) -> Iterator[bytes]:
    """Write a run in which each heartbeat is a checkpoint that was signed then; closed if the session was."""
    session, beats = stretch
    yield records.open(session.began, session)
    for beat, entries in beats:
        yield from _activities(records, account, entries, lambda each: each.row.run == kind and span_of(each) is None)
        yield records.heartbeat(beat)
    if session.closed is not None:
        yield records.close(session.closed)


def _uncovered(records: Records, account: ExportAccount, rest: Sequence[AccountEntry], kind: str) -> Iterator[bytes]:
    """Write a run without heartbeats, for none was signed while `rest` happened; closed if the job has ended."""
    begins, ended = (rest or account.entries)[0], account.endings.get(account.scope)
    yield records.open(begins.at)
    yield from _activities(records, account, rest, lambda each: each.row.run == kind)
    if ended is not None:
        yield records.close(max(entry.at for entry in rest or [ended]))


def _activities(
    records: Records, account: ExportAccount, entries: Iterable[AccountEntry], takes: Callable[[AccountEntry], bool]
) -> Iterator[bytes]:
    for entry in filter(takes, entries):
        yield records.activity(entry.at, activity_of(account, entry))


def _lines(payloads: Iterable[bytes], signer: OperatorSigner) -> Iterator[bytes]:
    for payload in payloads:
        yield b".".join((_b64(payload), _b64(signer.sign(payload)))) + b"\n"


def _b64(data: bytes) -> bytes:
    return binascii.b2a_base64(data, newline=False).translate(_URL_SAFE, b"=")
