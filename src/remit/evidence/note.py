"""Checkpoints as signed notes, in the formats of c2sp.org: signed-note, tlog-checkpoint, tlog-cosignature (Ed25519).

    origin                                     names the log; also the name of its key
    size of the tree, decimal
    root of the tree, base64
                                               an empty line
    — name base64(id of the key:4 ‖ signature:64)            of the log, over the first three lines
    — name base64(id of the key:4 ‖ time:8 ‖ signature:64)   of a witness, over "cosignature/v1", the time and them

id = the first 4 bytes of SHA-256(name ‖ 0A ‖ type:1 ‖ public key:32). Pure: a function that checks a signature over a
message by a public key is handed in.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, Literal, NamedTuple

LOG: Final = 1
WITNESS: Final = 4
_ID, _TIME, _SIGNATURE, _KEY = 4, 8, 64, 32
_LOG_NAME: Final = re.compile(r"[^\s+]{1,200}")
_NOTE: Final = re.compile("((?:[^\n]+\n){3})\n((?:— [^\n]+\n){1,32})")
_BODY: Final = re.compile("([^\n]+)\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n")
_LINE: Final = re.compile(r"— (\S+) ([A-Za-z0-9+/]+=*)\n")


class NoteKey(NamedTuple):
    """A public key, and whose it is."""

    name: str
    public: bytes
    type: Literal[1, 4] = LOG

    @property
    def id(self) -> bytes:
        """The bytes that stand before its signatures."""
        return sha256(self.name.encode() + b"\n" + bytes([self.type]) + self.public).digest()[:_ID]

    def __str__(self) -> str:
        """Return the key as C2SP writes it: `name+id+base64(type ‖ public key)`."""
        return f"{self.name}+{self.id.hex()}+{encoded(bytes([self.type]) + self.public)}"

    @classmethod
    def parse(cls, text: str) -> NoteKey:
        """A key that `str` wrote. Raises ValueError."""
        name, _, rest = text.strip().partition("+")
        ident, _, data = rest.partition("+")
        raw = decoded(data)
        if not is_name(name) or len(raw) != 1 + _KEY or raw[0] not in {LOG, WITNESS}:
            raise ValueError("it is not name+id+key of an Ed25519 key")
        key = cls(name, raw[1:], WITNESS if raw[0] == WITNESS else LOG)
        if key.id.hex() != ident:
            raise ValueError("its id is not that of its name and key")
        return key


class Checkpoint(NamedTuple):
    """The state of a log: so many leaves, under this root."""

    origin: str
    size: int
    root: bytes

    @property
    def body(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n"

    def signed(self, lines: Iterable[str]) -> str:
        """The note with these lines of signatures."""
        return "\n".join([self.body, *lines, ""])


class Note(NamedTuple):
    """A checkpoint, and the lines of those who signed it."""

    checkpoint: Checkpoint
    lines: tuple[str, ...]

    @property
    def signers(self) -> list[str]:
        """Whose signatures it says that it has, each as the beginning of a public key: `name+id`."""
        matches = [_LINE.fullmatch(f"{line}\n") for line in self.lines]
        return [f"{match[1]}+{decoded(match[2])[:_ID].hex()}" for match in matches if match is not None]

    def signed_by(self, key: NoteKey, check: Callable[[bytes, bytes, bytes], bool]) -> int | None:
        """Return when a key signed it, in seconds since the Unix epoch, 0 of a log's key; None: it did not."""
        return signed_by(self.checkpoint, self.lines, key, check)


def signed_by(
    checkpoint: Checkpoint, lines: Iterable[str], key: NoteKey, check: Callable[[bytes, bytes, bytes], bool]
) -> int | None:
    """As Note.signed_by."""
    for line in lines:
        match = _LINE.fullmatch(f"{line}\n")
        if match is None or match[1] != key.name:
            continue
        data = decoded(match[2])
        time, signature = (data[_ID : _ID + _TIME], data[_ID + _TIME :]) if key.type == WITNESS else (b"", data[_ID:])
        at = int.from_bytes(time, "big")
        if (
            data[:_ID] == key.id
            and len(signature) == _SIGNATURE
            and check(signature, text_of(checkpoint, key, at), key.public)
        ):
            return at
    return None


def text_of(checkpoint: Checkpoint, key: NoteKey, at: int = 0) -> bytes:
    """Return what a key signs of a checkpoint; `at`: when a witness signs, in seconds since the Unix epoch."""
    return (f"cosignature/v1\ntime {at}\n" * (key.type == WITNESS) + checkpoint.body).encode()


def notes_in(text: str) -> list[Note]:
    """Every note in a text, such as a file that they were appended to; what is torn is left out."""
    notes: list[Note] = []
    for match in _NOTE.finditer(text.lstrip("\ufeff")):
        body = _BODY.fullmatch(match[1])
        if body is not None and is_name(body[1]):
            checkpoint = Checkpoint(body[1], int(body[2]), decoded(body[3]))
            notes.append(Note(checkpoint, tuple(match[2].splitlines())))
    return notes


def is_name(text: str) -> bool:
    """Return whether a log or a witness can be called so."""
    return _LOG_NAME.fullmatch(text) is not None and text.isprintable()


def encoded(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def decoded(text: str) -> bytes:
    """The bytes that base64 stands for; empty: it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
