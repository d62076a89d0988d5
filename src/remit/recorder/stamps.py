"""Stamps over checkpoints by a time-stamping authority (RFC 3161): that one was there at a time by another's clock.

A stamp is the authority's whole answer as DER, over the SHA-256 of the text that a checkpoint signs, so that
`openssl ts -verify` reads it too. `rfc3161_client` is an extra, and imported once something is stamped or checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.errors import SettingsError
from remit.evidence.note import Checkpoint

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest, TimeStampResponse

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


def check_answer(asked: TimeStampRequest, answer: bytes, checkpoint: Checkpoint, roots: Sequence[Certificate]) -> None:
    """Check an authority's answer, by certificates if there are any. Raise OSError."""
    try:
        response = _response(answer)
    except ValueError as error:
        raise OSError(f"its answer cannot be read: {error}") from error
    if response.status not in _GRANTED:
        raise OSError(f"it refuses: {', '.join(response.status_string) or f'status {response.status}'}")
    if response.tst_info.nonce != asked.nonce or not is_over(answer, checkpoint):
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
        why = getattr(error, "strerror", "") or "it holds no certificate in PEM"
        raise SettingsError(
            f"{setting}: {place}: {why}", remedy="Name the root certificates of the authority."
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
