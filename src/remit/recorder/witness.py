"""A witness: holds the newest checkpoint of each log that it knows, and cosigns only what continues it (tlog-witness).

It keeps one file a log, the note that it cosigned last, written before it answers. A checkpoint of fewer leaves, or of
others, is refused: so a log cannot be put back or told in two ways without the witness's key.

    POST /add-checkpoint    200 the cosignature · 400 not understood · 403 not signed by a known key · 404 unknown log
                            409 the size that it holds · 422 does not continue what it holds

The server answers for the log of anchors beside it, too: remit.recorder.anchors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from remit.atomic import replace_file
from remit.clock import SECOND
from remit.errors import UsageError
from remit.evidence.note import Checkpoint, Key, Note, decoded, notes_in
from remit.evidence.proofs import is_prefix
from remit.journal.signing import is_signature
from remit.recorder.keys import Signer
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock

_LONGEST: Final = 64 * 1024
_MOST_HASHES: Final = 63
_SILENCE_S: Final = 10.0
_HASH: Final = 32


class Answer(NamedTuple):
    """The answer to a request."""

    status: HTTPStatus
    text: str
    content: str = "text/plain; charset=utf-8"


class Witness:
    """One witness; its requests may come from many threads."""

    def __init__(self, folder: Path, logs: Sequence[Key], signer: Signer, clock: Clock) -> None:
        self._folder, self._logs, self._signer, self._clock = folder, logs, signer, clock
        self._deciding = threading.Lock()

    def add(self, body: bytes) -> Answer:
        """Decide about a request to add a checkpoint. Raises OSError if it cannot be kept."""
        head, _, rest = body.decode("utf-8", "replace").partition("\n\n")
        old, *proof = head.split("\n")
        notes, size = notes_in(rest), old.removeprefix("old ")
        hashes = [decoded(one) for one in proof]
        understood = old.startswith("old ") and size.isdecimal() and str(int(size)) == size and len(notes) == 1
        if not understood or len(hashes) > _MOST_HASHES or any(len(one) != _HASH for one in hashes):
            return Answer(HTTPStatus.BAD_REQUEST, "it is not the size, the proof and the checkpoint of a log\n")
        note = notes[0]
        keys = [key for key in self._logs if key.name == note.checkpoint.origin]
        if not keys:
            return Answer(HTTPStatus.NOT_FOUND, "no such log is known here\n")
        if all(note.signed_by(key, is_signature) is None for key in keys):
            return Answer(HTTPStatus.FORBIDDEN, "the checkpoint is not signed by a key that is known here\n")
        if int(size) > note.checkpoint.size:
            return Answer(HTTPStatus.BAD_REQUEST, "the old size is larger than the new one\n")
        with self._deciding:
            return self._decide(note, int(size), hashes)

    def place(self, origin: str) -> Path:
        """The file that holds the newest checkpoint of a log."""
        return self._folder / f"{sha256(origin.encode()).hexdigest()[:40]}.note"

    def _decide(self, note: Note, size: int, hashes: Sequence[bytes]) -> Answer:
        new, held = note.checkpoint, self._held(note.checkpoint.origin)
        if size != held.size or (size == new.size and size and new.root != held.root):
            return Answer(HTTPStatus.CONFLICT, f"{held.size}\n", "text/x.tlog.size")
        if not is_prefix(held.size, held.root, new.size, new.root, hashes):
            return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, "it does not continue the checkpoint that is held here\n")
        line = self._signer.line(new, self._clock.now() // SECOND)
        replace_file(self.place(new.origin), new.signed((*note.lines, line)).encode())
        return Answer(HTTPStatus.OK, f"{line}\n")

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


Respond = Callable[[bytes], Answer]
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
                self._answer(Answer(HTTPStatus.NOT_FOUND, f"there is only {', '.join(paths)}\n"))
            elif not length.isdecimal() or int(length) > _LONGEST:
                self._answer(Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a length of 64 KiB at most is needed\n"))
            else:
                try:
                    self._answer(respond(self.rfile.read(int(length))))
                except OSError as error:
                    self.log_error("%s", error)
                    self._answer(Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "it cannot be kept here\n"))

        def _answer(self, answer: Answer) -> None:
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
