"""The keys of a recorder: the first one signs; those that follow are former ones, which hand the log over to it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from remit.errors import SettingsError
from remit.journal.signing import KeyPlace
from remit.recorder.note import Key, Signer, is_name
from remit.settings.places import data_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from remit.recorder.settings import RecorderSettings


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
