"""A witness: holds the newest checkpoint of each log that it knows, and cosigns only what continues it (tlog-witness).

It keeps one file a log, the note that it cosigned last, written before it answers. A checkpoint of fewer leaves, or of
others, is refused: so a log cannot be put back or told in two ways without the witness's key.

    POST /add-checkpoint    200 the cosignature · 400 not understood · 403 not signed by a known key · 404 unknown log
                            409 the size that it holds · 422 does not continue what it holds

The server answers for the log of anchors beside it, too: remit.parts.recorder.witness.

The log of anchors beside a witness: an append-only tree of hashes, whose heads it signs as AEL's checker reads them.

A recorder registers the hashes of its newest records while it records, and an export asks for their proofs later.
The log sees hashes alone. Every node of the tree is kept, so that a proof reads as many rows as it has hashes, squared.

    POST /anchors/register    200 the head, and the proof that it continues an older one · 400 · 403 not a known key
    POST /anchors/prove       200 the head, and the place and proof of each hash that is in the tree · 400
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple

import apsw
import msgspec

from remit.atomic import replace_file
from remit.canonical import canonical
from remit.clock import SECOND, isoformat
from remit.errors import UsageError
from remit.evidence.anchors import MOST, signed_text
from remit.evidence.merkle import Subtrees, Tree, half
from remit.evidence.note import Checkpoint, Note, NoteKey, decoded, encoded, notes_in
from remit.evidence.proofs import is_prefix, node_of
from remit.journal.signing_key import is_signature
from remit.parts.recorder.keys import RecordSigner
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock


_LONGEST: Final = 64 * 1024
_MOST_HASHES: Final = 63
_SILENCE_S: Final = 10.0
_HASH: Final = 32


class WitnessAnswer(NamedTuple):
    """The answer to a request."""

    status: HTTPStatus
    text: str
    content: str = "text/plain; charset=utf-8"


class Witness:
    """One witness; its requests may come from many threads."""

    def __init__(self, folder: Path, logs: Sequence[NoteKey], signer: RecordSigner, clock: Clock) -> None:
        self._folder, self._logs, self._signer, self._clock = folder, logs, signer, clock
        self._deciding = threading.Lock()

    def add(self, body: bytes) -> WitnessAnswer:
        """Decide about a request to add a checkpoint. Raises OSError if it cannot be kept."""
        head, _, rest = body.decode("utf-8", "replace").partition("\n\n")
        old, *proof = head.split("\n")
        notes, size = notes_in(rest), old.removeprefix("old ")
        hashes = [decoded(digest) for digest in proof]
        understood = old.startswith("old ") and size.isdecimal() and str(int(size)) == size and len(notes) == 1
        if not understood or len(hashes) > _MOST_HASHES or any(len(digest) != _HASH for digest in hashes):
            return WitnessAnswer(HTTPStatus.BAD_REQUEST, "it is not the size, the proof and the checkpoint of a log\n")
        note = notes[0]
        keys = [key for key in self._logs if key.name == note.checkpoint.origin]
        if not keys:
            return WitnessAnswer(HTTPStatus.NOT_FOUND, "no such log is known here\n")
        if all(note.signed_by(key, is_signature) is None for key in keys):
            return WitnessAnswer(HTTPStatus.FORBIDDEN, "the checkpoint is not signed by a key that is known here\n")
        if int(size) > note.checkpoint.size:
            return WitnessAnswer(HTTPStatus.BAD_REQUEST, "the old size is larger than the new one\n")
        with self._deciding:
            return self._decide(note, int(size), hashes)

    def place(self, origin: str) -> Path:
        """The file that holds the newest checkpoint of a log."""
        return self._folder / f"{sha256(origin.encode()).hexdigest()[:40]}.note"

    def _decide(self, note: Note, size: int, hashes: Sequence[bytes]) -> WitnessAnswer:
        new, held = note.checkpoint, self._held(note.checkpoint.origin)
        if size != held.size or (size == new.size and size and new.root != held.root):
            return WitnessAnswer(HTTPStatus.CONFLICT, f"{held.size}\n", "text/x.tlog.size")
        if not is_prefix(held.size, held.root, new.size, new.root, hashes):
            return WitnessAnswer(
                HTTPStatus.UNPROCESSABLE_ENTITY, "it does not continue the checkpoint that is held here\n"
            )
        line = self._signer.line(new, self._clock.now() // SECOND)
        replace_file(self.place(new.origin), new.signed((*note.lines, line)).encode())
        return WitnessAnswer(HTTPStatus.OK, f"{line}\n")

    def _held(self, origin: str) -> Checkpoint:
        try:
            text = self.place(origin).read_text(encoding="utf-8")
        except FileNotFoundError:
            return Checkpoint(origin, 0, b"")
        notes = notes_in(text)
        if (
            len(notes) != 1
            or notes[0].checkpoint.origin != origin
            or notes[0].signed_by(self._signer.key, is_signature) is None
        ):
            raise OSError(f"{self.place(origin)} is not what this witness wrote")
        return notes[0].checkpoint


Respond = Callable[[bytes], WitnessAnswer]
"""Returns the answer to the body of a request. Raises OSError if it cannot be kept."""


def server_of(paths: Mapping[str, Respond], host: str, port: int) -> ThreadingHTTPServer:
    """A server that answers what is posted to these paths, once it is told to serve. Raises OSError."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = f"remit-witness/{__version__}"
        sys_version = ""
        timeout: ClassVar[float | None] = _SILENCE_S

        def do_POST(self) -> None:
            """Answer a request."""
            length, respond = self.headers.get("Content-Length", ""), paths.get(self.path)
            if respond is None:
                self._answer(WitnessAnswer(HTTPStatus.NOT_FOUND, f"there is only {', '.join(paths)}\n"))
            elif not length.isdecimal() or int(length) > _LONGEST:
                self._answer(
                    WitnessAnswer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a length of 64 KiB at most is needed\n")
                )
            else:
                try:
                    self._answer(respond(self.rfile.read(int(length))))
                except OSError as error:
                    self.log_error("%s", error)
                    self._answer(WitnessAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "it cannot be kept here\n"))

        def _answer(self, answer: WitnessAnswer) -> None:
            data = answer.text.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content)
            self.send_header("Content-Length", str(len(data)))
            self.close_connection = answer.status is not HTTPStatus.OK
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            """Log what was refused; what was cosigned is kept."""
            if code is not HTTPStatus.OK:
                super().log_request(code, size)

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    return server


async def serve(
    paths: Mapping[str, Respond], host: str, port: int, stop: asyncio.Event, ready: Callable[[int], object]
) -> int:
    """Serve until `stop`; `ready` is told the port. Raises UsageError if it cannot listen there."""
    try:
        server = server_of(paths, host, port)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", remedy="Choose another --port."
        ) from error
    serving = threading.Thread(target=server.serve_forever, name="remit:witness", daemon=True)
    serving.start()
    try:
        ready(server.server_port)
        await stop.wait()
    finally:
        server.shutdown()
        server.server_close()
    return 0


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

    def __init__(self, place: Path, recorders: Sequence[bytes], signer: RecordSigner, clock: Clock) -> None:
        self._recorders = {sha256(public).hexdigest(): public for public in recorders}
        self._signer, self._clock = signer, clock
        self._using = threading.Lock()
        with _storing():
            self._db = apsw.Connection(str(place))
            self._db.execute(_OPEN + _SCHEMA).fetchall()

    def close(self) -> None:
        """Let another process open it."""
        self._db.close()

    def register(self, body: bytes) -> WitnessAnswer:
        """Add hashes, each once; say where the log stands then. Raise OSError if they cannot be kept."""
        try:
            registration = _read_registration(body)
        except msgspec.DecodeError as error:
            return WitnessAnswer(HTTPStatus.BAD_REQUEST, f"{error}\n")
        public = self._recorders.get(registration.key)
        if public is None or not is_signature(
            decoded(registration.signature), signed_text(registration.leaves), public
        ):
            return WitnessAnswer(HTTPStatus.FORBIDDEN, "it is not signed by a recorder that is known here\n")
        with self._using, _storing():
            with self._db:
                self._add(map(bytes.fromhex, registration.leaves))
            tree = _Stored(self._db)
            if registration.old > tree.size:
                return WitnessAnswer(HTTPStatus.CONFLICT, f"the log has {tree.size} leaves only\n")
            proof = [digest.hex() for digest in tree.prefix(registration.old, tree.size)]
            return self._said(tree, proof=proof)

    def prove(self, body: bytes) -> WitnessAnswer:
        """Return the place of each hash that is in the tree, with its proof. Raise OSError."""
        try:
            inquiry = _read_inquiry(body)
        except msgspec.DecodeError as error:
            return WitnessAnswer(HTTPStatus.BAD_REQUEST, f"{error}\n")
        with self._using, _storing():  # which no other process writes to
            tree = _Stored(self._db)
            rows = [(leaf, self._db.execute(_FIND, (bytes.fromhex(leaf),)).fetchone()) for leaf in inquiry.leaves]
            entries = [
                {
                    "leaf": leaf,
                    "index": row[0],
                    "at": isoformat(row[1]),
                    "proof": [digest.hex() for digest in tree.path(row[0], tree.size)],
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

    def _said(self, tree: _Stored, **members: Any) -> WitnessAnswer:
        """Return members with the head of the tree, signed now."""
        root = tree.root(0, tree.size) if tree.size else Tree().root
        head = {"log": self._signer.key.name, "root": root.hex(), "size": tree.size}
        signed = canonical({**head, "ext": {"remit": {"at": isoformat(self._clock.now())}}})
        tree_head = {"root": root.hex(), "size": tree.size, "signed": encoded(signed), "sig": self._signer.sign(signed)}
        whole = msgspec.json.encode({"log": head["log"], "tree_head": tree_head, **members})
        return WitnessAnswer(HTTPStatus.OK, whole.decode(), "application/json")


def open_anchors(folder: Path, recorders: Sequence[Path], signer: RecordSigner, clock: Clock) -> dict[str, Respond]:
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
            digest: bytes = self._db.execute(_NODE, (length.bit_length() - 1, begin // length)).get
            return digest
        middle = begin + half(length)
        return node_of(self.root(begin, middle), self.root(middle, end))


@contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise OSError(str(error)) from error
