"""The log of anchors beside a witness: an append-only tree of hashes, whose heads it signs as AEL's checker reads them.

A recorder registers the hashes of its newest records while it records, and an export asks for their proofs later.
The log sees hashes alone. Every node of the tree is kept, so that a proof reads as many rows as it has hashes, squared.

    POST /anchors/register    200 the head, and the proof that it continues an older one · 400 · 403 not a known key
    POST /anchors/prove       200 the head, and the place and proof of each hash that is in the tree · 400
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import apsw
import msgspec

from remit.atomic import replace_file
from remit.canonical import canonical
from remit.clock import isoformat
from remit.errors import UsageError
from remit.evidence.anchors import MOST, signed_text
from remit.evidence.merkle import Subtrees, Tree, half
from remit.evidence.note import decoded, encoded
from remit.evidence.proofs import node_of
from remit.journal.signing import is_signature
from remit.recorder.witness import Answer, Respond

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.recorder.keys import Signer

_KEY: Final = 32
_OPEN: Final = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS leaf (hash BLOB PRIMARY KEY, place INTEGER NOT NULL, at INTEGER NOT NULL)
    WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS node (level INTEGER, place INTEGER, hash BLOB NOT NULL, PRIMARY KEY (level, place))
    WITHOUT ROWID, STRICT;
"""
_FIND: Final = "SELECT place, at FROM leaf WHERE hash = ?"
_NODE: Final = "SELECT hash FROM node WHERE level = ? AND place = ?"
_KEEP: Final = "INSERT INTO node VALUES (?, ?, ?)"
_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Hashes = Annotated[tuple[_Hash, ...], msgspec.Meta(max_length=MOST)]


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hashes of records to add, by who may."""

    key: _Hash
    """The fingerprint of the recorder's key."""
    leaves: _Hashes
    signature: str
    """The key's signature over the leaves, as base64."""
    old: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The size of a tree that the answer's is proven to continue."""


class Inquiry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hashes of records to prove."""

    leaves: _Hashes


_read_registration: Final = msgspec.json.Decoder(Registration).decode
_read_inquiry: Final = msgspec.json.Decoder(Inquiry).decode


class AnchorLog:
    """The log of one witness; its requests may come from many threads."""

    def __init__(self, place: Path, recorders: Sequence[bytes], signer: Signer, clock: Clock) -> None:
        self._recorders = {sha256(public).hexdigest(): public for public in recorders}
        self._signer, self._clock = signer, clock
        self._using = threading.Lock()
        with _storing():
            self._db = apsw.Connection(str(place))
            self._db.execute(_OPEN + _SCHEMA).fetchall()

    def close(self) -> None:
        """Let another process open it."""
        self._db.close()

    def register(self, body: bytes) -> Answer:
        """Add hashes, each once; say where the log stands then. Raise OSError if they cannot be kept."""
        try:
            asked = _read_registration(body)
        except msgspec.DecodeError as error:
            return Answer(HTTPStatus.BAD_REQUEST, f"{error}\n")
        public = self._recorders.get(asked.key)
        if public is None or not is_signature(decoded(asked.signature), signed_text(asked.leaves), public):
            return Answer(HTTPStatus.FORBIDDEN, "it is not signed by a recorder that is known here\n")
        with self._using, _storing():
            with self._db:
                self._add(map(bytes.fromhex, asked.leaves))
            tree = _Stored(self._db)
            if asked.old > tree.size:
                return Answer(HTTPStatus.CONFLICT, f"the log has {tree.size} leaves only\n")
            proof = [one.hex() for one in tree.prefix(asked.old, tree.size)]
            return self._said(tree, proof=proof)

    def prove(self, body: bytes) -> Answer:
        """Return the place of each hash that is in the tree, with its proof. Raise OSError."""
        try:
            asked = _read_inquiry(body)
        except msgspec.DecodeError as error:
            return Answer(HTTPStatus.BAD_REQUEST, f"{error}\n")
        with self._using, _storing():  # which no other process writes to
            tree = _Stored(self._db)
            rows = [(leaf, self._db.execute(_FIND, (bytes.fromhex(leaf),)).fetchone()) for leaf in asked.leaves]
            entries = [
                {
                    "leaf": leaf,
                    "index": row[0],
                    "at": isoformat(row[1]),
                    "proof": [one.hex() for one in tree.path(row[0], tree.size)],
                }
                for leaf, row in rows
                if row is not None
            ]
            return self._said(tree, entries=entries)

    def _add(self, hashes: Iterable[bytes]) -> None:
        size, now = _Stored(self._db).size, self._clock.now()
        for leaf in hashes:
            self._db.execute("INSERT OR IGNORE INTO leaf VALUES (?, ?, ?)", (leaf, size, now))
            if self._db.changes():
                self._grow(size, leaf)
                size += 1

    def _grow(self, place: int, node: bytes) -> None:
        """Keep a leaf, and each node above that is full with it."""
        level = 0
        self._db.execute(_KEEP, (level, place, node))
        while place & 1:
            node = node_of(self._db.execute(_NODE, (level, place - 1)).get, node)
            level, place = level + 1, place >> 1
            self._db.execute(_KEEP, (level, place, node))

    def _said(self, tree: _Stored, **members: Any) -> Answer:
        """Return members with the head of the tree, signed now."""
        root = tree.root(0, tree.size) if tree.size else Tree().root
        head = {"log": self._signer.key.name, "root": root.hex(), "size": tree.size}
        signed = canonical({**head, "ext": {"remit": {"at": isoformat(self._clock.now())}}})
        said = {"root": root.hex(), "size": tree.size, "signed": encoded(signed), "sig": self._signer.sign(signed)}
        whole = msgspec.json.encode({"log": head["log"], "tree_head": said, **members})
        return Answer(HTTPStatus.OK, whole.decode(), "application/json")


def open_anchors(folder: Path, recorders: Sequence[Path], signer: Signer, clock: Clock) -> dict[str, Respond]:
    """Return what answers for the log in a folder, by path; its public key is written there for AEL's checker.

    Raise UsageError for a file without a public key, or a folder that cannot be used.
    """
    try:
        points = [decoded(place.read_text(encoding="ascii").strip()) for place in recorders]
        if any(len(point) != _KEY for point in points):
            raise UsageError("--recorder: it is no public key", remedy="Name a FINGERPRINT.pub, 32 bytes as base64.")
        replace_file(
            folder / f"{sha256(signer.key.public).hexdigest()}.pub", f"{encoded(signer.key.public)}\n".encode()
        )
        log = AnchorLog(folder / "anchors.db", points, signer, clock)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{folder} cannot hold the log of anchors: {error}", remedy="Name a folder and files that can be used."
        ) from error
    return {"/anchors/register": log.register, "/anchors/prove": log.prove}


class _Stored(Subtrees):
    """The tree, of which every full subtree is kept."""

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(Tree(), ())
        self._db = db
        self.size: int = db.execute("SELECT coalesce(max(place) + 1, 0) FROM node WHERE level = 0").get

    def root(self, begin: int, end: int) -> bytes:
        length = end - begin
        if not length & (length - 1) and not begin % length:
            found: bytes = self._db.execute(_NODE, (length.bit_length() - 1, begin // length)).get
            return found
        middle = begin + half(length)
        return node_of(self.root(begin, middle), self.root(middle, end))


@contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise OSError(str(error)) from error
