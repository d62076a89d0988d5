"""The arguments of a call as a model wrote them.

Identifiers of calls towards a provider: its own if they are good enough, else one made from ours.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import Any, Final

import msgspec

from remit.models.message import Message
from remit.regex import regex

_BLANKS: Final = " \t\r\n"


class InvalidArgumentsError(Exception):
    """The model's text is not a JSON object."""


def sent(text: str) -> str:
    """Arguments as they go back to a provider, which wants an object where the model wrote nothing."""
    return text if text.strip(_BLANKS) else "{}"


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments; no text, or only blanks, means none. Raises InvalidArgumentsError, repairs nothing."""
    if not text.strip(_BLANKS):
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments are {json.dumps(value)[:40]}, not a JSON object")
    return value


_FIT: Final = regex(r"[a-zA-Z0-9_-]{1,64}")
_LENGTH: Final = 9
"""Letters and digits: the strictest servers take exactly nine."""


def wire_ids(messages: list[Message], provider: str) -> dict[str, str]:
    """For each of our identifiers the one to send.

    The provider's own goes back to it, if no other call of the conversation has the same; any other is replaced by nine
    letters and digits that are the same every time.
    """
    calls = [(message, call) for message in messages for call in message.calls]
    counts = Counter(call.wire_id for _, call in calls)
    chosen: dict[str, str] = {}
    for message, call in calls:
        own = (
            message.producer.partition("/")[0] == provider
            and counts[call.wire_id] == 1
            and _FIT.fullmatch(call.wire_id)
        )
        chosen[call.id] = call.wire_id if own else sha256(call.id.encode()).hexdigest()[:_LENGTH]
    return chosen
