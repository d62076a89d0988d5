"""The section `[login]`, and `[[login.grants]]` in it."""

from typing import Annotated, Any

import msgspec

from remit.http.access import Scope
from remit.settings.pictures import HIDDEN, plain, tables
from remit.settings.section import About, Section, Tables, Texts


def _secret(value: Any) -> Any:
    return value if isinstance(value, str) and (not value or value.startswith("${")) else HIDDEN


def _grants(value: Any) -> Any:
    return tables(value, dict.fromkeys(("group", "scopes"), plain))


class LoginSettings(Section, frozen=True):
    """The provider at which people log in."""

    issuer: Annotated[
        str, About("The URL of the provider (OpenID Connect), as its tokens name it. Empty: people do not log in.")
    ] = ""
    client_id: Annotated[str, About("The name of this server at the provider.")] = ""
    client_secret: Annotated[
        str, About("Its secret there, if it has one: `${NAME}` takes it from the environment.", picture=_secret)
    ] = ""
    scopes: Annotated[Texts, About("The scopes that the provider is asked for.")] = (
        "openid",
        "profile",
        "groups",
        "offline_access",
    )
    principal: Annotated[
        str,
        About("The principal of a person: a text of its own, and claims that the provider never gives to another."),
    ] = "idp:{sub}"
    groups_claim: Annotated[str, About("The claim that lists a person's groups.")] = "groups"
    grants: Annotated[
        Tables,
        About(
            "The scopes of each group, one `[[login.grants]]` table each: `group`, without which it is for everyone, "
            "and `scopes`.",
            entry="remit.parts.login.settings:LoginGrant",
            picture=_grants,
        ),
    ] = ()


class LoginGrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[login.grants]]` table."""

    group: str = ""
    """The group at the provider; empty: everyone who logs in."""
    scopes: tuple[Scope, ...]
    """The scopes that its people have here."""
