"""The accounts of people where they are told: whose an account is. What `[[people]]` says, checked.

An account that no table names is no one's. Accounts are the identifiers that a channel gives and never gives again; a
name or an address, which people change, proves nothing.
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

import msgspec

from remit.errors import SettingsError
from remit.settings.model import Settings
from remit.settings.parts import settings_of
from remit.settings.section import About, Section, Tables, converted

NAME: Final = "people"
_FORMS: Final = {"slack": re.compile(r"[TE][A-Z0-9]{1,20}/[UW][A-Z0-9]{1,20}"), "telegram": re.compile(r"[0-9]{1,20}")}
_EXAMPLES: Final = {"slack": "T0123/U0456, the workspace and the member ID", "telegram": "a number, the user's id"}


class PeopleSettings(Section, frozen=True):
    """People and their accounts on channels."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "Whose an account on a channel is, one `[[people]]` table each: `principal`, `slack`, `telegram` "
            "([notifications](notifications.md#answer-there)). A JSON array in the environment.",
            env=("REMIT_PEOPLE",),
            entry="remit.parts.notify.people:PersonEntry",
        ),
    ] = ()


class PersonEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[people]]` table."""

    principal: str
    """The principal in whose name the person decides."""
    slack: str = ""
    """Workspace and member, such as `T0123/U0456`."""
    telegram: str = ""
    """The user's number."""


Accounts = Mapping[tuple[str, str], str]
"""By channel and account, the principal."""


def read_accounts(settings: Settings) -> Accounts:
    """Return whose each account is. Raises SettingsError."""
    own = settings_of(settings, NAME, PeopleSettings)
    accounts: dict[tuple[str, str], str] = {}
    for number, table in enumerate(own.entries, 1):
        where = f"people number {number}"
        entry = converted(table, PersonEntry, where)
        if not entry.principal.strip():
            raise SettingsError(f"{where}: principal is empty", remedy="Name the person as the record does.")
        for channel, form in _FORMS.items():
            account = getattr(entry, channel)
            if account and not form.fullmatch(account):
                raise SettingsError(f"{where}: {channel} must be {_EXAMPLES[channel]}", remedy="Copy it from there.")
            if account and (channel, account) in accounts:
                raise SettingsError(
                    f"{where}: {channel} {account} is {accounts[channel, account]}'s already",
                    remedy="An account is one person's: take it out of one of the tables.",
                )
            if account:
                accounts[channel, account] = entry.principal
    return accounts
