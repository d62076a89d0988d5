"""The check of AEL artifacts: signatures, form, order, ends, heartbeats, decisions and anchors. It grants no level.

One AEL artifact of two recorders: what both signed of the same traces, with the rule by which they are compared.

Each has signed its own lines, under its own key. A manifest is not signed, so anyone can put two artifacts together;
who does says who keeps the recorders apart, for no line can.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from remit.canonical import canonical, sha256
from remit.errors import UsageError
from remit.evidence.answer import CheckAnswer
from remit.evidence.proofs import leaf_of
from remit.evidence.verify import counted
from remit.parts.audit.formats import ael_anchors
from remit.parts.audit.formats.account import Bundle, FormError, canonical_of, invalid, strict, undecidable
from remit.parts.audit.formats.ael_anchors import FILE
from remit.parts.audit.formats.ael_record import TRACE, ZERO, derive
from remit.parts.audit.formats.keys import PublicKey, instant
from remit.regex import regex

_LINE: Final = regex(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_COMMON: Final = frozenset({"v", "type", "run", "recorder", "key", "seq", "prev", "ts"})
_OWN: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "open": (frozenset({"hmax", "htol"}), frozenset({"cp_nonce"})),
    "activity": (frozenset({"event"}), frozenset({"decision"})),
    "heartbeat": (frozenset(), frozenset()),
    "close": (frozenset({"count", "head"}), frozenset()),
}
"""By type, the fields that a record must have beside the common ones, and those that it may have."""


class _Record(NamedTuple):
    members: dict[str, Any]
    hash: str
    """The hash of its bytes, as the record after it names it."""
    leaf: bytes
    """The hash of its bytes, as a log has it."""


_Records = Sequence[_Record]
"""The records of a recorder."""


def check(bundle: Bundle, keys: Mapping[str, PublicKey]) -> CheckAnswer:
    """Check each run: its recorders one by one, then what they say of the same boundary. It grants no level."""
    manifest = strict(bundle.read("manifest.json"), "manifest.json")
    runs: dict[str, list[_Records]] = {name: [] for name in manifest["runs"]}
    if "counterparty" in manifest or len(runs) < len(manifest["runs"]):
        raise undecidable("not_checked_here", "it has a counterparty: use the reference checker")
    if {row["run"] for row in manifest["recorders"]} != runs.keys():
        raise undecidable("not_checked_here", "a run has no recorder: use the reference checker")
    for row in manifest["recorders"]:
        records = _records(bundle.read(row["file"]), row, keys)
        _check_order(records, row)
        _check_liveness(records)
        _check_decisions(records, bundle)
        runs[row["run"]].append(records)
    for recorders in runs.values():
        _check_boundary(recorders, manifest.get("correspondence") or {})
    count = sum(len(records) for recorders in runs.values() for records in recorders)
    words = f"{counted(count, 'record')} in {counted(len(runs), 'run')}"
    if "anchor" in manifest:
        words = f"{words}, {_check_anchors(bundle, manifest['anchor'], runs, keys)}"
    return CheckAnswer("valid", None, f"{words}; a level is for AEL's own checker to grant", count)


def _check_anchors(
    bundle: Bundle,
    anchor: Mapping[str, Any],
    runs: Mapping[str, Sequence[_Records]],
    keys: Mapping[str, PublicKey],
) -> str:
    """Check the anchors; say how many there are, and how many records came after the last one of their run."""
    every = [records for recorders in runs.values() for records in recorders]
    if any(records[0].members["key"] == str(anchor["log_key"]).lower() for records in every):
        raise invalid("u", "the key of the log is that of a recorder")
    leaves = {
        ael_anchors.AnchorHead(record.members["recorder"], record.members["run"], record.members["seq"]): record.leaf
        for records in every
        for record in records
    }
    heads = ael_anchors.check(bundle, anchor, leaves, keys)
    latest: dict[tuple[str, str], int] = {}
    for head in heads:
        latest[head.recorder, head.run] = max(head.seq, latest.get((head.recorder, head.run), 0))
    late = sum(head.seq > latest.get((head.recorder, head.run), head.seq) for head in leaves)
    return f"{counted(len(heads), 'anchor')}, {counted(late, 'record')} after the last"


def _check_boundary(recorders: Sequence[_Records], rule: Mapping[str, Any]) -> None:
    """Check that recorders of one run have keys of their own, and each event that the others have."""
    for recorder, other in combinations(recorders, 2):
        if recorder[0].members["key"] == other[0].members["key"]:
            raise invalid("l", "two recorders sign with the same key")
        if not rule.get("classes") or rule.get("match") != "id":
            raise undecidable("m", "it names no class of events that all recorders must have")
        if lone := _covered(recorder, rule["classes"]) ^ _covered(other, rule["classes"]):
            raise invalid("m", f"an event is on one side only: {min(lone)}")


def _covered(records: _Records, classes: Sequence[str]) -> set[str]:
    events = [record.members["event"] for record in records if record.members["type"] == "activity"]
    return {event["id"] for event in events if event["class"] in classes}


def _records(data: bytes, row: Mapping[str, Any], keys: Mapping[str, PublicKey]) -> _Records:
    records = list[_Record]()
    for line in data.decode("ascii", "replace").splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise invalid("a", "a line is not PAYLOAD.SIGNATURE")
        payload, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts.groups())
        try:
            name = str(msgspec.json.decode(payload)["key"])
        except (msgspec.DecodeError, KeyError, TypeError):
            raise invalid("a", "a record cannot be read") from None
        key = keys.get(name)
        if key is None:
            raise undecidable("a", f"you named no key {name}: use --issuer-keys")
        if not key.verify(signature, payload):
            raise invalid("a", "a signature is not over its record")
        record = strict(payload, "a record", "b")
        if canonical_of(record, "b") != payload:
            raise invalid("b", "a record is not in canonical form")
        _check_fields(record)
        if (row.get("key") or record["key"]) != record["key"]:
            raise invalid("l", "the manifest names another key than the records")
        records.append(_Record(record, sha256(payload).removeprefix("sha256:"), leaf_of(payload)))
    if not records:
        raise invalid("a", "a recorder has no records")
    return records


def _check_fields(record: Mapping[str, Any]) -> None:
    needs, may = _OWN.get(str(record.get("type")), (frozenset({"type"}), frozenset()))
    wanted = _COMMON | needs
    if not wanted <= record.keys() or record.keys() - wanted - may - {"ext"}:
        raise invalid("w", "a record lacks a field, or has one more")


def _check_order(records: _Records, row: Mapping[str, Any]) -> None:
    prev, earlier = ZERO, -1
    for number, (record, name, _) in enumerate(records):
        if record["run"] != row["run"] or record["recorder"] != row["id"] or record["seq"] <= earlier:
            raise invalid("d", "a record is of another run or recorder, or out of order")
        if record["prev"] != prev:
            raise invalid("e", "a record does not follow the one before it")
        if record["seq"] != number:
            raise invalid("g", "the numbers of records have a gap")
        prev, earlier = name, record["seq"]


def _check_liveness(records: _Records) -> None:
    opened, last = records[0].members, records[-1].members
    if opened["type"] != "open":
        raise invalid("f", "the first record does not open the run")
    if last["type"] == "close" and (last["count"] != len(records) or last["head"] != records[-2].hash):
        raise invalid("i", "the close names another number of records, or another head")
    limit = timedelta(seconds=opened["hmax"] + opened["htol"]) if opened["hmax"] else None
    times = [instant(record.members["ts"]) for record in records]
    for earlier, later in pairwise(times):
        if earlier is None or later is None or later < earlier:
            raise invalid("h", "a time goes back, or is not a time")
        if limit is not None and later - earlier > limit:
            raise invalid("h", "more time lies between two records than the run says")
    if last["type"] != "close":
        raise undecidable("j", "a run has no close: its session goes on, its process died, or its end was cut off")
    if limit is not None and not any(record.members["type"] == "heartbeat" for record in records):
        raise invalid("h", "no heartbeat is signed")


def _check_decisions(records: _Records, bundle: Bundle) -> None:
    for record in records:
        decision = record.members.get("decision")
        if decision is None:
            continue
        place = f"policy/{decision['policy']}.json"
        if not bundle.has(place):
            raise undecidable("R", "a policy that a decision names is not in the artifact")
        text = bundle.read(place)
        if (
            sha256(text) != f"sha256:{decision['policy']}"
            or derive(strict(text, place), decision["inputs"]) != decision["verdict"]
        ):
            raise invalid("R", "a verdict does not follow from its inputs")


Custody = Literal["same-host", "same-operator", "independent"]
_COVERED: Final = ("tool.call",)
_HOW: Final = "Name what `remit export SESSION --format ael` wrote at the other side of the same calls."


def join(own: Bundle, place: Path, custody: Custody) -> dict[str, bytes]:
    """Return the files of an artifact, and of that at `place` what is about runs of both. Raise UsageError."""
    try:
        return _join(own, Bundle(place), custody)
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror}", remedy=_HOW) from error
    except (FormError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{place} is not an artifact of AEL: {error}", remedy=_HOW) from error


def _join(own: Bundle, other: Bundle, custody: Custody) -> dict[str, bytes]:
    manifest: dict[str, Any] = json.loads(own.read("manifest.json"))
    manifest.pop("anchor", None)  # of one side alone: both are proven against one head of the log
    files = {name: own.read(name) for name in own.names if name != FILE}
    ids = {row["id"] for row in manifest["recorders"]}
    rows = [
        row for row in strict(other.read("manifest.json"), "manifest.json")["recorders"] if _is_shared(row, manifest)
    ]
    if not rows:
        raise UsageError("none of its runs is one of this job: it saw no call of it", remedy=_HOW)
    if clash := ids & {row["id"] for row in rows}:
        remedy = "Give each recorder a recorder.origin of its own."
        raise UsageError(f"both call a recorder {min(clash)}", remedy=remedy)
    files |= {f"recorders/{row['id']}.jsonl": other.read(f"recorders/{row['id']}.jsonl") for row in rows}
    files |= {name: other.read(name) for name in other.names if name.startswith("policy/")}
    manifest["recorders"] += [{name: row[name] for name in ("id", "run", "key", "file")} for row in rows]
    manifest |= {"custody": custody, "correspondence": {"classes": [*_COVERED], "match": "id"}}
    return {**files, "manifest.json": canonical(manifest)}


def _is_shared(row: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Return whether a run is one of both: a trace, for all other names mean something in one journal only."""
    is_shared = row["run"] in manifest["runs"] and row["run"].startswith(TRACE)
    return is_shared and row["file"] == f"recorders/{row['id']}.jsonl"
