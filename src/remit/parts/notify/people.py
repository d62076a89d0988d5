"""The people whom others address by a channel: whose an account is, where each is told, and who stands in for whom.

An account that no table names is no one's. Accounts are the identifiers that a channel gives and never gives again; a
name or an address, which people change, proves nothing: an `email` says where to write, and not who wrote.

`ask = ["ann", "bob after 15m", "@leads after 1h"]` makes a target for each person, which is told after that time if no
one has answered by then; a group's turn passes over who had one before. Whom a message goes to is looked up as it
goes: to the delegate of who is absent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from remit.errors import PolicyError, SettingsError
from remit.jobs.plans.problem import EXPECTED, parse_duration
from remit.parts.notify.settings import NotifySettings, PeopleSettings
from remit.parts.notify.target import OPEN, NotifyTarget, target_of
from remit.policy.groups import PROVIDED, parse_groups
from remit.regex import regex
from remit.settings.model import Settings
from remit.settings.parts import settings_of
from remit.settings.section import converted

if TYPE_CHECKING:
    from remit.gateway.confirmations import FindStandIns
    from remit.policy.condition import Window
    from remit.service.parts import Parts
    from remit.settings import Settings

NAME: Final = "people"
_FORMS: Final = {
    "slack": regex(r"[TE][A-Z0-9]{1,20}/[UW][A-Z0-9]{1,20}"),
    "telegram": regex(r"[0-9]{1,20}"),
    "email": regex(r"[^\s@<>,;:\"\\]+@[^\s@<>,;:\"\\]+", re.ASCII),
}
_EXAMPLES: Final = {
    "slack": "T0123/U0456, the workspace and the member ID",
    "telegram": "a number, the user's id",
    "email": "an address such as ann@example.com",
}


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
        chain = [person]
        while (absence := self.absences.get(chain[-1])) is not None and absence[0].holds(now):
            if absence[1] in chain:
                return ""
            chain.append(absence[1])
        return chain[-1] if len(chain) > 1 else ""

    def stand_ins(self, people: Collection[str], now: int) -> dict[str, str]:
        """Return who stands in now, each with the first of these people who is absent."""
        pairs = [(self.stand_in(person, now), person) for person in reversed([*people])]
        return {delegate: person for delegate, person in pairs if delegate}


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


def open_stand_ins(parts: Parts) -> FindStandIns | None:
    """Return who stands in for whom as `[[people]]` says; None: no one does. Raises SettingsError."""
    directory = read_directory(parts.settings)
    return (lambda people: directory.stand_ins(people, parts.journal.clock.now())) if directory.absences else None


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


_TURN: Final = regex(r"(\S+)(?: after (\S+))?")
_SIGN: Final = "@"


def turns_of(target: NotifyTarget, settings: Settings, where: str) -> list[NotifyTarget]:
    """Return the target of each person to ask, or the target alone if it asks no one. Raises SettingsError."""
    if not target.ask:
        return [target]
    directory, groups = read_directory(settings), parse_groups(settings.policy.groups)
    targets: list[NotifyTarget] = []
    for turn in target.ask:
        match = _TURN.fullmatch(turn)
        if match is None or (match[2] and parse_duration(match[2]) is None):
            remedy = f"Write a principal or a group, and after it {EXPECTED}: bob after 15m."
            raise SettingsError(f"{where}: ask holds {turn!r}, which names no turn", remedy=remedy)
        name, after = match[1], match[2] or ""
        if name.startswith(_SIGN) and (name.startswith(PROVIDED) or name.removeprefix(_SIGN) not in groups):
            raise SettingsError(f"{where}: ask names the group {name}, which there is not", remedy="List its people.")
        on = tuple(event for event in target.events if not after or event in OPEN)
        earlier = {each.person for each in targets}
        members = [each for each in groups.get(name.removeprefix(_SIGN), ()) if each not in earlier]
        for person in members if name.startswith(_SIGN) else (name,):
            if not place_of(directory, person, target.way):
                remedy = f"Add {target.way} to their [[people]] table."
                raise SettingsError(f"{where}: {person} has no {target.way} to be told at", remedy=remedy)
            slug = re.sub("[^a-z0-9_-]+", "-", person.lower())
            own = {"name": f"{target.name}-{slug}", "table": target.name, "person": person, "after": after, "on": on}
            targets.append(replace(target, ask=(), **own))
    return targets


def read_targets(settings: Settings) -> tuple[NotifyTarget, ...]:
    """The targets, with references to the environment as written.

    Raises SettingsError that names file, number and key, and quotes no value that may be secret.
    """
    targets: dict[str, NotifyTarget] = {}
    for number, table in enumerate(settings_of(settings, "notify", NotifySettings).targets, 1):
        where = f"{settings.sources['notify.targets']}: notify number {number}"
        for target in turns_of(target_of(table, where), settings, where):
            if target.name in targets:
                raise SettingsError(
                    f"{where}: another target is called {target.name}", remedy="Give each its own name."
                )
            targets[target.name] = target
    return tuple(targets.values())


class PersonAddress(NamedTuple):
    """A target, and where it is told now."""

    target: NotifyTarget
    """The target, with the place of a person where it had none."""
    delegate: str = ""
    """The delegate who is told there in place of its person; empty: no one is."""
    others: tuple[str, ...] = ()
    """The targets of other turns of its table, in which the same person may be told."""
    first: tuple[str, ...] = ()
    """Those of them in which the same person is told at the same time: only if they tell no one, this one does."""

    @property
    def recipient(self) -> str:
        """Return who is told; empty: no one in particular."""
        return self.delegate or self.target.person


def addressed(target: NotifyTarget, directory: Directory, now: int) -> PersonAddress:
    """Return where a target is told: at its own place, at that of its person, or of who stands in for them now."""
    if not target.person:
        return PersonAddress(target)
    delegate = directory.stand_in(target.person, now)
    if not delegate or not place_of(directory, delegate, target.way):
        delegate = ""
    place = place_of(directory, delegate or target.person, target.way)
    return PersonAddress(replace(target, **{target.way: (place,) if target.way == "email" else place}), delegate)


def place_of(directory: Directory, person: str, way: str) -> str:
    """Return where a person is told by a way; empty: nowhere. Who has no device yet may add one at any time."""
    if way == "push":
        return person
    account = directory.places.get((person, way), "")
    return account.rpartition("/")[2] if way == "slack" else account
