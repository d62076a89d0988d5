"""The devices of people that are told by Web Push: a stream for each, kept in the journal.

What seals and sends needs packages of an extra (push.py), and is loaded where a device is told or asked for.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from remit.codes import Code
from remit.errors import AppendConflictError, UsageError
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import decode
from remit.journal.scan import every_head
from remit.parts.notify.kinds import PushEnded, PushSubscribed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal
    from remit.parts.notify.sender import AttemptEnd, Notice
    from remit.parts.notify.target import NotifyTarget

KIND: Final = "push_subscription"
_WHO: Final = "principal"
_WHERE: Final = "endpoint"
_SERVICES: Final = (
    "https://fcm.googleapis.com/",
    "https://updates.push.services.mozilla.com/",
    "https://web.push.apple.com/",
)
_ENDPOINT: Final = 2_048
"""Characters of the longest address of a device."""
DEVICES: Final = 20
"""Devices of a person that are told."""


def _is_plain(endpoint: str) -> bool:
    """Return whether an address is sent to as it stands: no part of it leads to another place."""
    plain = endpoint.isascii() and endpoint.isprintable() and not {*" \\#"} & {*endpoint}
    steps = unquote(urlsplit(endpoint).path).split("/")
    return plain and len(endpoint) <= _ENDPOINT and "." not in steps and ".." not in steps


class Device(NamedTuple):
    """A browser that takes notices, and its stream."""

    head: StreamHead
    subscription: PushSubscribed


class Devices:
    """The devices of people, over one journal."""

    def __init__(self, journal: Journal, targets: Sequence[NotifyTarget], environ: Mapping[str, str]) -> None:
        self._journal = journal
        self._targets = [target for target in targets if target.push]
        self._environ = environ

    @property
    def key(self) -> str:
        """Return the public key that browsers ask for; empty: no target tells devices. Raises as `key_of` does."""
        if not self._targets:
            return ""
        from remit.parts.notify.push import key_of, public_text  # noqa: PLC0415 - an extra

        return public_text(key_of(self._targets[0], self._environ))

    async def of(self, principal: str) -> list[Device]:
        """The devices of a person that take notices."""
        return await self._open({_WHO: principal})

    async def _open(self, labels: dict[str, str]) -> list[Device]:
        query = HeadQuery(kind=KIND, states=("open",), labels=labels)
        heads = [head async for head in every_head(self._journal, query)]
        events = [(head, (await self._journal.read(head.stream))[0]) for head in heads]
        payloads = [(head, decode(event.kind, event.data)) for head, event in events]
        return [Device(head, payload) for head, payload in payloads if isinstance(payload, PushSubscribed)]

    async def add(self, subscription: PushSubscribed) -> None:
        """Let a device take notices, and for its last person no more. Raises UsageError for what no browser says."""
        from remit.parts.notify.push import are_keys  # noqa: PLC0415 - an extra

        apis = (*_SERVICES, *(f"{target.api.rstrip('/')}/" for target in self._targets if target.api))
        is_known = _is_plain(subscription.endpoint) and subscription.endpoint.startswith(apis)
        if not is_known or not are_keys(subscription.p256dh, subscription.auth):
            remedy = "Ask for it on a device of Chrome, Firefox or Safari, or name its service in api."
            raise UsageError("this browser's push service is not known here", code=Code.INVALID_INPUT, remedy=remedy)
        name = f"{subscription.principal} {subscription.endpoint} {subscription.key}"
        stream = f"push/{hashlib.sha256(name.encode()).hexdigest()[:32]}"
        where = hashlib.sha256(subscription.endpoint.encode()).hexdigest()[:32]
        for device in await self._open({_WHERE: where}):  # first: what is ann's never shows where bob reads
            if device.subscription.principal != subscription.principal:
                await self.end(device, f"{subscription.principal} took the device over")
        patch = HeadPatch(state="open", labels={_WHO: subscription.principal, _WHERE: where}, title=subscription.device)
        place, times = stream, 1
        while (head := await self._journal.head(place)) is not None and head.closed:
            times += 1
            place = f"{stream}/{times}"
        if head is None:
            if len(await self.of(subscription.principal)) >= DEVICES:
                remedy = "Take one of them out on the page Devices."
                raise UsageError(f"{DEVICES} devices are told already", code=Code.INVALID_INPUT, remedy=remedy)
            writer = self._journal.writer(place, KIND)
            with suppress(AppendConflictError):  # it is there
                await self._journal.append(writer, subscription, synced=True, patch=patch)

    async def end(self, device: Device, reason: str) -> None:
        """Let a device take notices no more."""
        writer = self._journal.writer(device.head.stream, KIND, device.head)
        with suppress(AppendConflictError):
            patch = HeadPatch(state="ended", closed=True)
            await self._journal.append(writer, PushEnded(reason=reason), synced=True, patch=patch)

    async def send(self, target: NotifyTarget, message: Notice) -> AttemptEnd:
        """Send a message to every device of a target's person: one attempt. Raises SettingsError or UsageError."""
        from remit.parts.notify.push import key_of, public_text, push  # noqa: PLC0415 - an extra
        from remit.parts.notify.sender import AttemptEnd  # noqa: PLC0415 - as above

        key = key_of(target, self._environ)
        devices = [device for device in await self.of(target.push) if device.subscription.key == public_text(key)]
        if not devices:
            words = f"{target.push} has no device that takes notices: /devices in the console"
            return AttemptEnd(ok=False, words=words)
        attempts = []
        for device in devices:
            attempt, ended = await push(device.subscription, message, key, self._journal.clock.now())
            if ended:
                await self.end(device, ended)
            attempts.append(attempt)
        return next((attempt for attempt in attempts if attempt.ok), attempts[0])
