"""The values beside the events of a package: which are named, and what follows from them."""

from __future__ import annotations

import zipfile
from typing import Any

from remit.evidence.ledger import LedgerEvent
from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import digest, read_json

_SALT = 32
STATES = ("kept", "erased", "expired", "missing", "redacted")


class References:
    """The values that events keep beside themselves, and what the events say of those in them."""

    def __init__(self) -> None:
        self.digests: dict[str, int] = {}
        """By digest, the size that the event says."""
        self.timed: set[str] = set()
        """Those that are kept for a time only."""
        self.items: set[str] = set()
        """Lists of evidence that hide what is about a subject."""
        self._arguments: list[tuple[str, str, str]] = []
        """Arguments beside their event: where, their digest, the digest of their canonical form."""

    def take(self, event: LedgerEvent) -> None:
        """Take in an event. Raise RejectedError if what follows from other facts in it does not."""
        text = event.text
        if "_blob" in text or "raw_pointer" in text or "\\u" in text:  # others keep nothing beside themselves
            self._walk(event.payload)
        if event.kind == "evidence_attached" and "items_blob" in event.payload:
            self.items.add(event.payload["items_blob"]["digest"])
        if event.kind != "tool_invocation_started":
            return
        payload, where = event.payload, f"{event.stream}: event {event.seq}"
        recorded, ref = payload.get("arguments_hash", ""), payload.get("args_blob")
        if recorded and isinstance(ref, dict) and not ref.get("key"):
            self._arguments.append((where, ref["digest"], recorded))
        elif recorded and "args" in payload and digest(payload["args"]) != recorded:
            raise RejectedError("event_contradicted", f"{where}: arguments_hash is not the digest of the arguments")

    def read_items(self, package: zipfile.ZipFile, paths: set[str]) -> None:
        """Take in the evidence that hidden lists name; those of `paths` are in the package."""
        for path in sorted(paths & {path_of(name) for name in self.items}):
            for item in read_json(package.read(path)[_SALT:], path):
                if item.get("kept_as"):
                    self.timed.add(item["kept_as"])

    def check_arguments(self, package: zipfile.ZipFile) -> None:
        """Compare the arguments that stand beside their events with the digests that the events say."""
        names = set(package.namelist())
        for where, ref, recorded in self._arguments:
            path = path_of(ref)
            if path in names and digest(read_json(package.read(path), path)) != recorded:
                raise RejectedError("event_contradicted", f"{where}: arguments_hash is not the digest of the arguments")

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


def check_values(
    package: zipfile.ZipFile, values: list[dict[str, Any]], refs: References, manifest: dict[str, Any], *, erased: bool
) -> dict[str, int]:
    """Check that each value is there, or that it is known why not; the files are those that the manifest names."""
    counts = dict.fromkeys(STATES, 0)
    paths = {path_of(value["sha256"]) for value in values if value["state"] == "kept"}
    files = {name: package.getinfo(name).file_size for name in package.namelist() if name.startswith("blobs/")}
    refs.read_items(package, paths & files.keys())
    for value in values:
        counts[value["state"]] += 1
        if reason := _why_not(value["sha256"], value["state"], refs, erased=erased, redacted=manifest["redacted"]):
            raise RejectedError("value_invalid", f"{value['sha256']} is said to be {value['state']}, and {reason}")
    if paths != files.keys() or not refs.digests.keys() <= {value["sha256"] for value in values}:
        raise RejectedError("value_invalid", "the values are not those that the events name")
    for name, size in refs.digests.items():
        if files.get(path_of(name), size) != size:
            raise RejectedError("value_invalid", f"{path_of(name)} has another size than its event says")
    for row in manifest["artifacts"]:
        if row["path"] in paths and row["path"] != path_of(row["sha256"]):
            raise RejectedError("value_invalid", f"{row['path']} is not what its name says")
    return {state: number for state, number in counts.items() if number}


def _why_not(name: str, state: str, refs: References, *, erased: bool, redacted: bool) -> str:
    """Say why a value cannot be in a state; empty: it can."""
    if state == "erased" and not erased:
        return "no erasure is on record"
    if state == "expired" and name not in refs.timed and not (redacted and refs.items and name not in refs.digests):
        return "it was to be kept for good"
    if state == "missing" and name in refs.digests:
        return "it was recorded"
    if state == "redacted" and not redacted:
        return "the package leaves nothing out"
    return ""


def path_of(name: str) -> str:
    """Return where the bytes of a digest lie in a package."""
    return f"blobs/{name.partition(':')[2]}"
