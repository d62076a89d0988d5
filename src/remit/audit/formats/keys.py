"""Keys: the one that signs what is exported, and those that others publish, by their names.

The name of an own key is its fingerprint: the SHA-256 of the 32 bytes of the public key, in hexadecimal.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.errors import SettingsError, UsageError
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from remit.audit.settings import AuditSettings

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_COMMAND_S: Final = 30
_LONGEST: Final = 64 * 1024
_HOW: Final = "Make one: openssl genpkey -algorithm ed25519 -out KEY.pem; chmod 600 KEY.pem; and set audit.key to it."
_EXTRA: Final = "Install Remit with its extra audit: pip install 'remit[audit]'."


class Signer:
    """Signs with the operator's key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        """Sign with `key`."""
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
        try:
            from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra, and 30 ms
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - the same
        except ImportError:
            raise UsageError("cryptography is not installed", remedy=_EXTRA) from None
        try:
            Ed25519PublicKey.from_public_bytes(self.point).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def fingerprint(public: bytes) -> str:
    """Return the name of a key."""
    return hashlib.sha256(public).hexdigest()


def signer(own: AuditSettings, environ: Mapping[str, str]) -> Signer:
    """Return who signs with the key that settings lead to. Raise SettingsError, which quotes nothing of the key."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - the same
    except ImportError:
        raise SettingsError("cryptography is not installed", remedy=_EXTRA) from None
    try:
        key = load_pem_private_key(_secret(own, environ), None)
    except (ValueError, TypeError):  # it may quote what stands there
        key = None  # said below
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError("audit.key: it is no Ed25519 key in PEM without a password", remedy=_HOW)
    return Signer(key)


def _secret(own: AuditSettings, environ: Mapping[str, str]) -> bytes:
    if own.key_command:
        try:
            ended = subprocess.run(  # noqa: S603 - the operator's own program, of settings that are trusted
                own.key_command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            why = f"audit.key_command: {type(error).__name__}"  # and no word of what it printed
            raise SettingsError(why, remedy="Run it in the project folder, and see.") from None
        return ended.stdout
    if not own.key:
        raise SettingsError("audit.key: there is no key to sign with", remedy=_HOW)
    if own.key.startswith("${"):
        return expand(own.key, environ, "audit.key").encode()
    try:
        with Path(own.key).open("rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SettingsError(f"{own.key}: others may read or change it", remedy=f"chmod 600 {own.key}")
            return file.read(_LONGEST)
    except OSError as error:
        raise SettingsError(f"{own.key}: {error.strerror}", remedy=_HOW) from None


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
    """Return an RFC 3339 time with its zone; None: it is none."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
