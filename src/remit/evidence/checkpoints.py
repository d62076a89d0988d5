"""Signed checkpoints in a package: proof that its streams stood in a recorder's log once that was signed.

checkpoints.json names, for each log, its checkpoints as signed notes (c2sp.org/tlog-checkpoint), the smallest first,
each with the proof that it begins as the one before; and for each stream the leaf that says how far it reached, with
the proof that the smallest one holds it (RFC 6962). A stamp of an authority (RFC 3161) stands in a file of its own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any, NamedTuple

from remit.evidence.ed25519 import is_valid
from remit.evidence.note import WITNESS, Checkpoint, Note, NoteKey, decoded, notes_in
from remit.evidence.proofs import is_leaf, is_prefix, leaf_of
from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import canonical, read_json

CHECKPOINTS = "checkpoints.json"
_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - Python 3.9 knows no datetime.UTC
_NO_KEY = "no checkpoint in the package is signed by a key that you gave"


class SignedLog(NamedTuple):
    """The log of a recorder, as far as a package shows it."""

    origin: str
    leaves: int
    """Leaves of the smallest checkpoint, which holds those of the package."""
    events: int
    """Events of the package that it covers."""
    keys: str
    """`given`: a key that the caller gave signed it. `named`: its key was not given, so no signature was checked."""
    cosigned_at: str = ""
    """When a witness whose key the caller gave cosigned it, by its clock; empty: none did."""
    stamps: tuple[str, ...] = ()
    """Files of stamps in the package; whether an authority made them is not checked here."""

    def words(self) -> str:
        """Return it as a part of a sentence."""
        proof = "signed by a key that you gave" if self.keys == "given" else "not checked: give its key with --key"
        events = f"{self.events} event" if self.events == 1 else f"{self.events} events"
        parts = [f"{events} under a checkpoint of {self.origin} over {self.leaves} leaves, {proof}"]
        if self.cosigned_at:
            parts.append(f"cosigned at {self.cosigned_at}")
        parts += [f"{name} was not checked: use openssl ts" for name in self.stamps]
        return ", ".join(parts)


class Checkpoints:
    """The checkpoints of a package, while its events are read."""

    def __init__(self, package: zipfile.ZipFile) -> None:
        is_there = CHECKPOINTS in package.namelist()
        self._logs: list[dict[str, Any]] = read_json(package.read(CHECKPOINTS), CHECKPOINTS) if is_there else []
        self._package = package
        self.chained: dict[tuple[str, int], bytes] = {
            (leaf["stream"], leaf["seq"]): b"" for log in self._logs for leaf in log["leaves"]
        }
        """The chain value of each event that a leaf names, once it was read."""
        self._strangers: dict[str, list[str]] = {}
        """The signers of a log in the place of the keys that the caller has of it, by origin."""
        self._covered: dict[str, int] = {}
        """By stream, the newest event under a checkpoint that a key of the caller signed."""

    def uncovered(self, streams: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Return the streams with events that no given key signed: how many are signed, and how many there are."""
        covered = {stream: (self._covered.get(stream, 0), events) for stream, events in streams.items()}
        return {stream: counts for stream, counts in sorted(covered.items()) if counts[0] < counts[1]}

    def check(self, keys: Sequence[NoteKey]) -> tuple[SignedLog, ...]:
        """Check proofs, and signatures by these keys, after all events. Raise RejectedError."""
        stamps = {name for name in self._package.namelist() if name.startswith("stamps/")}
        logs = tuple(self._check(log, keys, stamps) for log in self._logs)
        proven = {log.origin for log in logs if log.keys == "given"}
        for log in logs:
            if log.origin not in proven and (signers := self._strangers.get(log.origin)):
                reason = (
                    f"the log {log.origin} is signed by none of the keys that you gave, but by {', '.join(signers)}"
                )
                raise RejectedError("checkpoint_unproven", reason)
        if keys and not proven:
            raise RejectedError("checkpoint_unproven", _NO_KEY)
        if stamps:
            raise RejectedError("checkpoint_mismatch", f"no checkpoint names {min(stamps)}")
        return logs

    def _check(self, log: dict[str, Any], keys: Sequence[NoteKey], stamps: set[str]) -> SignedLog:
        rows, leaves = log["checkpoints"], log["leaves"]
        notes = [self._note(row) for row in rows]
        for number, row in enumerate(rows[1:], 1):
            _check_next(notes[number - 1].checkpoint, notes[number].checkpoint, row["proof"])
        origin, size, root = notes[0].checkpoint
        for leaf in leaves:
            self._check_leaf(leaf, size, root)
        own = [key for key in keys if key.name == origin and key.type != WITNESS]
        is_signed, cosigned = (
            bool(_signing_times(notes, own)),
            _signing_times(notes, [key for key in keys if key.type == WITNESS]),
        )
        if own and not is_signed and not cosigned:
            signers = list(dict.fromkeys(name for note in notes for name in note.signers))
            self._strangers[origin] = signers or ["nobody"]
        if is_signed or cosigned:
            for leaf in leaves:
                self._covered[leaf["stream"]] = max(leaf["seq"], self._covered.get(leaf["stream"], 0))
        files = [row["stamp"] for row in rows if "stamp" in row]
        stamps.difference_update(f"{name}.{ending}" for name in files for ending in ("checkpoint", "tsr"))
        return SignedLog(
            origin,
            size,
            events=sum({leaf["stream"]: leaf["seq"] for leaf in leaves}.values()),
            keys="given" if is_signed or cosigned else "named",
            cosigned_at=f"{_BEGINNING + timedelta(seconds=min(cosigned)):%Y-%m-%dT%H:%M:%SZ}" if cosigned else "",
            stamps=tuple(f"{name}.tsr" for name in files),
        )

    def _note(self, row: dict[str, Any]) -> Note:
        notes = notes_in(row["note"])
        if len(notes) != 1 or notes[0].checkpoint.signed(notes[0].lines) != row["note"]:
            raise RejectedError("form_invalid", f"{CHECKPOINTS} holds a text that is not one signed note")
        if "stamp" in row:
            body = self._package.read(f"{row['stamp']}.checkpoint")
            is_over = sha256(body).digest() in self._package.read(f"{row['stamp']}.tsr")
            if body != notes[0].checkpoint.body.encode() or not is_over:
                raise RejectedError("checkpoint_mismatch", f"{row['stamp']}.tsr is not over its checkpoint")
        return notes[0]

    def _check_leaf(self, leaf: dict[str, Any], size: int, root: bytes) -> None:
        stream, seq = leaf["stream"], leaf["seq"]
        chained = self.chained[stream, seq]
        if not chained:
            reason = f"event {seq} of {stream} is signed, and is not in the package: it was cut"
            raise RejectedError("checkpoint_mismatch", reason)
        hashes = [decoded(text) for text in leaf["proof"]]
        if not is_leaf(leaf_of(canonical([stream, seq, chained.hex()])), leaf["index"], size, root, hashes):
            reason = f"event {seq} of {stream} is not the one that was signed"
            raise RejectedError("checkpoint_mismatch", reason)


def _check_next(old: Checkpoint, new: Checkpoint, proof: list[str]) -> None:
    hashes = [decoded(text) for text in proof]
    is_next = is_prefix(old.size, old.root, new.size, new.root, hashes)
    if old.origin != new.origin or old.size >= new.size or not is_next:
        reason = f"the checkpoint over {new.size} leaves does not continue the one over {old.size}"
        raise RejectedError("checkpoint_mismatch", reason)


def _signing_times(notes: Sequence[Note], keys: Sequence[NoteKey]) -> list[int]:
    """Return when these keys signed; 0 for keys of logs."""
    times = [note.signed_by(key, is_valid) for note in notes for key in keys]
    return [at for at in times if at is not None]
