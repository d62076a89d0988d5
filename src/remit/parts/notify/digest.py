"""Many messages as one: which of a target's go together, and what the one says.

So many go one by one; what comes beyond within 30 seconds is gathered. The first of those carries the others, whose
streams name it: it is sent when the time is over, and one write records that for all of them. One that was not
carried after all is sent by itself later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import SECOND, isoformat
from remit.parts.notify.sender import Notice, title_of

if TYPE_CHECKING:
    from remit.parts.notify.occasion import Occasion
    from remit.parts.notify.target import EventName

DIGEST: Final = "digest"
"""The label with the notification that carries one."""
TOGETHER: Final = 30 * SECOND
"""Microseconds within which messages count as of one time."""
LATE: Final = 3_600 * SECOND
"""So long after its carrier's time a message looks whether it was carried."""
_MOST: Final = 500
_LINES: Final = 10
_WORDS: Final[dict[EventName, tuple[str, str]]] = {
    "question": ("1 question waits for an answer", "{} questions wait for an answer"),
    "uncertain": ("1 outcome is unknown", "{} outcomes are unknown"),
    "stuck": ("1 job is stuck", "{} jobs are stuck"),
    "failed": ("1 job failed", "{} jobs failed"),
    "expired": ("1 question expired", "{} questions expired"),
    "budget": ("1 level of a budget is reached", "{} levels of budgets are reached"),
}


class _Carrier(msgspec.Struct):
    notification: str
    due: int
    carried: int = 0


class Rhythm:
    """Says when each message of a target goes, and with which others."""

    def __init__(self, singles: int) -> None:
        self._singles = singles
        self._dues: list[int] = []
        self._carriers: list[_Carrier] = []

    def place(self, notification: str, due: int, now: int) -> tuple[int, str]:
        """Return when a message goes that is due then, and what carries it: itself, if it carries others; or nothing.

        All times are microseconds since the Unix epoch.
        """
        self._dues = [at for at in self._dues if at > now - TOGETHER]
        self._carriers = [carrier for carrier in self._carriers if carrier.due > now - TOGETHER]
        for carrier in self._carriers:
            if now < carrier.due and due <= carrier.due <= due + TOGETHER and carrier.carried < _MOST:
                carrier.carried += 1
                return carrier.due + LATE, carrier.notification
        near = [at for at in self._dues if abs(at - due) < TOGETHER]
        if len(near) < self._singles and not any(abs(carrier.due - due) < TOGETHER for carrier in self._carriers):
            self._dues.append(due)
            return due, ""
        self._carriers.append(_Carrier(notification, due + TOGETHER))
        return due + TOGETHER, notification

    def forget(self, notification: str) -> None:
        """Let nothing more be carried by a notification, since another process queued it."""
        self._carriers = [carrier for carrier in self._carriers if carrier.notification != notification]


def digest_of(notification: str, occasions: Sequence[Occasion], console: str) -> Notice:
    """Return the message about many events; `console` is the base URL of the pages, empty if there is none."""
    events = Counter(occasion.event for occasion in occasions)
    counts = [
        singular if events[event] == 1 else plural.format(events[event])
        for event, (singular, plural) in _WORDS.items()
        if events[event]
    ]
    about = Counter(
        title_of(occasion) + (f" ({occasion.recipe})" if occasion.recipe and occasion.tool else "")
        for occasion in occasions
    ).most_common()
    rest = sum(number for _, number in about[_LINES:])
    asks = bool(events["question"])
    return Notice(
        id=notification,
        event=DIGEST,
        at=isoformat(max(occasion.at for occasion in occasions)),
        title=", ".join(counts),
        url=f"{console.rstrip('/')}/{'inbox' if asks else 'jobs'}" if console else "",
        command="remit confirm" if asks else "remit jobs",
        about=(*(f"{what}: {number}" for what, number in about[:_LINES]), *([f"{rest} more"] if rest else [])),
    )
