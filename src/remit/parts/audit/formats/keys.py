"""Keys: the one that signs what is exported, and those that others publish, by their names.

The name of an own key is its fingerprint: the SHA-256 of the 32 bytes of the public key, in hexadecimal.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.errors import UsageError
from remit.journal.signing_key import KeyPlace, is_signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from remit.parts.audit.settings import AuditSettings

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_HOW: Final = "Make one: openssl genpkey -algorithm ed25519 -out KEY.pem; chmod 600 KEY.pem; and set audit.key to it."


class OperatorSigner:
    """Signs with the operator's key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public: bytes = key.public_key().public_bytes_raw()
        self.name = fingerprint(self.public)

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature over `message`."""
        return self._key.sign(message)

    def published(self) -> dict[str, bytes]:
        """Return the files that others check with, by name: a JWK set (RFC 7517), and the key for AEL's checker."""
        point = base64.urlsafe_b64encode(self.public).decode().rstrip("=")
        jwk = {"kty": "OKP", "crv": "Ed25519", "kid": self.name, "x": point, "use": "sig"}
        return {
            "keys.json": json.dumps({"keys": [jwk]}, indent=2).encode() + b"\n",
            f"{self.name}.pub": base64.b64encode(self.public) + b"\n",
        }


class PublicKey(NamedTuple):
    """A key that others sign with, and when it holds."""

    point: bytes
    """The 32 bytes of the key; empty: it is of another kind."""
    begins: str | None = None
    """The first instant at which it holds; None: it always did."""
    ends: str | None = None
    """The first instant at which it holds no more; None: none is known."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Say whether the signature is the key's over `message`."""
        return is_signature(signature, message, self.point)


def fingerprint(public: bytes) -> str:
    """Return the name of a key."""
    return hashlib.sha256(public).hexdigest()


async def load_signer(own: AuditSettings, environ: Mapping[str, str], folder: Path) -> OperatorSigner:
    """Return who signs with the key that settings lead to. Raise SettingsError, which quotes nothing of the key."""
    keys = await KeyPlace("audit", own.key, own.key_command, _HOW).load(environ, folder)
    return OperatorSigner(keys[0])


def read_keys(place: Path) -> Mapping[str, PublicKey]:
    """Return the keys that `place` publishes, by name: a JWK set, or a folder of files `FINGERPRINT.pub`.

    Other files of a folder are passed over. Raise UsageError for what cannot be read.
    """
    try:
        if place.is_dir():
            files = sorted(place.glob("*.pub"))
            return {file.stem: PublicKey(point) for file in files if (point := _point(file)) is not None}
        rows = json.loads(place.read_bytes())["keys"]
        return {str(row["kid"]): _of_jwk(row) for row in rows}
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror}", remedy="Name the issuer's key set.") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{place} is not a JWK set", remedy="Name the issuer's key set, or a folder of keys."
        ) from None


def _point(file: Path) -> bytes | None:
    try:
        point = base64.b64decode(file.read_bytes().strip(), validate=True)
    except ValueError:
        return None
    return point if len(point) == KEY_BYTES and fingerprint(point) == file.stem else None


def _of_jwk(row: Mapping[str, Any]) -> PublicKey:
    point = b""
    if row.get("kty") == "OKP" and row.get("crv") == "Ed25519":
        text = str(row.get("x", ""))
        point = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return PublicKey(point if len(point) == KEY_BYTES else b"", row.get("valid_from"), row.get("valid_until"))


def instant(text: object) -> datetime | None:
    """Return an RFC 3339 time with its zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
