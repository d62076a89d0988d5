"""OAuth for servers on HTTP: the SDK does the protocol; here is who is asked, and where tokens are kept.

A person logs in once (`remit mcp login`); from then on tokens are refreshed by themselves. Where a server wants
someone to log in and no one is there, the call fails with AuthError and says what to do.

With enterprise-managed authorization a caller's own token becomes one for the server, without a login there. The
identity provider that let the caller in gives an assertion for the server's authorization server (an ID-JAG) in
exchange for the caller's token (RFC 8693); the authorization server gives a token of the server for that (RFC 7523),
which the SDK asks for. Both are configuration: the server is not asked where to send assertions. Source: MCP,
Enterprise-Managed Authorization; draft-ietf-oauth-identity-assertion-authz-grant.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import AnyUrl, BaseModel, ValidationError

from remit.codes import Code
from remit.errors import ProviderError
from remit.http.access import Assertion
from remit.http.issuer_keys import metadata_urls
from remit.http.urls import place_of
from remit.jsonrpc.protocol import MCP_PROTOCOL_VERSION_HEADER
from remit.providers.mcp.replies import LoginError
from remit.redact import line
from remit.settings.logins import EXPIRY, LoginFile
from remit.settings.pictures import address
from remit.tools.remote import LOGIN_PORT

if TYPE_CHECKING:
    import aiohttp

    from remit.settings.mcp import McpServer
    from remit.tools.remote import Authorized, Authorizer

TOKENS: Final = "tokens"
_CLIENT: Final = "client"
_M = TypeVar("_M", bound=BaseModel)


class TokenFile:
    """Tokens and registration of one server, as the SDK keeps them (`mcp.client.auth.TokenStorage`)."""

    def __init__(self, file: LoginFile) -> None:
        self._file = file

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last login."""
        return read(OAuthToken, self._file.read().get(TOKENS))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep these from now on, and until when they count."""
        plain = tokens.model_dump(mode="json", exclude_none=True)
        self._file.keep(**{TOKENS: plain, EXPIRY: calculate_token_expiry(tokens.expires_in)})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the authorization server knows us as."""
        return read(OAuthClientInformationFull, self._file.read().get(_CLIENT))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it from now on."""
        self._file.keep(**{_CLIENT: client_info.model_dump(mode="json", exclude_none=True)})


def read(model: type[_M], content: Any) -> _M | None:
    """Return the value; None for no content, or a damaged one."""
    try:
        return model.model_validate(content) if content else None
    except ValidationError:
        return None


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
        self._settings = settings
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
        settings, proof = self._settings, self._caller.assertion
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


_BACK: Final = AnyUrl(f"http://127.0.0.1:{LOGIN_PORT}/callback")
"""Where a person's browser comes back to."""
_SERVER, _RESOURCE = "server", "resource"
"""Keys of the file."""
_LONG_AGO_S: Final = 1.0
_SHOWN: Final = 200
_QUOTED: Final = " [type="
"""From here on the SDK quotes an answer that does not fit, in which tokens stand."""
# The SDK logs tracebacks, which quote the same. A filter: `disabled` ends with the next configuration of logging.
logging.getLogger(OAuthClientProvider.__module__).addFilter(lambda record: not record.exc_info)


class Nobody:
    """There is no one to log in."""

    def __init__(self, command: str) -> None:
        self._command = command

    async def redirect(self, url: str) -> None:  # noqa: ARG002 - the protocol's signature
        raise OAuthFlowError(f"a login is required: {self._command}")

    async def callback(self) -> Authorized:
        raise OAuthFlowError("login callback received before a login was started")


class LoginFlow(OAuthClientProvider):
    """The SDK's flow, which knows of earlier processes until when their tokens count and where they are renewed."""

    refused = ""
    """The header that the server did not take, though its token may not have expired."""

    def __init__(self, url: str, metadata: OAuthClientMetadata, file: LoginFile, **handlers: Any) -> None:
        super().__init__(url, metadata, TokenFile(file), **handlers)
        self._file = file

    @property
    def settled(self) -> bool:
        """Return whether nothing has to be renewed: its token counts, or it has no token."""
        return self._initialized and (self.context.is_token_valid() or not self.context.can_refresh_token())

    def reload(self, refused: str = "") -> None:
        """Read the file again: another process may have renewed the token."""
        self._initialized, self.refused = False, refused

    async def _initialize(self) -> None:
        await super()._initialize()
        content, context = self._file.read(), self.context
        expires = content.get(EXPIRY)
        context.token_expiry_time = expires if isinstance(expires, int | float) else None
        if self.refused and context.current_tokens and self.refused == f"Bearer {context.current_tokens.access_token}":
            context.token_expiry_time = _LONG_AGO_S
        context.oauth_metadata = read(OAuthMetadata, content.get(_SERVER)) or context.oauth_metadata
        resource = read(ProtectedResourceMetadata, content.get(_RESOURCE))
        context.protected_resource_metadata = resource or context.protected_resource_metadata

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        places = {_SERVER: self.context.oauth_metadata, _RESOURCE: self.context.protected_resource_metadata}
        plain = {key: place.model_dump(mode="json", exclude_none=True) for key, place in places.items() if place}
        self._file.keep(**plain)


class ServerLogin:
    """Authorizes requests to the servers that want it.

    Tokens are kept in `folder`; without an `authorizer` logging in is impossible. Where each person logs in, these are
    the logins of `principal`. `by_url`: the server stands on a command line, so that no settings know its name.
    """

    def __init__(
        self, folder: Path, authorizer: Authorizer | None = None, *, principal: str = "", by_url: bool = False
    ) -> None:
        self._folder = folder
        self._authorizer = authorizer
        self._by_url = by_url
        self.principal = principal
        self._exchanges = False
        self.assertion: Assertion | None = None
        """The proof of the caller, as they brought it last."""

    def of(self, principal: str, *, exchanges: bool) -> ServerLogin:
        """The same for another person, who is not there to log in; `exchanges`: their own token stands for that."""
        login = ServerLogin(self._folder, principal=principal, by_url=self._by_url)
        login._exchanges = exchanges
        return login

    async def auth(self, server: McpServer) -> Authorization | None:
        """Return what authorizes our requests to a server; None where it does not want OAuth.

        Raises ValueError, or ProviderError for a person who has no login of their own: they get no one else's, nor are
        they strangers.
        """
        if server.oauth is None:
            return None
        settings, file = server.oauth, LoginFile(self._folder, server, self.principal)
        if self._exchanges:
            return Authorization(
                AssertionFlow(server.url, settings, file, self), file, server.url, LoginOrigins(server)
            )
        if server.login == "user" and self._authorizer is None and TOKENS not in file.read():
            reason = f"{line(self.principal)} is not logged in: {line(self._command(server))}"
            raise ProviderError(reason, cause=Code.AuthError)
        person = self._authorizer or Nobody(self._command(server))
        await self._identify(settings, TokenFile(file))
        origins = LoginOrigins(server)

        async def redirect(url: str) -> None:
            origins.check(url, "the page to log in at")
            await person.redirect(url)

        async def heard() -> AuthorizationCodeResult:
            return AuthorizationCodeResult.model_validate((await person.callback())._asdict())

        metadata = OAuthClientMetadata(client_name="Remit", redirect_uris=[_BACK], scope=settings.get("scope"))
        flow = LoginFlow(
            server.url,
            metadata,
            file,
            redirect_handler=redirect,
            callback_handler=heard,
            client_metadata_url=settings.get("client_metadata_url"),
        )
        return Authorization(flow, file, server.url, origins)

    def _command(self, server: McpServer) -> str:
        """Return how a person logs in."""
        words = ("--url", address(server.url), "--name", server.name) if self._by_url else (server.name,)
        person = ("--as", self.principal) if server.login == "user" else ()
        return shlex.join(["remit", *person, "mcp", "login", *words])

    async def _identify(self, settings: Mapping[str, str], storage: TokenFile) -> None:
        """Be known by the client's id that the operator gave, if one was."""
        client_id, secret = settings.get("client_id"), settings.get("client_secret")
        held = await storage.get_client_info()
        if client_id and (held is None or (held.client_id, held.client_secret) != (client_id, secret)):
            known = OAuthClientInformationFull(
                client_id=client_id,
                client_secret=secret,
                redirect_uris=[_BACK],
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
            )
            await storage.set_client_info(known)


class LoginOrigins:
    """Where the login of one server may lead: its own origin, and those that the operator names as `issuer`.

    What a server says of where to log in is not believed alone: it would choose what is asked for from this machine,
    who gets the client's secret, and which page a person sees.
    """

    def __init__(self, server: McpServer) -> None:
        self._name = server.name
        self._origins = {_origin(server.url), *(_origin(url) for url in (server.oauth or {}).get("issuer", "").split())}

    def check(self, url: str, what: str) -> None:
        """Raises OAuthFlowError where nothing may be asked for."""
        try:
            origin = _origin(url)
        except ValueError:
            origin = url[:_SHOWN]
        if origin not in self._origins:
            reason = f"{self._name} names {origin} as {what}, which is not its own origin"
            raise OAuthFlowError(f"{reason}: if that is right, set `issuer` in its oauth table")


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

    def __init__(self, flow: LoginFlow | AssertionFlow, file: LoginFile, url: str, origins: LoginOrigins) -> None:
        self._flow = flow
        self._file = file
        self._url = url
        self._origins = origins
        self._client = httpx2.AsyncClient(timeout=_PATIENCE_S)

    async def headers(self, version: str) -> dict[str, str]:
        """Return what a request says, of this version of the protocol. Raises LoginError."""
        if self._flow.settled:
            return await self._run(version, None) or {}
        return await self._reloaded(version)

    async def renewed(self, version: str, authorization: str, refusal: aiohttp.ClientResponse) -> dict[str, str] | None:
        """Return what to say instead of the `authorization` that was refused; None: nothing else.

        Someone may have to log in meanwhile. Raises LoginError.
        """
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            headers = await self._reloaded(version, authorization)
            if headers.get("authorization", authorization) != authorization:
                return headers
        return await self._run(version, _Refused(authorization, refusal.status, list(refusal.headers.items())))

    async def _reloaded(self, version: str, refused: str = "") -> dict[str, str]:
        """The headers by what the file holds now, renewed if need be; one process renews at a time."""
        async with self._file.alone():
            self._flow.reload(refused)
            return await self._run(version, None) or {}

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.aclose()

    async def _run(self, version: str, refused: _Refused | None) -> dict[str, str] | None:
        ours = httpx2.Request("POST", self._url, headers={MCP_PROTOCOL_VERSION_HEADER: version} if version else {})
        flow = self._flow.async_auth_flow(ours)
        try:
            wanted = await anext(flow)
            while True:
                if wanted is not ours:
                    self._origins.check(str(wanted.url), "its authorization server")
                    answer = await self._client.send(wanted)
                else:
                    authorization = ours.headers.get("authorization", "")
                    if refused is None or (authorization and authorization != refused.authorization):
                        return {"authorization": authorization} if authorization else {}
                    answer = httpx2.Response(refused.status, headers=refused.headers, request=ours)
                    refused = None
                wanted = await flow.asend(answer)
        except StopAsyncIteration:
            return None
        except OAuthFlowError as error:  # its cause quotes the answer as well
            raise LoginError(str(error).partition(_QUOTED)[0]) from None
        except httpx2.HTTPError as error:
            raise LoginError(f"authorization failed: {type(error).__name__}: {error}") from error
        finally:
            await flow.aclose()


class _Refused(NamedTuple):
    authorization: str
    status: int
    headers: list[tuple[str, str]]
