"""Hands checkpoints to a witness, and with its cosignatures to the second place: a file, a program, a URL.

An authority that stamps them with the time is asked less often.

The newest one goes; if a place was away, it gets the one that is the newest then, which stands for those before. What
fails is tried again, and jobs never wait for it.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from remit.clock import SECOND
from remit.errors import ChainBrokenError, ProviderError, RemitError
from remit.evidence.merkle import Tree, proof
from remit.evidence.note import Note, encoded, signed_by
from remit.journal.blobs import Packed, pack
from remit.journal.signing_key import is_signature
from remit.parts.recorder.keys import TYPE, check_answer, key_of, query, roots_in
from remit.parts.recorder.log import grown
from remit.process.child import ChildProcess
from remit.process.environment import environment
from remit.redact import line
from remit.settings.expansion import expand, sendable
from remit.threads import Threads

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.parts.recorder.settings import RecorderSettings

_SILENCE_S: Final = 10.0
"""Seconds that a place may say nothing, and that the last checkpoint of a process may take."""
_ANSWER: Final = 16 * 1024
_OK, _CONFLICT = 200, 409
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class PublishedState(msgspec.Struct, frozen=True):
    """What a witness cosigned last, and an authority stamped."""

    cosigned: int = 0
    """Leaves of that checkpoint."""
    cosignatures: tuple[str, ...] = ()
    stamped: int = 0
    """Leaves of the checkpoint that was stamped."""
    stamp: Packed = Packed(msgspec.UNSET, msgspec.UNSET, ())


class _Newest(msgspec.Struct, frozen=True):
    note: Note
    tree: Tree


class Publisher:
    """Publishes the checkpoints of one process."""

    def __init__(self, journal: Journal, own: RecorderSettings, environ: Mapping[str, str], folder: Path) -> None:
        self._journal, self._own, self._environ, self._folder = journal, own, environ, folder
        self._newest: _Newest | None = None
        self._new = asyncio.Event()
        self.published = PublishedState()
        self._tree: Tree | None = None
        """The log as the witness holds it; None: not known."""
        self._from = -1
        self._hashes: list[bytes] = []
        """Of the leaves after the first `_from` ones, which are not more than the witness holds."""
        self._threads = Threads(1)
        self._stamped_at = 0
        self._delivered: dict[str, int] = {}
        self.failures: dict[str, str] = {}
        """By place, why it did not take the newest checkpoint."""

    @property
    def text(self) -> str:
        """The newest checkpoint as a signed note, with the cosignatures that it has; empty: there is none."""
        newest = self._newest
        if newest is None:
            return ""
        cosigned = self.published.cosigned == newest.tree.size
        lines = (*newest.note.lines, *(self.published.cosignatures if cosigned else ()))
        return newest.note.checkpoint.signed(lines)

    def offer(self, note: Note, tree: Tree, hashes: Sequence[bytes]) -> None:
        """Publish a checkpoint soon; `hashes` are those of the leaves that it added."""
        self._newest = _Newest(note, tree)
        missing = tree.size - self._from - len(self._hashes)
        if self._from < 0 or missing > len(hashes):  # the first one, or others signed meanwhile
            self._tree, self._from, self._hashes = None, tree.size - len(hashes), list(hashes)
        elif missing > 0:
            self._hashes += hashes[-missing:]
        self._new.set()

    async def keep(self, pause_s: float, tell: Callable[[str], object]) -> None:
        """Publish what is offered, and what failed again; `tell` is told what fails, after each round."""
        while True:
            await self._new.wait()
            self._new.clear()
            await self.publish()
            tell("; ".join(f"{place}: {reason}" for place, reason in self.failures.items()))
            if self.failures:
                await self._journal.clock.sleep(pause_s)
                self._new.set()

    async def publish(self, *, last: bool = False) -> None:
        """Hand the newest checkpoint to each place that has not got it; `last`: have it stamped, too."""
        newest, own = self._newest, self._own
        if newest is None:
            return
        if own.witness:
            await self._try("the witness", newest, lambda: self._witness(newest))
        due = self._journal.clock.now() - self._stamped_at >= own.stamp_seconds * SECOND
        if own.stamp_url and (due or last):
            await self._try("the stamps", newest, lambda: self._request_stamp(newest))
        text = self.text
        if own.file:
            await self._try("the file", newest, lambda: self._threads.run(lambda: _append(Path(own.file), text)))
        if own.command:
            await self._try("the command", newest, lambda: self._run(own.command, text))
        if own.url:
            await self._try("the URL", newest, lambda: self._post(text))

    async def _try(self, place: str, newest: _Newest, hand: Callable[[], Awaitable[None]]) -> None:
        if self._delivered.get(place) == newest.tree.size:
            return
        try:
            async with asyncio.timeout(_SILENCE_S):
                await hand()
        except TimeoutError:
            self.failures[place] = "no answer in time"
        except (OSError, http.client.HTTPException, ValueError, RemitError, ProviderError) as error:
            self.failures[place] = line(getattr(error, "message", "") or str(error) or type(error).__name__)
        else:
            self._delivered[place] = newest.tree.size
            self.failures.pop(place, None)

    async def _run(self, command: Sequence[str], text: str) -> None:
        child = ChildProcess()
        try:
            await child.start(command, env=environment(self._environ, {}), cwd=str(self._folder))
            child.write(text.encode())
            child.close_stdin()
            status = await child.ended()
        finally:
            await child.close()
        if status != 0:
            raise OSError(f"{child.why_ended} {child.shown(child.err)}".strip())

    async def _post(self, text: str) -> None:
        token = expand(self._own.token, self._environ, "recorder.token")
        headers = {"Authorization": sendable(f"Bearer {token}", "recorder.token")} if token else {}
        url = expand(self._own.url, self._environ, "recorder.url")
        if token and urlsplit(url).scheme != "https" and urlsplit(url).hostname not in _HERE:
            raise ValueError("recorder.token is sent to another machine by https only")
        status, answer = await _asked(self._threads, url, text.encode(), headers)
        if not _OK <= status < 300:  # noqa: PLR2004 - the class of answers that means success
            raise OSError(f"HTTP {status} {answer[:200].decode(errors='replace')}")

    async def _request_stamp(self, newest: _Newest) -> None:
        """Have the newest checkpoint stamped. Raises OSError, ValueError or RemitError."""
        own, checkpoint, stamp_query = self._own, newest.note.checkpoint, query(newest.note.checkpoint)
        roots = roots_in(own.stamp_roots, "recorder.stamp_roots")
        url = expand(own.stamp_url, self._environ, "recorder.stamp_url")
        status, answer = await _asked(self._threads, url, stamp_query.as_bytes(), {"Content-Type": TYPE})
        if status != _OK:
            raise OSError(f"HTTP {status} {answer[:200].decode(errors='replace')}")
        check_answer(stamp_query, answer, checkpoint, roots)
        stamp = pack(msgspec.json.encode(encoded(answer)))
        self.published = msgspec.structs.replace(self.published, stamped=checkpoint.size, stamp=stamp)
        self._stamped_at = self._journal.clock.now()

    # --- the witness

    async def _witness(self, newest: _Newest) -> None:
        """Have the newest checkpoint cosigned. Raises OSError or ChainBrokenError."""
        url = expand(self._own.witness, self._environ, "recorder.witness").rstrip("/") + "/add-checkpoint"
        for _ in range(2):
            old, end = self._tree or Tree(), newest.tree.size - self._from
            hashes = self._hashes[old.size - self._from : end] if old.size else []
            lines = [f"old {old.size}", *(encoded(digest) for digest in proof(old, hashes))]
            body = "\n".join(lines) + "\n\n" + newest.note.checkpoint.signed(newest.note.lines)
            status, answer = await _asked(self._threads, url, body.encode(), {})
            if status == _OK:
                self._cosigned(newest, answer.decode())
                self._tree, self._from, self._hashes = newest.tree, newest.tree.size, self._hashes[end:]
                return
            size = answer.decode(errors="replace").strip()
            if status == _CONFLICT and size == str(old.size) == str(newest.tree.size):
                raise OSError(
                    f"it refuses the checkpoint: it holds another one over {size} leaves: the log has two ends"
                )
            if status != _CONFLICT or not size.isdecimal() or int(size) == old.size:
                raise OSError(f"it refuses the checkpoint: HTTP {status} {size[:200]}")
            await self._catch_up(int(size), newest)
        raise OSError("it was given another checkpoint at the same moment")

    async def _catch_up(self, size: int, newest: _Newest) -> None:
        """Find out what the log was when the witness last saw it."""
        if size > newest.tree.size:
            reason = f"it holds a checkpoint over {size} leaves, the journal has {newest.tree.size}: it was put back"
            raise ChainBrokenError(reason, remedy="Restore the newest journal; or begin a new log (recorder.origin).")
        log = await grown(self._journal, self._own.origin, size)
        if log is not None:
            self._tree, self._from, self._hashes = log.since, size, log.hashes

    def _cosigned(self, newest: _Newest, answer: str) -> None:
        lines = tuple(answer.splitlines())
        if self._own.witness_key:
            key = key_of(self._own.witness_key, "recorder.witness_key")
            if signed_by(newest.note.checkpoint, lines, key, is_signature) is None:
                raise OSError("its answer is not signed by recorder.witness_key")
        self.published = msgspec.structs.replace(self.published, cosigned=newest.tree.size, cosignatures=lines)


def _append(place: Path, text: str) -> None:
    """Add a note to a file. A line before it ends what a crash may have torn."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(f"\n{text}".encode())
        file.flush()
        os.fsync(descriptor)


async def _asked(threads: Threads, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """The status and body of the answer to a POST. Raises OSError, ValueError or http.client.HTTPException."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is no URL of http or https")
    place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = (
        http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_SILENCE_S, context=ssl.create_default_context()
        )
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=_SILENCE_S)
    )

    def ask() -> tuple[int, bytes]:
        connection.request("POST", place, body, {"Content-Type": "text/plain; charset=utf-8", **headers})
        response = connection.getresponse()
        return response.status, response.read(_ANSWER)

    try:
        return await threads.run(ask)
    finally:
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(2)
        connection.close()
