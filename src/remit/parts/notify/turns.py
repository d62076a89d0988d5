"""Turns: people who are told one after the other, each in a place of their own, or who stands in for them.

`ask = ["ann", "bob after 15m", "@leads after 1h"]` makes a target for each person, which is told after that time if no
one has answered by then; a group's turn passes over who had one before. Whom a message goes to is looked up as it
goes: to the delegate of who is absent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from remit.errors import SettingsError
from remit.jobs.plans.problem import EXPECTED, parse_duration
from remit.parts.notify.people import Directory, read_directory
from remit.parts.notify.settings import NotifySettings
from remit.parts.notify.target import OPEN, NotifyTarget, target_of
from remit.policy.groups import PROVIDED, parse_groups
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.settings import Settings

_TURN: Final = re.compile(r"(\S+)(?: after (\S+))?")
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
            targets.append(replace(target, name=f"{target.name}-{slug}", ask=(), person=person, after=after, on=on))
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
