"""One provider of identities: where people log in, and what it says of them.

Sources: OpenID Connect Core 1.0, Discovery 1.0 and Back-Channel Logout 1.0; RFC 7636 (PKCE), RFC 8628 (device flow),
RFC 9207 (iss in the answer). Each token goes through the same door as those of other issuers (remit.http.issuers).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from remit.codes import Code
from remit.http.access import Access
from remit.http.addresses import BlockedAddressError, Resolver, resolved
from remit.http.connector import judging_connector, private_if
from remit.http.grants import Grant
from remit.http.issuers import Issuers
from remit.http.problem import HttpProblem
from remit.http.urls import InvalidUrlError, checked, place_of
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.clock import Clock
    from remit.parts.login.settings import LoginSettings

_PATIENCE_S: Final = 10.0
_MAX_BYTES: Final = 256 * 1024
_MOST_GROUPS: Final = 500
_GROUP: Final = 200
"""Characters of a group's name."""
_ID_TOKEN: Final = frozenset({"", "jwt"})
_LOGOUT_TOKEN: Final = frozenset({"", "jwt", "logout+jwt"})
_LOGOUT: Final = "http://schemas.openid.net/event/backchannel-logout"
_PENDING: Final = ("authorization_pending", "slow_down")
_REFUSED: Final = range(400, 500)
_OK: Final = 200
_DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"


class Person(NamedTuple):
    """A person, as the provider describes them now."""

    principal: str
    subject: str
    sid: str
    groups: tuple[str, ...]
    refresh: str
    """The token with which it can be asked again; empty: it cannot."""


class LogoutNotice(NamedTuple):
    """A session that ended at the provider: one, or all of a person."""

    sid: str
    subject: str


def refused(reason: str) -> HttpProblem:
    """The refusal of a login."""
    return HttpProblem(Code.LOGIN_REFUSED, reason)


def challenge_of(verifier: str) -> str:
    """The challenge of a verifier (RFC 7636, section 4.2: S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class LoginProvider:
    """The provider that `[login]` names."""

    def __init__(self, own: LoginSettings, secret: str, clock: Clock, resolve: Resolver = resolved) -> None:
        self._own = own
        self._secret = secret
        self._resolve = resolve
        self._grant = Grant(
            issuer=own.issuer, audience=(own.client_id,), claims={}, access=Access(own.principal, frozenset())
        )
        self._issuers = Issuers([self._grant], clock, resolve=resolve)

    @property
    def issuer(self) -> str:
        """The URL of the provider."""
        return self._own.issuer

    async def login_url(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """The URL at which a browser logs in. Raise Problem."""
        query = {
            "response_type": "code",
            "client_id": self._own.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self._own.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        if "offline_access" in self._own.scopes:
            query["prompt"] = "consent"  # without it no refresh token is given (Core 1.0, section 11)
        place = await self._place("authorization_endpoint")
        return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}"

    def check_answer(self, answer: Mapping[str, str], state: str) -> str:
        """The code of an answer that a browser brings back from the provider. Raise Problem."""
        if answer.get("state") != state:
            raise refused(
                "The answer belongs to no login that this browser began here, or comes too late. Begin again."
            )
        if answer.get("iss", self.issuer) != self.issuer:
            raise refused("The answer is another provider's.")
        if answer.get("error") or not answer.get("code"):
            raise refused(f"The provider says: {line(answer.get('error', 'nothing'))}.")
        return answer["code"]

    async def person_of_code(self, code: str, verifier: str, nonce: str, redirect: str) -> Person:
        """The person who logged in, by the code that a browser brought. Raise Problem."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
        return await self._person(await self._granted(form), nonce)

    async def begin_device(self) -> dict[str, Any]:
        """Begin a login on another device; what the provider says of it. Raise Problem."""
        status, answer = await self._post("device_authorization_endpoint", {"scope": " ".join(self._own.scopes)})
        if status != _OK or not all(isinstance(answer.get(key), str) for key in ("device_code", "user_code")):
            raise refused(f"The provider begins no login for a device: {line(str(answer.get('error', status)))}.")
        return answer

    async def person_of_device(self, device_code: str) -> Person:
        """The person who logged in on another device. Raise Problem (LOGIN_PENDING: not yet)."""
        return await self._person(await self._granted({"grant_type": _DEVICE, "device_code": device_code}), None)

    async def person_again(self, refresh: str) -> Person:
        """The person whom the provider gave a refresh token for, as it describes them now. Raise Problem."""
        answer = await self._granted({"grant_type": "refresh_token", "refresh_token": refresh})
        person = await self._person(answer, None)
        return person if person.refresh else person._replace(refresh=refresh)

    async def ended(self, token: str) -> LogoutNotice:
        """The sessions that a logout token ends (Back-Channel Logout 1.0, section 2.6). Raise Problem."""
        claims = await self._claims(token, _LOGOUT_TOKEN, about=False)
        events = claims.get("events")
        sid, subject = (str(claims.get(name) or "") for name in ("sid", "sub"))
        if not isinstance(events, dict) or _LOGOUT not in events or "nonce" in claims or not (sid or subject):
            raise HttpProblem(Code.INVALID_INPUT, "The token ends no session.")
        return LogoutNotice(sid, subject)

    # --- what it says of a person

    async def _person(self, tokens: Mapping[str, Any], nonce: str | None) -> Person:
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise refused("The provider gave no ID token: ask it for the scope openid.")
        claims = await self._claims(token, _ID_TOKEN)
        if nonce is not None and claims.get("nonce") != nonce:
            raise refused("The ID token was made for another login.")
        access = self._grant.access_of(claims, "")
        if access is None or not access.principal:
            raise refused("The ID token lacks a claim that names the principal.")
        groups = await self._groups(claims, tokens)
        sid, refresh = (str(source.get(name) or "") for source, name in ((claims, "sid"), (tokens, "refresh_token")))
        return Person(access.principal, claims["sub"], sid, groups, refresh)

    async def _claims(self, token: str, types: frozenset[str], *, about: bool = True) -> dict[str, Any]:
        claims, _ = await self._issuers.claims(token, types, about=about)
        audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        party = claims.get("azp", self._own.client_id if len(audience) == 1 else "")
        if self._own.client_id not in audience or party != self._own.client_id:
            raise refused("The token is for another client of the provider.")
        return claims

    async def _groups(self, claims: Mapping[str, Any], tokens: Mapping[str, Any]) -> tuple[str, ...]:
        """A person's groups; a provider that only says where they could be had says nothing. Raise Problem."""
        name = self._own.groups_claim
        elsewhere = claims.get("_claim_names")
        if claims.get("hasgroups") or (isinstance(elsewhere, dict) and name in elsewhere):
            raise refused(
                f"The provider does not list the groups: there are too many for a token. Have it put only those that "
                f"count here into the claim {name}."
            )
        listed = claims.get(name)
        if listed is None:
            listed = (await self._userinfo(str(tokens.get("access_token") or ""), claims["sub"])).get(name, [])
        groups = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        fit = [group for group in groups if isinstance(group, str) and 0 < len(group) <= _GROUP and group.isprintable()]
        if len(groups) > _MOST_GROUPS:
            raise refused(
                f"The provider lists more than {_MOST_GROUPS} groups. Have it list only those that count here."
            )
        return tuple(sorted(set(fit)))

    async def _userinfo(self, token: str, subject: str) -> dict[str, Any]:
        """The claims that the provider gives for an access token (Core 1.0, section 5.3); none of another person."""
        metadata = await self._metadata()
        if not token or "userinfo_endpoint" not in metadata:
            return {}
        status, claims = await self._ask("GET", await self._place("userinfo_endpoint"), None, f"Bearer {token}")
        return claims if status == _OK and claims.get("sub") == subject else {}

    # --- asking

    async def _granted(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the answer of the token endpoint. Raise Problem."""
        status, answer = await self._post("token_endpoint", form)
        if status == _OK:
            return answer
        error = line(str(answer.get("error") or status))
        if error in _PENDING:
            raise HttpProblem(Code.LOGIN_PENDING, f"The provider says: {error}.", reason=error)
        if status in _REFUSED:
            raise refused(f"The provider says: {error}.")
        raise HttpProblem(Code.LOGIN_UNAVAILABLE, f"The provider answered {status}.")

    async def _post(self, endpoint: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        place, own = await self._place(endpoint), self._own
        methods = (await self._metadata()).get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not self._secret:
            return await self._ask("POST", place, {**form, "client_id": own.client_id}, "")
        if isinstance(methods, list) and "client_secret_basic" not in methods:
            return await self._ask(
                "POST", place, {**form, "client_id": own.client_id, "client_secret": self._secret}, ""
            )
        pair = f"{quote(own.client_id, safe='')}:{quote(self._secret, safe='')}"  # RFC 6749, section 2.3.1
        return await self._ask("POST", place, form, f"Basic {base64.b64encode(pair.encode()).decode()}")

    async def _metadata(self) -> dict[str, Any]:
        metadata = await self._issuers.metadata(self.issuer)
        if not metadata:
            raise HttpProblem(Code.LOGIN_UNAVAILABLE, f"{self.issuer} cannot be reached.")
        return metadata

    async def _place(self, endpoint: str) -> str:
        """Return where the provider has an endpoint. Raise Problem."""
        named = (await self._metadata()).get(endpoint)
        try:
            url = checked(str(named or ""))
        except InvalidUrlError:
            raise refused(f"The provider has no {endpoint}.") from None
        if not url.startswith("https://") and place_of(url) != place_of(self.issuer):
            raise refused(f"The provider's {endpoint} is not at an https URL.")
        return url

    async def _ask(
        self, method: str, url: str, form: Mapping[str, str] | None, authorization: str
    ) -> tuple[int, dict[str, Any]]:
        """Send one request; the status, and the JSON object that came back. Redirections are not followed."""
        headers = {"accept": "application/json", **({"authorization": authorization} if authorization else {})}
        connector = judging_connector(self._resolve, 1)
        try:
            async with (
                asyncio.timeout(_PATIENCE_S),
                aiohttp.ClientSession(
                    connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
                ) as client,
            ):
                with private_if(place_of(url) == place_of(self.issuer)):
                    async with client.request(
                        method, url, data=form, headers=headers, allow_redirects=False
                    ) as response:
                        body = await response.content.read(_MAX_BYTES)
                        status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError, BlockedAddressError) as error:
            reason = line(str(error)) or type(error).__name__
            raise HttpProblem(Code.LOGIN_UNAVAILABLE, f"{self.issuer} cannot be reached: {reason}") from error
        try:
            answer = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = {}
        return status, answer if isinstance(answer, dict) else {}
