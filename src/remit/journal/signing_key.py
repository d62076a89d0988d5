"""The Ed25519 keys that parts sign with: in a file, in the environment, or printed by a program; always as PEM.

Keys as PKCS #8, which `openssl genpkey -algorithm ed25519` makes too. `cryptography` is an extra, and imported once
something is signed or checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.errors import SettingsError
from remit.journal.seals import contents, keep_new
from remit.process.output import output_of
from remit.regex import regex
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PEM: Final = regex(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----\n?", re.DOTALL)
_HOW: Final = "Make one: openssl genpkey -algorithm ed25519 -out KEY.pem; chmod 600 KEY.pem."


class KeyPlace(NamedTuple):
    """The place that the settings `key` and `key_command` of a part lead to."""

    part: str
    key: str
    command: tuple[str, ...]
    how: str
    """The remedy where there is no key."""
    default: Path | None = None
    """The file if neither is set."""

    @property
    def file(self) -> Path | None:
        """The file of the key; None if the key is elsewhere, or nowhere."""
        if self.command or self.key.startswith("${"):
            return None
        return Path(self.key) if self.key else self.default

    async def load(self, environ: Mapping[str, str], folder: Path) -> list[Ed25519PrivateKey]:
        """Return the keys, the one in use first; a program runs in `folder`. Raise SettingsError."""
        if self.command:
            setting = f"{self.part}.key_command"
            return private_keys(await output_of(self.command, environ, folder, setting), setting)
        keys = self.known(environ)
        if not keys:
            reason = f"{self.file} does not exist" if self.file else "there is no key to sign with"
            raise SettingsError(f"{self.part}.key: {reason}", remedy=self.how)
        return keys

    def known(self, environ: Mapping[str, str]) -> list[Ed25519PrivateKey]:
        """Return the same without running a program; empty if there is no key, or a program prints it."""
        setting = f"{self.part}.key"
        if self.command:
            return []
        if self.key.startswith("${"):
            return private_keys(expand(self.key, environ, setting).encode(), setting)
        data = contents(self.file, setting) if self.file else b""
        return private_keys(data, str(self.file)) if data else []


def private_keys(data: bytes, where: str) -> list[Ed25519PrivateKey]:
    """Return the keys in PEM, one at least. Raise SettingsError, which quotes nothing of them."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _missing(error) from error
    try:
        loaded = [load_pem_private_key(block, None) for block in _PEM.findall(data)]
    except (ValueError, TypeError):  # it may quote what stands there
        loaded = []
    keys = [key for key in loaded if isinstance(key, Ed25519PrivateKey)]
    if not keys or len(keys) != len(loaded):
        raise SettingsError(f"{where}: it is no Ed25519 key in PEM without a password", remedy=_HOW)
    return keys


def make_key(place: Path) -> None:
    """Make a file with a new key, unless there is one. Raise SettingsError without `cryptography`, or OSError."""
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _missing(error) from error
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    keep_new(place, Ed25519PrivateKey.generate().private_bytes(*form))


def is_signature(signature: bytes, message: bytes, public: bytes) -> bool:
    """Say whether a signature over a message is that of a public key's 32 bytes. Raise SettingsError as `make_key`."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra, and 30 ms
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _missing(error) from error
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _missing(error: ImportError) -> SettingsError:
    return SettingsError(f"{error.name} is not installed", remedy="Install it: pip install 'remit[audit]'.")
