"""The section `[serve]`."""

from __future__ import annotations

from typing import Annotated

from remit.settings.base import Base
from remit.settings.section import About, Section


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ServeSettings(Section, frozen=True):
    """How `remit serve` and `remit mcp serve --http` listen."""

    tls_cert: Annotated[
        str,
        About("The certificate to serve HTTPS with, a PEM file that holds its chain. Empty: HTTP.", resolve=_path),
    ] = ""
    tls_key: Annotated[
        str,
        About("Its private key, a PEM file without a password. Empty: it stands in `tls_cert`.", resolve=_path),
    ] = ""
    without_tls: Annotated[
        bool,
        About(
            "Whether to listen beyond this machine without a certificate, as behind a proxy that serves HTTPS. "
            "Tokens and answers then cross the network as plain text."
        ),
    ] = False
