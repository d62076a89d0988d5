"""Enterprise-managed authorization: a caller's own token becomes one for the server, without a login there.

The identity provider that let the caller in gives an assertion for the server's authorization server (an ID-JAG) in
exchange for the caller's token (RFC 8693); the authorization server gives a token of the server for that (RFC 7523),
which the SDK asks for. Both are configuration: the server is not asked where to send assertions. Source: MCP,
Enterprise-Managed Authorization; draft-ietf-oauth-identity-assertion-authz-grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider

from remit.http.access import Assertion
from remit.http.issuer_keys import metadata_urls
from remit.http.urls import place_of
from remit.providers.mcp.login_file import TokenFile
from remit.settings.logins import LoginFile

PROVIDER: Final = "identity_provider"
"""Key of an `oauth` table: the issuer whose tokens are exchanged."""
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name
_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
_PATIENCE_S: Final = 30.0
_LONGEST: Final = 64 * 1024
"""Characters of an assertion."""


class CallerProof(Protocol):
    """The port of the caller on a line."""

    assertion: Assertion | None
    """The proof of who they are, as they brought it last."""


class AssertionFlow(IdentityAssertionOAuthProvider):
    """The way of one person to tokens of one server."""

    settled = True
    """A token that is refused is exchanged for again; nothing is renewed."""

    def __init__(self, url: str, settings: Mapping[str, str], file: LoginFile, caller: CallerProof) -> None:
        self._given = settings
        self._caller = caller
        super().__init__(
            url,
            TokenFile(file),
            settings.get("client_id", ""),
            settings.get("client_secret", ""),
            settings.get("issuer", ""),
            self._exchanged,
            settings.get("scope"),
            "client_secret_basic",
        )

    def reload(self, refused: str = "") -> None:  # noqa: ARG002 - of flows that can renew
        """Read the file again: another process may have a newer token."""
        self._initialized = False

    async def _exchanged(self, audience: str, resource: str) -> str:
        """An assertion for `audience` about the caller. Raises OAuthFlowError, which does not quote it."""
        settings, proof = self._given, self._caller.assertion
        if proof is None or proof.issuer != settings[PROVIDER]:
            raise OAuthFlowError(f"the call does not come with a token of {settings[PROVIDER]}")
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _ID_JAG,
            "audience": audience,
            "resource": resource,
            "subject_token": proof.token,
            "subject_token_type": _ACCESS_TOKEN,
            **({"scope": settings["scope"]} if settings.get("scope") else {}),
        }
        who = (settings.get("identity_client_id", ""), settings.get("identity_client_secret", ""))
        async with httpx2.AsyncClient(timeout=_PATIENCE_S) as client:
            answer = await client.post(await _token_endpoint(client, settings[PROVIDER]), data=form, auth=who)
        document = _object(answer)
        jag = document.get("access_token")
        if answer.status_code != httpx2.codes.OK or document.get("issued_token_type") != _ID_JAG:
            raise OAuthFlowError(f"{settings[PROVIDER]} gave no assertion for the server: HTTP {answer.status_code}")
        if not isinstance(jag, str) or not 0 < len(jag) <= _LONGEST:
            raise OAuthFlowError(f"{settings[PROVIDER]} gave no assertion for the server")
        return jag


async def _token_endpoint(client: httpx2.AsyncClient, issuer: str) -> str:
    """Return the URL at which an issuer exchanges tokens, at its own origin. Raises OAuthFlowError."""
    for url in metadata_urls(issuer):
        document = _object(await client.get(url))
        if document.get("issuer") == issuer:
            endpoint = str(document.get("token_endpoint", ""))
            same = endpoint.partition("://")[0] == issuer.partition("://")[0]
            if same and place_of(endpoint) == place_of(issuer):
                return endpoint
            raise OAuthFlowError(f"{issuer} names a token endpoint that is not at its own origin")
    raise OAuthFlowError(f"{issuer} has no metadata of its own")


def _object(answer: httpx2.Response) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
