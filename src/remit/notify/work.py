"""Notifications as work of an engine: streams of targets are followed, streams of notifications delivered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from remit.notify.delivery import Delivery
from remit.notify.following import KIND, Follower, stream_of

if TYPE_CHECKING:
    from remit.engines.port import Execution
    from remit.journal.event import Lease
    from remit.journal.journal import Journal
    from remit.notify.sender import Sender
    from remit.notify.target import Target


class NotificationWork:
    """The work of telling some targets. A process takes the streams of the targets that its settings name."""

    def __init__(self, journal: Journal, targets: Sequence[Target], sender: Sender, console: str) -> None:
        """Tell `targets`, of which there is at least one, by `sender`; `console` is the base URL of the pages."""
        self._journal = journal
        self._targets = {target.name: target for target in targets}
        self._sender = sender
        self._console = console

    @property
    def kind(self) -> str:
        return KIND

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def routes(self) -> tuple[str, ...]:
        return tuple(self._targets)

    @property
    def code(self) -> dict[str, tuple[str, ...]]:
        return {}

    async def late_routes(self) -> tuple[str, ...]:
        """None: a stream belongs to its target."""
        return ()

    async def left_routes(self, owner: str, served: Collection[str]) -> dict[str, str]:  # noqa: ARG002 - the port's
        """None: no stream is kept for one process."""
        return {}

    async def let_go(self, stream: str, owner: str) -> None:
        """Nothing is kept for one process."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - the port's
        return lambda: None

    def take(self, lease: Lease, keeper: str) -> Execution:  # noqa: ARG002 - the port's
        target = self._targets[lease.head.route]
        if lease.head.stream == stream_of(target.name):
            return Follower(self._journal, target, lease)
        return Delivery(self._journal, target, self._sender, lease, self._console)
