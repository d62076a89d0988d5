"""Web Push: notices on the devices of people, each encrypted for its browser.

    the page /devices ──a browser's endpoint and keys──> push/DIGEST of the endpoint ──> a message for each device

The key by which this server proves itself to push services follows from a secret of the environment, so that every
process of one journal has the same. A message is sealed for the browser that asked for it (RFC 8291, in the form of
RFC 8188, aes128gcm), and proves who sends it (RFC 8292). Only services that are known, or that `api` of a target names,
are sent anything: an endpoint is what a browser says.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from remit.clock import SECOND
from remit.parts.notify.kinds import PushSubscribed
from remit.parts.notify.method import post
from remit.parts.notify.sender import AttemptEnd
from remit.parts.notify.target import push_secret
from remit.randomness import salt
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.parts.notify.sender import Notice
    from remit.parts.notify.target import NotifyTarget

_CURVE: Final = ec.SECP256R1()
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_RECORD: Final = 4_096
_DAY_S: Final = 86_400
_HOURS_S: Final = 12 * 3_600
_GONE: Final = (404, 410)
_OK: Final = 300
_AUTH: Final = 16
_BODY: Final = 1_700
"""Bytes of a text that is sent: push services take 4,096 of all, and JSON writes quotes and backslashes as two."""


def server_key(secret: str) -> ec.EllipticCurvePrivateKey:
    """The key that follows from a secret."""
    digits = HKDF(SHA256(), 48, None, b"remit web push").derive(secret.encode())
    return ec.derive_private_key(int.from_bytes(digits, "big") % (_ORDER - 1) + 1, _CURVE)


def public_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Its public key, as a point."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def key_of(target: NotifyTarget, environ: Mapping[str, str]) -> ec.EllipticCurvePrivateKey:
    """The key of a target. Raises SettingsError."""
    return server_key(push_secret(target, environ))


def sealed(data: bytes, browser: bytes, auth: bytes, key: ec.EllipticCurvePrivateKey, salted: bytes) -> bytes:
    """Seal a message for a browser by its public key and secret; key and salt serve once. Raises ValueError."""
    shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, browser))
    public = public_of(key)
    secret = HKDF(SHA256(), 32, auth, b"WebPush: info\0" + browser + public).derive(shared)
    content = HKDF(SHA256(), 16, salted, b"Content-Encoding: aes128gcm\0").derive(secret)
    nonce = HKDF(SHA256(), 12, salted, b"Content-Encoding: nonce\0").derive(secret)
    head = salted + _RECORD.to_bytes(4, "big") + bytes([len(public)]) + public
    return head + AESGCM(content).encrypt(nonce, data + b"\2", None)


def proof(endpoint: str, key: ec.EllipticCurvePrivateKey, about: str, now_s: int) -> str:
    """The header by which a server proves who sends; `about` leads to who runs it."""
    import jwt  # noqa: PLC0415 - an extra, for who sends to devices

    parts = urlsplit(endpoint)
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now_s + _HOURS_S, "sub": about}
    return f"vapid t={jwt.encode(claims, key, algorithm='ES256')}, k={public_text(key)}"


def _origin(url: str) -> str:
    """Return the console's address alone: a push service learns no question."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def text_of(data: bytes) -> str:
    """Bytes as browsers write keys."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of(text: str) -> bytes:
    """The same read. Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def public_text(key: ec.EllipticCurvePrivateKey) -> str:
    """Its public key, as browsers write it."""
    return text_of(public_of(key))


def are_keys(p256dh: str, auth: str) -> bool:
    """Return whether these are a browser's key and secret."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, bytes_of(p256dh))
        return len(bytes_of(auth)) == _AUTH
    except ValueError:
        return False


async def push(
    device: PushSubscribed, message: Notice, key: ec.EllipticCurvePrivateKey, now: int
) -> tuple[AttemptEnd, str]:
    """Send a message to a device, once; the reason why it takes no more, if its service says so, else empty."""
    body = "\n".join(message.lines()).encode()[:_BODY].decode(errors="ignore")
    path = urlsplit(message.url).path or "/inbox"
    notice = {"id": message.id, "title": message.title, "body": body, "path": path}
    once = ec.generate_private_key(_CURVE)
    data = sealed(msgspec.json.encode(notice), bytes_of(device.p256dh), bytes_of(device.auth), once, salt(16))
    headers = {
        "authorization": proof(device.endpoint, key, _origin(message.url) or "https://localhost", now // SECOND),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "topic": hashlib.sha256(message.id.encode()).hexdigest()[:32],
        "ttl": str(_DAY_S),
        "urgency": "high",
    }
    place = urlsplit(device.endpoint)
    try:
        status, _ = await post(device.endpoint, data, headers, secret=place.path)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        return AttemptEnd(ok=False, words=line(str(error)) or type(error).__name__), ""
    ended = f"its push service says that it is gone (HTTP {status})" if status in _GONE else ""
    return AttemptEnd(ok=status < _OK, words=f"{place.hostname} answers HTTP {status}"), ended
