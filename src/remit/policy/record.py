"""Reads recorded rules back: the text that is kept under a policy's hash becomes the policy again, with the same hash.

The text is what `Rule.canonical` writes. It differs from what people write in a few keys, which are brought back here;
then the rules are read as those of a file are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.errors import PolicyError
from remit.policy.decision import TAINTS
from remit.policy.levels import DEFAULTS_VERSION
from remit.policy.overlay import Overlay
from remit.policy.rule import Rule, parse_rule
from remit.policy.rules import Policy

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = 60
_OTHER: Final = "They were recorded by another version of Remit, and only that one can apply them."


def overlays_named(text: bytes) -> tuple[str, ...]:
    """The digests of the overlays that a policy's text names, in their order. Raises PolicyError."""
    return tuple(map(str, _decoded(text).get("overlays", ())))


def policy_of(text: bytes, overlays: Iterable[bytes] = ()) -> Policy:
    """The policy that a kept text is of, with the texts of its overlays. Raises PolicyError if it cannot be applied."""
    document = _decoded(text)
    if document.get("defaults") != DEFAULTS_VERSION:
        raise PolicyError(f"these rules stand on the defaults {document.get('defaults')!r}", remedy=_OTHER)
    taint = next((taint_name for taint_name in TAINTS if taint_name == document.get("taint", "ask")), None)
    if taint is None:
        raise PolicyError(f"these rules have the taint {document['taint']!r}", remedy=_OTHER)
    policy = Policy(_rules(document), [overlay_of_text(taint_name) for taint_name in overlays], taint=taint)
    if policy.text != text:
        raise PolicyError("these rules do not read back as they were recorded", remedy=_OTHER)
    return policy


def overlay_of_text(text: bytes) -> Overlay:
    """The overlay that a kept text is of. Raises PolicyError."""
    document = _decoded(text)
    tools = tuple(document.get("tools", ())) if document.get("lists") else None
    return Overlay(
        source=str(document.get("source", "")), rules=_rules(document), tools=tools, key=sha256(text), text=text
    )


def rule_of(recorded: Mapping[str, Any], number: int = 1) -> Rule:
    """The rule that `Rule.canonical` wrote so. Raises PolicyError."""
    raw = dict(recorded)
    source, _, name = str(raw.pop("id", "")).rpartition(":")
    if "expires_s" in raw and (seconds := raw.pop("expires_s")) is not None:
        raw["expires"] = seconds
    if isinstance(limit := raw.get("limit"), Mapping):
        raw["limit"] = {key: value for key, value in limit.items() if value != []}
    for key in ("during", "outside"):
        if isinstance(window := raw.get(key), Mapping):
            raw[key] = _window(window)
    if "reason" in raw and not raw["reason"]:
        del raw["reason"]
    rule = parse_rule({**raw, "id": name}, number)
    return msgspec.structs.replace(rule, id=f"{source}:{name}") if source else rule


def _window(recorded: Mapping[str, Any]) -> dict[str, Any]:
    raw = dict(recorded)
    if "days" in raw:
        raw["days"] = [_DAYS[day] for day in raw["days"]]
    if "hours" in raw:
        raw["hours"] = "-".join(f"{at // _HOUR:02}:{at % _HOUR:02}" for at in raw["hours"])
    for key in ("since", "until"):
        if key in raw:
            raw[key] = _EPOCH + timedelta(microseconds=raw[key])
    return raw


def _rules(recorded: Mapping[str, Any]) -> tuple[Rule, ...]:
    try:
        return tuple(rule_of(rule, number) for number, rule in enumerate(recorded.get("rules", ()), 1))
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise PolicyError(f"a recorded rule cannot be read: {error}", remedy=_OTHER) from error


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise PolicyError(f"recorded rules cannot be read: {error}", remedy=_OTHER) from error
