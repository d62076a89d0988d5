"""The clients that the settings name: those of `[[clients]]`, then those of `[[mcp.clients]]`, its old name.

A client that may connect over HTTP, as the operator wrote it down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from remit.errors import SettingsError
from remit.http.access import SCOPES, Access, Scope
from remit.http.grants import Grant, rivals
from remit.http.guard import Token, digest_of
from remit.http.urls import is_issuer
from remit.regex import regex
from remit.settings.expansion import expand, sendable
from remit.settings.model import Settings

_TOOLS: Final = regex(r"[A-Za-z0-9_.*?-]+")
_SHA256: Final = regex(r"[0-9a-f]{64}")


class ClientTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[clients]]` table; one of `token`, `sha256` and `issuer` is set."""

    name: str = ""
    """The name where it is listed and revoked; empty: as its principal."""
    principal: str
    """The principal that its calls are recorded and judged as; several clients may share one.

    With `issuer`, claims fill the places in it, such as `okta:{sub}`.
    """
    token: str = ""
    """The bearer token it sends; `${NAME}` takes it from our own environment."""
    sha256: str = ""
    """The SHA-256 of its token in hexadecimal, so that no file or variable holds the token itself."""
    issuer: str = ""
    """The URL of an issuer, in the place of a token: bearers of its tokens (JWT) are this client."""
    audience: str | list[str] = ""
    """The name, or names, of this server at the issuer, which a token has to be for (`aud`)."""
    claims: dict[str, str | bool | list[str]] = {}
    """The claims that a token has to have, each with this value, or any of these."""
    scopes: tuple[Scope, ...] = ("read", "call")
    """The scopes that it has: any of `read`, `call`, `decide`, `tickets`, `work` and `admin`, which stands for all."""
    expires: datetime | None = None
    """From when on its token is refused; a time with an offset. None: never."""
    tools: tuple[str, ...] = ()
    """Names, patterns or keys of the tools that it may see and call; empty: all that policy allows."""
    dialog: bool = False
    """Whether a person answers what its MCP client is asked (elicitation), so that such answers count."""
    ask: Literal["", "client", "terminal", "both"] = ""
    """As `mcp.ask`, for its MCP client; empty: as that says."""
    patience: int | None = None
    """As `mcp.patience`, for its MCP client."""
    waiting: Literal["", "error", "result"] = ""
    """As `mcp.waiting`, for its MCP client."""
    expose_tools: Literal["", "all", "search"] = ""
    """As `mcp.expose_tools`, for its MCP client."""
    always: tuple[str, ...] = ()
    """As `mcp.always`, for its MCP client; empty: as that says."""

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"Client(principal={self.principal!r}, scopes={self.scopes!r})"

    @property
    def called(self) -> str:
        """Return what it is called."""
        return self.name or self.principal

    @property
    def expires_at(self) -> int | None:
        """The same in microseconds since the epoch."""
        return None if self.expires is None else int(self.expires.timestamp() * 1_000_000)


_EXPECTED: Final = {
    "name": "a non-empty text",
    "principal": "a non-empty text",
    "token": "a non-empty text",
    "sha256": "64 hexadecimal digits",
    "issuer": "the https URL of an issuer, as its tokens name it (iss)",
    "audience": "a non-empty text, or a list of them",
    "claims": "a table of texts, true or false, or lists of texts",
    "scopes": f"a list of any of {', '.join(sorted(SCOPES))}",
    "expires": "a date and time with its offset, such as 2027-01-31T12:00:00Z",
    "tools": "a list of names or patterns of tools, such as fs.*",
    "dialog": "true or false",
    "ask": "client, terminal or both",
    "patience": "a number of seconds, from 0 to 86400",
    "waiting": "error or result",
    "expose_tools": "all or search",
    "always": "a list of names or patterns of tools, such as fs.*",
}
_PROOFS: Final = ("token", "sha256", "issuer")
"""Keys, one of which says how the client is known."""
_LONGEST_S: Final = 86_400


def read_client(table: dict[str, Any], where: str) -> ClientTable:
    """The client that a table stands for. Raises SettingsError that begins with `where` and quotes no token."""
    for key in table:
        if key not in _EXPECTED:
            raise SettingsError(f"{where}: there is no key {key}", remedy=f"Its keys are {', '.join(_EXPECTED)}.")
    for key in _EXPECTED:
        if key in table and not _fits(key, table[key]):
            raise _misfit(where, key)
    if "principal" not in table:
        raise _misfit(where, "principal")
    proofs = [key for key in _PROOFS if key in table]
    if len(proofs) != 1:
        both = f"{proofs[0]} and {proofs[1]} are both" if proofs else "neither token nor sha256 nor issuer is"
        remedy = "Give one: ${NAME} as token, the token's SHA-256, or the issuer of tokens."
        raise SettingsError(f"{where}: {both} given", remedy=remedy)
    if "issuer" in table and "audience" not in table:
        raise SettingsError(
            f"{where}: an issuer is given without an audience", remedy="Name this server as the issuer does."
        )
    for key in ("audience", "claims"):
        if key in table and "issuer" not in table:
            raise SettingsError(f"{where}: {key} belongs to an issuer", remedy=f"Leave {key} out.")
    return msgspec.convert(table, ClientTable)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LONGEST_S


def _are_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list) and bool(value) and all(map(_is_text, value)))


def _are_claims(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, bool) or _are_texts(each) for each in value.values())


def _are_tools(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and _TOOLS.fullmatch(each) for each in value)


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "scopes": lambda value: isinstance(value, list) and bool(value) and all(each in SCOPES for each in value),
    "tools": _are_tools,
    "issuer": lambda value: _is_text(value) and is_issuer(value),
    "audience": _are_texts,
    "claims": _are_claims,
    "expires": lambda value: _moment(value) is not None,
    "dialog": lambda value: isinstance(value, bool),
    "sha256": lambda value: isinstance(value, str) and _SHA256.fullmatch(value) is not None,
    "ask": lambda value: value in ("client", "terminal", "both"),
    "patience": _is_seconds,
    "waiting": lambda value: value in ("error", "result"),
    "expose_tools": lambda value: value in ("all", "search"),
    "always": _are_tools,
}
"""The check of a key's value, if it is not any text."""


def _fits(key: str, value: Any) -> bool:
    return _FITS.get(key, _is_text)(value)


def _moment(value: Any) -> datetime | None:
    """The moment that a value of TOML or JSON stands for; None without an offset, which could be any hour."""
    try:
        moment = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def _misfit(where: str, key: str) -> SettingsError:
    return SettingsError(f"{where}: {key} must be {_EXPECTED[key]}", remedy=f"Correct {key} in it.")


_OLD_KEYS: Final = frozenset({"principal", "token"})
_OLD_SCOPES: Final[tuple[Scope, ...]] = ("read", "call", "decide")
"""The scopes that a client of `[[mcp.clients]]` could do, and still may."""


class Clients(msgspec.Struct, frozen=True):
    """Who may connect over HTTP."""

    clients: tuple[ClientTable, ...]
    """Each token once, as it was written."""
    warnings: tuple[str, ...] = ()


def clients(settings: Settings) -> Clients:
    """The clients, with references in their tokens as written.

    Raises SettingsError that names file, number and key, and never quotes a token.
    """
    clients_found: dict[str, ClientTable] = {}
    for number, table in enumerate(settings.clients.entries, 1):
        where = f"{settings.sources['clients.entries']}: clients number {number}"
        _add(read_client(table, where), where, clients_found)
    for number, table in enumerate(settings.mcp.clients, 1):
        where = f"{settings.sources['mcp.clients']}: mcp.clients number {number}"
        _add(_old(table, where), where, clients_found)
    _check_issuers([client for client in clients_found.values() if client.issuer], settings.sources["clients.entries"])
    old = f"{settings.sources['mcp.clients']}: [[mcp.clients]] is deprecated; write [[clients]], with scopes"
    return Clients(tuple(clients_found.values()), (old,) if settings.mcp.clients else ())


def grant(client: ClientTable) -> Grant:
    """The grant of a client that is known by an issuer's tokens."""
    wanted = {name: tuple(_texts(value)) for name, value in client.claims.items()}
    return Grant(
        issuer=client.issuer,
        audience=tuple(_texts(client.audience)),
        claims=wanted,
        access=_access(client),
        expires=client.expires_at,
    )


def _texts(value: str | bool | list[str]) -> list[str]:
    """The texts that a value stands for; of `true`, as claims are compared."""
    return value if isinstance(value, list) else [str(value).lower() if isinstance(value, bool) else value]


def _access(client: ClientTable) -> Access:
    return Access(
        client.principal,
        frozenset(client.scopes),
        client.tools,
        client.dialog,
        ask=client.ask,
        patience=client.patience,
        waiting=client.waiting,
        expose_tools=client.expose_tools,
        always=client.always,
    )


def bearer(client: ClientTable, environ: Mapping[str, str]) -> Token:
    """The token of a client, with every reference in it replaced.

    Raises SettingsError, also for a token that is empty then: it would let everyone in.
    """
    access = _access(client)
    if client.sha256:
        return Token(bytes.fromhex(client.sha256), access, client.expires_at)
    who = f"client {client.principal}"
    token = sendable(expand(client.token, environ, who), f"{who}: its token")
    if not token.strip():
        raise SettingsError(f"{who}: its token is empty", remedy="Set the variable that it refers to.")
    return Token(digest_of(token), access, client.expires_at)


def _old(table: dict[str, Any], where: str) -> ClientTable:
    for key in table:
        if key not in _OLD_KEYS:
            raise SettingsError(f"{where}: there is no key {key}", remedy="Its keys are principal and token.")
    return msgspec.structs.replace(read_client(table, where), scopes=_OLD_SCOPES, dialog=True)


def _check_issuers(client_tables: list[ClientTable], source: str) -> None:
    """Raise SettingsError if one issuer could name the people of another."""
    if (both := rivals(grant(client) for client in client_tables)) is not None:
        raise SettingsError(
            f"{source}: {both[0]} and {both[1]} of two issuers could be the same principal",
            remedy="Begin each with text of its own, such as okta:{sub}.",
        )


def _add(client: ClientTable, where: str, by_token: dict[str, ClientTable]) -> None:
    key = client.token or client.sha256 or f"issuer {len(by_token)}"
    if key in by_token:
        raise SettingsError(
            f"{where}: {client.principal} has the token of {by_token[key].principal}",
            remedy="Give each client its own token.",
        )
    by_token[key] = client
