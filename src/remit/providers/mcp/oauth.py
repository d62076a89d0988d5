"""OAuth for servers on HTTP: the SDK does the protocol; here is who is asked, and where tokens are kept.

A person logs in once (`remit mcp login`); from then on tokens are refreshed by themselves. Where a server wants
someone to log in and no one is there, the call fails with AuthError and says what to do.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from remit.canonical import sha256
from remit.jsonrpc.protocol import MCP_PROTOCOL_VERSION_HEADER
from remit.providers.mcp.replies import LoginError
from remit.settings.address import address
from remit.tools.remote import LOGIN_PORT

if TYPE_CHECKING:
    import aiohttp

    from remit.settings.mcp import McpServer
    from remit.tools.remote import Authorized, Authorizer

REDIRECT: Final = f"http://127.0.0.1:{LOGIN_PORT}/callback"
"""Where a person's browser comes back to."""
_SHOWN: Final = 200
_QUOTED: Final = " [type="
"""From here on the SDK quotes an answer that does not fit, in which tokens stand."""
# The SDK logs tracebacks, which quote the same. A filter: `disabled` ends with the next configuration of logging.
logging.getLogger(OAuthClientProvider.__module__).addFilter(lambda record: not record.exc_info)
_PATIENCE_S: Final = 30.0
"""Seconds that an authorization server may take for an answer."""


class Nobody:
    """There is no one to log in."""

    def __init__(self, server: str) -> None:
        self._server = server

    async def redirect(self, url: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Raises OAuthFlowError."""
        raise OAuthFlowError(f"a login is required: remit mcp login {self._server}")

    async def callback(self) -> Authorized:
        """Raises OAuthFlowError."""
        raise OAuthFlowError("login callback received before a login was started")


class TokenFile:
    """Tokens and registration of one server, in a file for its owner alone (`mcp.client.auth.TokenStorage`)."""

    def __init__(self, folder: Path, server: McpServer) -> None:
        """Keep them in `folder`, by the server's URL: tokens of one server are never sent to another."""
        self._path = folder / f"{server.name}-{sha256(server.url.encode()).rpartition(':')[2][:16]}.json"

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last login."""
        held = self._held().get("tokens")
        return OAuthToken.model_validate(held) if held else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep these from now on."""
        self._keep("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the authorization server knows us as."""
        held = self._held().get("client")
        with suppress(ValidationError):
            return OAuthClientInformationFull.model_validate(held) if held else None
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it from now on."""
        self._keep("client", client_info.model_dump(mode="json", exclude_none=True))

    def _held(self) -> dict[str, Any]:
        try:
            held = msgspec.json.decode(self._path.read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}
        return held if isinstance(held, dict) else {}

    def _keep(self, what: str, value: dict[str, Any]) -> None:
        """Replace the file as a whole; it is never readable by others, not even for a moment."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode({**self._held(), what: value}))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


class Login:
    """Authorizes requests to the servers that want it."""

    def __init__(self, folder: Path, authorizer: Authorizer | None = None, redirect_uri: str = REDIRECT) -> None:
        """Keep tokens in `folder`; without an `authorizer` logging in is impossible."""
        self._folder = folder
        self._authorizer = authorizer
        self._redirect_uri = AnyUrl(redirect_uri)

    async def auth(self, server: McpServer) -> Authorization | None:
        """Return what authorizes our requests to a server; None where it does not want OAuth. Raises ValueError."""
        if server.oauth is None:
            return None
        given, storage = server.oauth, TokenFile(self._folder, server)
        person = self._authorizer or Nobody(server.name)
        secret = given.get("client_secret")
        if (client_id := given.get("client_id")) and await storage.get_client_info() is None:
            known = OAuthClientInformationFull(
                client_id=client_id,
                client_secret=secret,
                redirect_uris=[self._redirect_uri],
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
            )
            await storage.set_client_info(known)

        origins = Origins(server)

        async def redirect(url: str) -> None:
            origins.check(url, "the page to log in at")
            await person.redirect(url)

        async def heard() -> AuthorizationCodeResult:
            return AuthorizationCodeResult.model_validate((await person.callback())._asdict())

        metadata = OAuthClientMetadata(
            client_name="Remit", redirect_uris=[self._redirect_uri], scope=given.get("scope")
        )
        flow = OAuthClientProvider(
            server.url,
            metadata,
            storage,
            redirect_handler=redirect,
            callback_handler=heard,
            client_metadata_url=given.get("client_metadata_url"),
        )
        return Authorization(flow, server.url, origins)


class Origins:
    """Where the login of one server may lead: its own origin, and those that the operator names as `issuer`.

    What a server says of where to log in is not believed alone: it would choose what is asked for from this machine,
    who gets the client's secret, and which page a person sees.
    """

    def __init__(self, server: McpServer) -> None:
        """Raises ValueError if `issuer` is not the URLs of servers, separated by blanks."""
        self._name = server.name
        self._told = {_origin(server.url), *(_origin(url) for url in (server.oauth or {}).get("issuer", "").split())}

    def check(self, url: str, what: str) -> None:
        """Raises OAuthFlowError where nothing may be asked for."""
        try:
            found = _origin(url)
        except ValueError:
            found = url[:_SHOWN]
        if found not in self._told:
            why = f"{self._name} names {found} as {what}, which is not its own origin"
            raise OAuthFlowError(f"{why}: if that is right, set `issuer` in its oauth table")


def _origin(url: str) -> str:
    """Scheme, host and port. Raises ValueError for anything else than the address of a server."""
    parts = urlsplit(url)
    ports = {"https": 443, "http": 80}
    if parts.scheme not in ports or not parts.hostname or parts.username is not None:
        raise ValueError(f"{address(url)[:_SHOWN]!r} is not the URL of a server, without a user")
    return f"{parts.scheme}://{parts.hostname.lower().rstrip('.')}:{parts.port or ports[parts.scheme]}"


class Authorization:
    """The headers by which our requests tell one server who we are.

    The SDK words OAuth as a flow that makes a request of its client's and, in between, those that it needs itself. It
    is told of our request only as much as it has to know, so that no two requests of ours wait for each other.
    """

    def __init__(self, flow: OAuthClientProvider, url: str, origins: Origins) -> None:
        """Ask `flow` for the server at `url`; what it asks for lies at these origins, or is not asked for."""
        self._flow = flow
        self._url = url
        self._origins = origins
        self._client = httpx2.AsyncClient(timeout=_PATIENCE_S)

    async def headers(self, version: str) -> dict[str, str]:
        """Return what a request says, of this version of the protocol. Raises LoginError."""
        return await self._run(version, None) or {}

    async def renewed(self, version: str, given: str, refusal: aiohttp.ClientResponse) -> dict[str, str] | None:
        """Return what to say instead of what was `given` and refused; None: nothing else.

        Someone may have to log in meanwhile. Raises LoginError.
        """
        return await self._run(version, _Refused(given, refusal.status, list(refusal.headers.items())))

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.aclose()

    async def _run(self, version: str, refused: _Refused | None) -> dict[str, str] | None:
        ours = httpx2.Request("POST", self._url, headers={MCP_PROTOCOL_VERSION_HEADER: version} if version else {})
        flow = self._flow.async_auth_flow(ours)
        try:
            asked = await anext(flow)
            while True:
                if asked is not ours:
                    self._origins.check(str(asked.url), "its authorization server")
                    answer = await self._client.send(asked)
                else:
                    given = ours.headers.get("authorization", "")
                    if refused is None or (given and given != refused.given):
                        return {"authorization": given} if given else {}
                    answer = httpx2.Response(refused.status, headers=refused.headers, request=ours)
                    refused = None
                asked = await flow.asend(answer)
        except StopAsyncIteration:
            return None
        except OAuthFlowError as error:  # its cause quotes the answer as well
            raise LoginError(str(error).partition(_QUOTED)[0]) from None
        except httpx2.HTTPError as error:
            raise LoginError(f"authorization failed: {type(error).__name__}: {error}") from error
        finally:
            await flow.aclose()


class _Refused(NamedTuple):
    given: str
    status: int
    headers: list[tuple[str, str]]
