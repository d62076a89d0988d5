"""Ed25519 signatures (RFC 8032, 5.1.7), checked with integers alone: some milliseconds each, and no dependency.

Remit itself checks with `cryptography`. Nothing here is secret, so no time that it takes tells anything.
"""

from __future__ import annotations

import hashlib

_PRIME = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_CURVE = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_ONE = pow(2, (_PRIME - 1) // 4, _PRIME)
_SIGN = 1 << 255
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


def is_valid(signature: bytes, message: bytes, public: bytes) -> bool:
    """Return whether a signature is the key's over a message."""
    point, scalar = _point(public), int.from_bytes(signature[_KEY_BYTES:], "little")
    if point is None or len(signature) != _SIGNATURE_BYTES or scalar >= _ORDER:
        return False
    digest = int.from_bytes(hashlib.sha512(signature[:_KEY_BYTES] + public + message).digest(), "little") % _ORDER
    x, y, z, _ = _plus(_times(scalar, _BASE), _times(digest, (_PRIME - point[0], point[1], 1, _PRIME - point[3])))
    inverse = pow(z, -1, _PRIME)
    x, y = x * inverse % _PRIME, y * inverse % _PRIME
    return (y | (x & 1) * _SIGN).to_bytes(_KEY_BYTES, "little") == signature[:_KEY_BYTES]


def _point(data: bytes) -> tuple[int, int, int, int] | None:
    """Return the point that 32 bytes stand for, in extended coordinates; None: they stand for none."""
    number = int.from_bytes(data, "little")
    y = number & ~_SIGN
    if len(data) != _KEY_BYTES or y >= _PRIME:
        return None
    square = (y * y - 1) * pow(_CURVE * y * y + 1, -1, _PRIME) % _PRIME
    x = pow(square, (_PRIME + 3) // 8, _PRIME)
    if x * x % _PRIME != square:
        x = x * _ROOT_OF_MINUS_ONE % _PRIME
    is_odd = number >= _SIGN
    if x * x % _PRIME != square or (x == 0 and is_odd):
        return None
    x = _PRIME - x if x & 1 != is_odd else x
    return x, y, 1, x * y % _PRIME


def _plus(point: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Return the sum of two points (5.1.4)."""
    a = (point[1] - point[0]) * (other[1] - other[0]) % _PRIME
    b = (point[1] + point[0]) * (other[1] + other[0]) % _PRIME
    c = 2 * point[3] * other[3] * _CURVE % _PRIME
    d = 2 * point[2] * other[2] % _PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _PRIME, g * h % _PRIME, f * g % _PRIME, e * h % _PRIME


def _times(scalar: int, point: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _plus(total, point)
        point, scalar = _plus(point, point), scalar >> 1
    return total


_BASE = _point((4 * pow(5, -1, _PRIME) % _PRIME).to_bytes(_KEY_BYTES, "little")) or (0, 1, 1, 0)
