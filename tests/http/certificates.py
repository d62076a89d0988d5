"""Certificates for tests: an authority, and servers that it vouches for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from remit.clock import SECOND, SystemClock

_AUTHORITY: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of tests")])

_SIGNS: Final = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Certificate(NamedTuple):
    """The PEM files of a server."""

    cert: Path
    key: Path
    authority: Path
    """What a client has to trust."""


def certificate(folder: Path, name: str = "localhost", *, password: bytes = b"") -> Certificate:
    """A new authority, and a server's certificate of it for this machine; the key may have a password."""
    ours, theirs = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
    root = _begun(_AUTHORITY, ours.public_key()).add_extension(x509.BasicConstraints(True, None), True)
    root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(ours.public_key()), False)
    root = root.add_extension(_SIGNS, True)  # these three, Python asks for from 3.13 on
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ours.public_key())
    leaf = _begun(x509.Name([]), theirs.public_key()).add_extension(names, True).add_extension(issuer, False)
    guarded = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    found = Certificate(folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}-authority.pem")
    found.authority.write_bytes(root.sign(ours, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    found.cert.write_bytes(leaf.sign(ours, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    pkcs8 = serialization.PrivateFormat.PKCS8
    found.key.write_bytes(theirs.private_bytes(serialization.Encoding.PEM, pkcs8, guarded))
    return found


def _begun(subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(SystemClock().now() / SECOND, UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(_AUTHORITY).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
