"""Named groups of people, tools and callers: `@clerks` in a rule stands for all that `[policy.groups]` lists there.

Names are put in the place of groups before a rule is read, so that the policy hash covers who is meant.

`@idp:clerks` among approvers is a group of the provider at which people log in. It stays a name: its members are those
whom the provider counts among it when they decide, and none of `[policy.groups]`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from remit.errors import PolicyError
from remit.policy.table import closest
from remit.regex import regex

Groups = Mapping[str, tuple[str, ...]]

_SIGN: Final = "@"
PROVIDED: Final = "@idp:"
"""The beginning of the name of a provider's group."""
_NAME: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEYS: Final = ("approvers", "callers", "providers", "tools")
"""Where a group may stand."""
NO_GROUPS: Final[Groups] = {}


def most_of(approvers: Collection[str]) -> float:
    """The number of people that approvers can be at most."""
    return float("inf") if any(name.startswith(PROVIDED) for name in approvers) else len(approvers)


def groups_of(approvers: Iterable[str], groups: Collection[str]) -> tuple[str, ...]:
    """The provider's groups among approvers that someone is in."""
    named = (name.removeprefix(PROVIDED) for name in approvers if name.startswith(PROVIDED))
    return tuple(name for name in named if name in groups)


def may_decide(approvers: Collection[str], who: str, groups: Collection[str] = ()) -> bool:
    """Return whether someone in these groups of the provider is among approvers; without any, everyone is."""
    return not approvers or (who in approvers and not who.startswith(_SIGN)) or bool(groups_of(approvers, groups))


def parse_groups(raw: Mapping[str, Any]) -> Groups:
    """The groups of a file. Raises PolicyError."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in raw.items():
        listed = (members,) if isinstance(members, str) else tuple(members) if isinstance(members, list | tuple) else ()
        if not _NAME.fullmatch(name):
            raise PolicyError(f"policy.groups: {name!r} is not a name", remedy="Use letters, digits, '_' and '-'.")
        if not listed or not all(isinstance(entry, str) and entry for entry in listed):
            raise PolicyError(f"policy.groups.{name} must list names", remedy=f'Write {name} = ["ann", "bob"].')
        if nested := next((entry for entry in listed if entry.startswith(_SIGN)), None):
            raise PolicyError(f"policy.groups.{name} holds the group {nested!r}", remedy="List its members instead.")
        groups[name] = listed
    return groups


def expanded(raw: Iterable[object], groups: Groups) -> list[object]:
    """Raw rule tables with members in the place of groups. Raises PolicyError for a group that there is not."""
    return [
        {key: _members(rule, key, value, groups) if key in _KEYS else value for key, value in rule.items()}
        if isinstance(rule, Mapping) and _names_groups(rule)
        else rule
        for rule in raw
    ]


def _names_groups(rule: Mapping[str, Any]) -> bool:
    return any(_SIGN in str(rule.get(key, "")) for key in _KEYS)


def _members(rule: Mapping[str, Any], key: str, value: Any, groups: Groups) -> Any:
    """A list with members in the place of groups; `mcp:@clerks` are the clerks, as far as they come over MCP."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return value
    members: list[Any] = []
    for item in items:
        before, sign, name = item.rpartition(_SIGN) if isinstance(item, str) else ("", "", "")
        provided = (
            key == "approvers" and isinstance(item, str) and len(item) > len(PROVIDED) and item.startswith(PROVIDED)
        )
        if provided or not sign or (before and not (key == "callers" and before.endswith((":", "/")))):
            members.append(item)
        elif name not in groups:
            remedy = closest(name, groups) or f'Add it to [policy.groups]: {name} = ["…"].'
            raise PolicyError(
                f'rule ({rule.get("id", "without an id")}), key "{key}" names the group {item!r}, which there is not',
                remedy=remedy,
            )
        else:
            members += [before + member for member in groups[name]]
    return list(dict.fromkeys(members)) if all(isinstance(member, str) for member in members) else members
