"""The keys of a recorder: the first one signs; those that follow are former ones, which hand the log over to it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from remit.errors import SettingsError
from remit.evidence.note import LOG, WITNESS, Checkpoint, Key, encoded, is_name, text_of
from remit.journal.signing import KeyPlace
from remit.settings.places import data_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from remit.recorder.settings import RecorderSettings


_TIME_BYTES: Final = 8


class Signer:
    """A private key, and the name that it signs under."""

    def __init__(self, name: str, private: Ed25519PrivateKey, kind: Literal[1, 4] = LOG) -> None:
        self._private = private
        self.key = Key(name, private.public_key().public_bytes_raw(), kind)

    def line(self, checkpoint: Checkpoint, at: int = 0) -> str:
        """The line of the signature; `at`: when a witness signs, in seconds since the Unix epoch."""
        time = at.to_bytes(_TIME_BYTES, "big") if self.key.type == WITNESS else b""
        data = self.key.id + time + self._private.sign(text_of(checkpoint, self.key, at))
        return f"— {self.key.name} {encoded(data)}"

    def sign(self, text: bytes) -> str:
        """The signature over another text, as base64."""
        return encoded(self._private.sign(text))


def key_place(own: RecorderSettings, environ: Mapping[str, str]) -> KeyPlace:
    """Return where the key is: by default in a file of the user's own for each log."""
    file = None
    if not own.key and not own.key_command:
        file = data_folder(environ) / "recorder-keys" / f"{sha256(own.origin.encode()).hexdigest()[:40]}.pem"
    return KeyPlace("recorder", own.key, own.key_command, "Run `remit recorder key` to create it.", file)


async def load_signers(own: RecorderSettings, environ: Mapping[str, str], folder: Path) -> list[Signer]:
    """The key to sign with, then former ones. Raises SettingsError."""
    return _signers(own, await key_place(own, environ).load(environ, folder))


def known_signers(own: RecorderSettings, environ: Mapping[str, str]) -> list[Signer]:
    """The same, without running a program; empty if there is no key, or a program prints it. Raises SettingsError."""
    return _signers(own, key_place(own, environ).known(environ))


def key_of(text: str, setting: str) -> Key:
    """A public key that a setting or an option names. Raises SettingsError."""
    try:
        return Key.parse(text)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}", remedy="Copy it whole, as it was printed: name+id+key.") from error


def _signers(own: RecorderSettings, keys: list[Ed25519PrivateKey]) -> list[Signer]:
    if keys and not is_name(own.origin):
        raise SettingsError("recorder.origin: a space or a + stands in it", remedy="Write, say, example.com/agents.")
    return [Signer(own.origin, key) for key in keys]
