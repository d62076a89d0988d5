"""Anchors of AEL: what a log says of the records of an artifact, written into it and checked.

    anchors.json    the head of the log, signed by its key, and for each anchored record its place and proof

A record carries the hash of the one before it, so that an anchored one stands for all before it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.canonical import canonical
from remit.evidence.note import decoded
from remit.evidence.proofs import is_leaf, leaf_of
from remit.parts.audit.formats.account import canonical_of, invalid, strict, undecidable
from remit.parts.audit.formats.ael_record import TRACE

if TYPE_CHECKING:
    from remit.parts.audit.formats.account import Bundle
    from remit.parts.audit.formats.keys import PublicKey

FILE: Final = "anchors.json"
_ENTRY: Final = frozenset({"recorder", "run", "seq", "leaf", "index", "proof"})


class TreeHead(msgspec.Struct, frozen=True):
    """The state of the log, as it is signed."""

    size: int
    root: str
    """In hexadecimal."""
    signed: str
    """The text that is signed, as base64."""
    sig: str


class AnchorEntry(msgspec.Struct, frozen=True):
    """A hash that is in the log."""

    leaf: str
    index: int
    at: str
    """When the log took it."""
    proof: tuple[str, ...]


class LogAnswer(msgspec.Struct, frozen=True):
    """The answer of the log."""

    log: str
    tree_head: TreeHead
    proof: tuple[str, ...] = ()
    entries: tuple[AnchorEntry, ...] = ()


class AnchorHead(NamedTuple):
    """A record that may be anchored."""

    recorder: str
    run: str
    seq: int


def anchored(
    files: Mapping[str, bytes], prove: Callable[[Sequence[str]], LogAnswer], log_key: str, most: int
) -> dict[str, bytes]:
    """Return the files of an artifact with the anchors that a log has of it, those from before left out.

    `prove` is asked for so many hashes at most, the newest of each run; `log_key` is the fingerprint of the log's key.
    """
    manifest = json.loads(files["manifest.json"])
    whole = {name: data for name, data in files.items() if name != FILE}
    rows = [row for row in manifest["recorders"] if row["run"].startswith(TRACE)]
    heads = {leaf: head for row in rows for leaf, head in [*_heads(files[row["file"]])][-(most // len(rows)) :]}
    proof = prove([*heads]) if heads else None
    manifest.pop("anchor", None)
    if proof is not None and proof.entries:
        head = proof.tree_head
        entries = [
            {
                **heads[entry.leaf]._asdict(), "leaf": entry.leaf, "index": entry.index, "proof": [*entry.proof],
                "ext": {"remit": {"at": entry.at}},
            }
            for entry in proof.entries
        ]  # fmt: skip
        tree_head = {"size": head.size, "root": head.root, "signed": head.signed, "sig": head.sig}
        whole[FILE] = canonical({"log": proof.log, "tree_head": tree_head, "entries": entries})
        manifest["anchor"] = {"log": proof.log, "log_key": log_key, "file": FILE}
    return {**whole, "manifest.json": canonical(manifest)}


def _heads(lines: bytes) -> Iterator[tuple[str, AnchorHead]]:
    """Give the records that are registered, with their hashes: a checkpoint that follows calls, and the end."""
    is_new = False
    for line in lines.splitlines():
        payload = base64.urlsafe_b64decode(line.partition(b".")[0] + b"===")
        record = json.loads(payload)
        if record["type"] == "close" or (record["type"] == "heartbeat" and is_new):
            yield leaf_of(payload).hex(), AnchorHead(record["recorder"], record["run"], record["seq"])
        is_new = record["type"] == "activity" or (is_new and record["type"] != "heartbeat")


def check(
    bundle: Bundle, anchor: Mapping[str, Any], leaves: Mapping[AnchorHead, bytes], keys: Mapping[str, PublicKey]
) -> set[AnchorHead]:
    """Check the anchors of an artifact, given the hash of each of its records; return the records that have one."""
    if not bundle.has(str(anchor["file"])):
        raise undecidable("n", "the anchors that the manifest names are not there")
    data = bundle.read(str(anchor["file"]))
    anchors = strict(data, FILE, "n")
    head, key = anchors["tree_head"], keys.get(str(anchor["log_key"]).lower())
    if key is None:
        raise undecidable("n", f"you named no key {anchor['log_key']} of a log: use --issuer-keys")
    if canonical_of(anchors, "n") != data or not _is_signed(anchors["log"], head, key):
        raise invalid("n", "the head of the log is not what its key signed")
    anchored_heads = set[AnchorHead]()
    for entry in anchors["entries"]:
        place, leaf = AnchorHead(entry["recorder"], entry["run"], entry["seq"]), bytes.fromhex(entry["leaf"])
        proof = [bytes.fromhex(step) for step in entry["proof"]]
        if entry.keys() - {"ext"} != _ENTRY:
            raise invalid("n", "an anchor lacks a field, or has one more")
        if not is_leaf(leaf, entry["index"], head["size"], bytes.fromhex(head["root"]), proof):
            raise invalid("o", "an anchor is not in the log")
        if leaves.get(place) != leaf:
            raise invalid("p", "an anchored record is another one, or missing")
        anchored_heads.add(place)
    if not anchored_heads:
        raise invalid("o", "there are no anchors")
    return anchored_heads


def _is_signed(log: str, head: Mapping[str, Any], key: PublicKey) -> bool:
    """Say whether the log's key signed this head, in canonical form."""
    text = decoded(head["signed"])
    signed = strict(text, "the head of the log", "n")
    bare = {name: value for name, value in signed.items() if name != "ext"}
    is_same = bare == {"log": log, "root": head["root"], "size": head["size"]}
    return is_same and canonical_of(signed, "n") == text and key.verify(decoded(head["sig"]), text)
