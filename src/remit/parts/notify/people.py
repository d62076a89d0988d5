"""The people whom others address by a channel: whose an account is, where each is told, and who stands in for whom.

An account that no table names is no one's. Accounts are the identifiers that a channel gives and never gives again; a
name or an address, which people change, proves nothing: an `email` says where to write, and not who wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec

from remit.errors import PolicyError, SettingsError
from remit.settings.model import Settings
from remit.settings.parts import settings_of
from remit.settings.section import About, Section, Tables, converted

if TYPE_CHECKING:
    from remit.policy.condition import Window

NAME: Final = "people"
_FORMS: Final = {
    "slack": re.compile(r"[TE][A-Z0-9]{1,20}/[UW][A-Z0-9]{1,20}"),
    "telegram": re.compile(r"[0-9]{1,20}"),
    "email": re.compile(r"[^\s@<>,;:\"\\]+@[^\s@<>,;:\"\\]+", re.ASCII),
}
_EXAMPLES: Final = {
    "slack": "T0123/U0456, the workspace and the member ID",
    "telegram": "a number, the user's id",
    "email": "an address such as ann@example.com",
}


class PeopleSettings(Section, frozen=True):
    """People, their accounts on channels, and who stands in for them."""

    array: ClassVar[str] = "entries"

    entries: Annotated[
        Tables,
        About(
            "People, one `[[people]]` table each: `principal`, `slack`, `telegram`, `email`, `absent`, `delegate` "
            "([notifications](notifications.md#people)). A JSON array in the environment.",
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
    email: str = ""
    """The address at which the person is told; answers come from nowhere there."""
    absent: dict[str, Any] = {}
    """When someone else stands in, as a window of policy (`since`, `until`, `days`, `hours`, `zone`)."""
    delegate: str = ""
    """The principal who does."""


Accounts = Mapping[tuple[str, str], str]
"""By channel and account, the principal."""


class Directory(msgspec.Struct, frozen=True):
    """All people of `[[people]]`."""

    accounts: Accounts = {}
    """By channel and account, the principal."""
    places: Mapping[tuple[str, str], str] = {}
    """By principal and channel, the account."""
    absences: Mapping[str, tuple[Window, str]] = {}
    """By principal, when they are absent, and who stands in."""

    def stand_in(self, person: str, now: int) -> str:
        """Return who stands in for a person now, which may be a delegate's delegate; empty: they are there.

        Where all of them are absent, or stand in for each other, no one does.
        """
        seen = [person]
        while (absence := self.absences.get(seen[-1])) is not None and absence[0].holds(now):
            if absence[1] in seen:
                return ""
            seen.append(absence[1])
        return seen[-1] if len(seen) > 1 else ""

    def stand_ins(self, people: Collection[str], now: int) -> dict[str, str]:
        """Return who stands in now, each with the first of these people who is absent."""
        found = [(self.stand_in(person, now), person) for person in reversed([*people])]
        return {delegate: person for delegate, person in found if delegate}


def read_directory(settings: Settings) -> Directory:
    """Return all people. Raises SettingsError."""
    own = settings_of(settings, NAME, PeopleSettings)
    directory = Directory()
    for number, table in enumerate(own.entries, 1):
        where = f"people number {number}"
        entry = converted(table, PersonEntry, where)
        if not entry.principal.strip():
            raise SettingsError(f"{where}: principal is empty", remedy="Name the person as the record does.")
        accounts = {channel: getattr(entry, channel) for channel in _FORMS if getattr(entry, channel)}
        for channel, account in accounts.items():
            _check_account(directory, channel, account, where)
        absences = _absence(entry, where)
        directory = Directory(
            {**directory.accounts, **dict.fromkeys(accounts.items(), entry.principal)},
            {**directory.places, **{(entry.principal, channel): account for channel, account in accounts.items()}},
            {**directory.absences, **({entry.principal: absences} if absences is not None else {})},
        )
    return directory


def _check_account(directory: Directory, channel: str, account: str, where: str) -> None:
    if not _FORMS[channel].fullmatch(account):
        raise SettingsError(f"{where}: {channel} must be {_EXAMPLES[channel]}", remedy="Copy it from there.")
    if (channel, account) in directory.accounts:
        raise SettingsError(
            f"{where}: {channel} {account} is {directory.accounts[channel, account]}'s already",
            remedy="An account is one person's: take it out of one of the tables.",
        )


def _absence(entry: PersonEntry, where: str) -> tuple[Window, str] | None:
    """Return when a person is absent, and who stands in. Raises SettingsError."""
    if not entry.absent:
        if entry.delegate:
            raise SettingsError(f"{where}: delegate says nothing without absent", remedy="Say when, or take it out.")
        return None
    if not entry.delegate or entry.delegate == entry.principal:
        raise SettingsError(f"{where}: absent needs a delegate", remedy="Name who stands in, as the record does.")
    from remit.policy.condition import parse_window  # noqa: PLC0415 - for who is absent; each command reads settings
    from remit.policy.table import Table  # noqa: PLC0415 - as above

    try:
        window = parse_window(Table({"absent": entry.absent}, where, ("absent",)), "absent")
    except PolicyError as error:
        remedy = error.remedy or 'Write, for example, absent = { since = "2027-01-04", until = "2027-01-18" }.'
        raise SettingsError(error.message, remedy=remedy) from error
    return None if window is None else (window, entry.delegate)
