"""An overlay: what a job, a ticket or a skill adds to the policy for its own calls. It only makes it stricter (rule 8).

It holds deny and ask rules, and may list the only tools that are allowed. Since deny > ask > allow and the order of
rules does not matter, adding rules that restrict never lets a call through that the policy itself stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from remit.canonical import canonical, sha256
from remit.errors import PolicyError
from remit.policy.globs import is_glob, name_matches
from remit.policy.rule import Rule, parse_rules, tools_of
from remit.policy.table import Table


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """Restrictions for some calls."""

    source: str
    """The source that adds them, such as `job`; the ids of its rules begin with it."""
    rules: tuple[Rule, ...] = ()
    tools: tuple[str, ...] | None = None
    """The only tools that may be called, by full name, glob or exact key; None: it does not say."""
    key: str = ""
    """Digest of everything it says."""
    text: bytes = b""
    """The same in canonical JSON."""

    def lists(self, name: str, key: str) -> bool:
        """Return whether a tool is among those that may be called."""
        return self.tools is None or covers(self.tools, name, key)


def covers(tools: Iterable[str], name: str, key: str) -> bool:
    """Return whether one of these full names, globs and exact keys means the tool of this full name and key."""
    return any(name_matches(pattern, name) or pattern == key for pattern in tools)


def within(pattern: str, tools: Iterable[str]) -> bool:
    """Return whether every tool that a pattern covers is one of `tools`, as far as their text shows it."""
    # A star may stand for a star in the other pattern; a question mark may not.
    wider = [tool for tool in tools if tool == pattern or not (is_glob(pattern) and "?" in tool)]
    return covers(wider, pattern, pattern)


def parse_overlay(source: str, rules: Iterable[object] = (), tools: Sequence[str] | None = None) -> Overlay:
    """An overlay from raw rule tables and patterns of tools. Raises PolicyError, also for a rule that allows."""
    parsed = parse_rules(rules)
    for rule in parsed:
        if rule.effect == "allow":
            raise PolicyError(
                f"rule {rule.number} ({rule.id}) of the {source} allows, but rules that a {source} adds can only "
                "restrict",
                remedy='Use effect = "deny" or "ask"; allow rules belong in the policy of remit.toml.',
            )
    named = tuple(msgspec.structs.replace(rule, id=f"{source}:{rule.id}") for rule in parsed)
    listed = None if tools is None else tools_of(Table({"tools": list(tools)}, source, ("tools",))) if tools else ()
    fields = {"source": source, "rules": [rule.canonical() for rule in named], "tools": sorted(listed or ())}
    text = canonical(fields | {"lists": listed is not None})
    return Overlay(source=source, rules=named, tools=listed, key=sha256(text), text=text)
