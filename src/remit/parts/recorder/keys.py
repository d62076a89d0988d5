"""The keys of a recorder: the first one signs; those that follow are former ones, which hand the log over to it.

Stamps over checkpoints by a time-stamping authority (RFC 3161): that one was there at a time by another's clock.

A stamp is the authority's whole answer as DER, over the SHA-256 of the text that a checkpoint signs, so that
`openssl ts -verify` reads it too. `rfc3161_client` is an extra, and imported once something is stamped or checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from remit.clock import SECOND
from remit.errors import SettingsError
from remit.evidence.note import LOG, WITNESS, Checkpoint, NoteKey, encoded, is_name, text_of
from remit.journal.signing_key import KeyPlace
from remit.settings.places import data_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest, TimeStampResponse

    from remit.parts.recorder.settings import RecorderSettings


_TIME_BYTES: Final = 8


class RecordSigner:
    """A private key, and the name that it signs under."""

    def __init__(self, name: str, private: Ed25519PrivateKey, kind: Literal[1, 4] = LOG) -> None:
        self._private = private
        self.key = NoteKey(name, private.public_key().public_bytes_raw(), kind)

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


async def load_signers(own: RecorderSettings, environ: Mapping[str, str], folder: Path) -> list[RecordSigner]:
    """The key to sign with, then former ones. Raises SettingsError."""
    return _signers(own, await key_place(own, environ).load(environ, folder))


def known_signers(own: RecorderSettings, environ: Mapping[str, str]) -> list[RecordSigner]:
    """The same, without running a program; empty if there is no key, or a program prints it. Raises SettingsError."""
    return _signers(own, key_place(own, environ).known(environ))


def key_of(text: str, setting: str) -> NoteKey:
    """A public key that a setting or an option names. Raises SettingsError."""
    try:
        return NoteKey.parse(text)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}", remedy="Copy it whole, as it was printed: name+id+key.") from error


def _signers(own: RecorderSettings, keys: list[Ed25519PrivateKey]) -> list[RecordSigner]:
    if keys and not is_name(own.origin):
        raise SettingsError("recorder.origin: a space or a + stands in it", remedy="Write, say, example.com/agents.")
    return [RecordSigner(own.origin, key) for key in keys]


TYPE: Final = "application/timestamp-query"
_GRANTED: Final = frozenset({0, 1})


def can_read() -> bool:
    """Say whether what reads stamps is installed."""
    return find_spec("rfc3161_client") is not None


def query(checkpoint: Checkpoint) -> TimeStampRequest:
    """Return what an authority is asked. Raise SettingsError without the extra."""
    try:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise _missing(error) from error
    return TimestampRequestBuilder().data(checkpoint.body.encode()).hash_algorithm(HashAlgorithm.SHA256).build()


def check_answer(
    request: TimeStampRequest, answer: bytes, checkpoint: Checkpoint, roots: Sequence[Certificate]
) -> None:
    """Check an authority's answer, by certificates if there are any. Raise OSError."""
    try:
        response = _response(answer)
    except ValueError as error:
        raise OSError(f"its answer cannot be read: {error}") from error
    if response.status not in _GRANTED:
        raise OSError(f"it refuses: {', '.join(response.status_string) or f'status {response.status}'}")
    if response.tst_info.nonce != request.nonce or not is_over(answer, checkpoint):
        raise OSError("its stamp is not for this checkpoint")
    if roots and stamped_at(answer, checkpoint, roots) is None:
        raise OSError("its stamp does not follow from recorder.stamp_roots")


def is_over(stamp: bytes, checkpoint: Checkpoint) -> bool:
    """Say whether a stamp is for a checkpoint, of any authority. Raise SettingsError without the extra."""
    try:
        return _response(stamp).tst_info.message_imprint.message == _digest(checkpoint)
    except ValueError:
        return False


def stamped_at(stamp: bytes, checkpoint: Checkpoint, roots: Sequence[Certificate]) -> int | None:
    """Return the time that a stamp gives, in microseconds since the Unix epoch; None if no root leads to it."""
    from rfc3161_client import VerificationError, VerifierBuilder  # noqa: PLC0415 - an extra

    try:
        response = _response(stamp)
        VerifierBuilder(roots=list(roots)).build().verify(response, _digest(checkpoint))
    except (VerificationError, ValueError):
        return None
    return round(response.tst_info.gen_time.timestamp() * SECOND)


def roots_in(place: str, setting: str) -> list[Certificate]:
    """Return the certificates in a PEM file that a setting names; none without one. Raise SettingsError."""
    if not place:
        return []
    try:
        from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise _missing(error) from error
    try:
        return load_pem_x509_certificates(Path(place).read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or "it holds no certificate in PEM"
        raise SettingsError(
            f"{setting}: {place}: {reason}", remedy="Name the root certificates of the authority."
        ) from error


def _digest(checkpoint: Checkpoint) -> bytes:
    return sha256(checkpoint.body.encode()).digest()


def _response(data: bytes) -> TimeStampResponse:
    try:
        from rfc3161_client import decode_timestamp_response  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise _missing(error) from error
    return decode_timestamp_response(data)


def _missing(error: ImportError) -> SettingsError:
    return SettingsError(f"{error.name} is not installed", remedy="Install it: pip install 'remit[audit]'.")
