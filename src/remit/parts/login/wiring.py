"""People as `[login]` says: who knows them, and what answers on their way to the provider and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from remit.errors import SettingsError
from remit.http.access import Access
from remit.http.grants import CLAIM, rivals
from remit.http.urls import is_issuer
from remit.parts.login.settings import LoginGrant, LoginSettings
from remit.settings.clients import clients, grant
from remit.settings.expansion import expand
from remit.settings.parts import settings_of
from remit.settings.section import converted

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.http.guard import Guard
    from remit.http.people import People
    from remit.http.router import PartMount
    from remit.service.parts import Parts
    from remit.settings import Settings

NAME: Final = "login"
_E_MAIL: Final = "{email}"


def open_people(parts: Parts) -> People | None:
    """Return who logs in; None without `login.issuer`. Raises SettingsError."""
    own = settings_of(parts.settings, NAME, LoginSettings)
    if not own.issuer:
        return None
    grants = checked_grants(parts.settings, own)
    try:
        from remit.parts.login.provider import LoginProvider  # noqa: PLC0415 - needs an extra
        from remit.parts.login.sessions import LoginSessions  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        reason = f"[login] needs {error.name}, which is not installed"
        raise SettingsError(reason, remedy="Install it: pip install 'remit[jwt]'") from error
    secret = expand(own.client_secret, os.environ, "[login] client_secret")
    return LoginSessions(parts.journal, LoginProvider(own, secret, parts.journal.clock), grants)


def checked_grants(settings: Settings, own: LoginSettings) -> tuple[LoginGrant, ...]:
    """The grants of `[login]`, once it is clear that its people are no one else. Raises SettingsError."""
    if not is_issuer(own.issuer):
        raise SettingsError(
            "login.issuer must be the https URL of an issuer", remedy="Write it as its tokens do (iss)."
        )
    if not own.client_id:
        raise SettingsError("login.client_id is empty", remedy="Name this server as the provider does.")
    if "openid" not in own.scopes:
        raise SettingsError("login.scopes lacks openid", remedy='Add "openid": without it there is no ID token.')
    if _E_MAIL in own.principal:
        raise SettingsError(
            "login.principal names people by {email}, which may be given to someone else",
            remedy="Use a claim that never is, such as okta:{sub}.",
        )
    if not CLAIM.search(own.principal) or CLAIM.match(own.principal):
        raise SettingsError(
            "login.principal must begin with a text of its own, and have a claim",
            remedy="Write, for example, okta:{sub}.",
        )
    _check_rivals(settings, own)
    if not own.grants:
        raise SettingsError("no [[login.grants]] says what people may do", remedy='Add one, with scopes = ["read"].')
    return tuple(converted(table, LoginGrant, f"login.grants number {n}") for n, table in enumerate(own.grants, 1))


def _check_rivals(settings: Settings, own: LoginSettings) -> None:
    """Raise SettingsError if another issuer could name the people of this one."""
    others = [grant(client) for client in clients(settings).clients if client.issuer]
    mine = [
        type(other)(issuer=own.issuer, audience=(), claims={}, access=Access(own.principal, frozenset()))
        for other in others[:1]
    ]
    if (both := rivals([*others, *mine])) is not None:
        raise SettingsError(
            f"login.principal: {both[0]} and {both[1]} of two issuers could be the same principal",
            remedy="Begin each with text of its own, such as okta:{sub}.",
        )


def open_mounts(remit: Remit, guard: Guard) -> list[PartMount]:
    """Return what answers on the way to the provider and back; nothing where no one logs in."""
    if guard.people is None:
        return []
    from remit.http.router import PartMount  # noqa: PLC0415 - only a server needs it
    from remit.pages.entry import NOBODY, PROVIDER  # noqa: PLC0415 - only a server needs it
    from remit.parts.login.part import LoginPart  # noqa: PLC0415 - only a server needs it
    from remit.parts.login.sessions import LoginSessions  # noqa: PLC0415 - needs an extra

    async def stranger(_headers: Mapping[str, str]) -> Access:
        return NOBODY

    if not isinstance(guard.people, LoginSessions):
        return []
    serve = remit.settings.serve
    part = LoginPart(guard.people, serve.public_url, remit.clock, "https" if serve.tls_cert else "http")
    return [PartMount(PROVIDER, part, None, stranger)]
