"""The sections `[serve]`, `[[clients]]` and `[readiness]`: a server, who may connect, and when it is ready."""

from typing import Annotated, ClassVar

import msgspec

from remit.settings import pictures
from remit.settings.address import url_or_empty
from remit.settings.base import Base
from remit.settings.section import About, Bytes, Section, Tables, Texts


def _path(path: str, base: Base) -> str:
    return str(base.path(path)) if path else ""


class ServeSettings(Section, frozen=True):
    """How `remit serve` and `remit mcp serve --http` listen."""

    tls_cert: Annotated[
        str,
        About("The certificate for HTTPS, a PEM file with its chain. Empty: HTTP.", resolve=_path),
    ] = ""
    tls_key: Annotated[
        str,
        About(
            "The certificate's private key, a PEM file without a password. Empty: `tls_cert` contains it.",
            resolve=_path,
        ),
    ] = ""
    without_tls: Annotated[
        bool,
        About(
            "Whether to listen beyond this machine without a certificate, behind a proxy that serves HTTPS. "
            "Without such a proxy, tokens and answers cross the network in plain text."
        ),
    ] = False
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=3_600)],
        About(
            "Seconds that a server that was told to stop goes on answering, while `/health` says 503 and each answer "
            "ends its connection: as long as a balancer takes to leave it alone."
        ),
    ] = 0
    queue_bytes: Annotated[
        Bytes,
        About(
            "Bytes that may wait to be written to the journal. Beyond that, requests that begin jobs, calls or tickets "
            "are refused (`JOURNAL_BUSY`)."
        ),
    ] = 33_554_432
    public_url: Annotated[
        str,
        About(
            "The base URL at which people reach the console, such as `https://remit.example.com`; notifications and "
            "dialogs of MCP clients link to it, and the server card names it. Empty: no links, and no card.",
            resolve=url_or_empty,
        ),
    ] = ""


class ClientSettings(Section, frozen=True):
    """Who may connect over HTTP: each `[[clients]]` table is one client."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "The clients, one `[[clients]]` table each, as explained below. A JSON array in the environment.",
            env=("REMIT_CLIENTS",),
            entry="remit.settings.client:Client",
            picture=pictures.clients,
        ),
    ] = ()


class ReadinessSettings(Section, frozen=True):
    """What has to be there."""

    required: Annotated[
        Texts,
        About(
            "Dependencies that must work for this process to be ready: `mcp` (all MCP servers) or `mcp.<server>`. "
            "An unknown name is never ready."
        ),
    ] = ()
