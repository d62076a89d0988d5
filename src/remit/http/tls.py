"""Serving over TLS: the certificate and key that the operator names."""

from __future__ import annotations

import ssl
from pathlib import Path

from remit.errors import SettingsError


def server_context(cert: str, key: str = "") -> ssl.SSLContext:
    """Return what encrypts the connections that are accepted, with TLS 1.2 or newer.

    `cert` is a PEM file with the certificate, then those between it and its authority; `key` is one with its private
    key, which may stand in `cert` as well. Raises SettingsError if they cannot be used; nothing of a key is quoted.
    """
    if not cert:
        raise SettingsError(
            "serve.tls_key is set without a certificate", remedy="Set serve.tls_cert to the certificate."
        )
    for path in filter(None, (cert, key)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise SettingsError(
                f"{path} cannot be read: {error.strerror or error}", remedy="Correct serve.tls_cert and serve.tls_key."
            ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password of its own, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(cert, key or None, password="")
    except (ssl.SSLError, OSError) as error:
        why = "the certificate and its key cannot be used"
        remedy = "Use a PEM certificate and its private key, without a password."
        raise SettingsError(f"{cert}: {why}: {getattr(error, 'reason', None) or error}", remedy=remedy) from error
    return context
