"""Where clients come in: a socket, TLS, the guard that looks at them, and the access log."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remit.cli.values import usage_error
from remit.errors import SettingsError, UsageError
from remit.http.guard import Guard
from remit.http.router import AccessLog
from remit.settings.clients import bearer, clients, grant
from remit.settings.principal import principal

if TYPE_CHECKING:
    from remit.cli.context import CommandState
    from remit.cli.listen_options import ListenOptions
    from remit.clock import Clock
    from remit.http.issuers import Issuers
    from remit.http.people import People
    from remit.http.router import PartMount
    from remit.settings import Settings
    from remit.settings.clients import Clients


def issuers_of(known: Clients, settings: Settings, clock: Clock) -> Issuers | None:
    """The issuers whose tokens count; None if no client has one. Raises SettingsError if what reads them is missing."""
    grants = [grant(client) for client in known.clients if client.issuer]
    if not grants:
        return None
    try:
        from remit.http.issuers import Issuers
    except ModuleNotFoundError as error:
        reason = f"tokens of issuers need {error.name}, which is not installed"
        raise SettingsError(reason, remedy="Install it: pip install 'remit[jwt]'") from error
    taken = {client.principal for client in known.clients if not client.issuer}
    return Issuers(
        grants,
        clock,
        taken=frozenset({*taken, principal(settings)}),
        url=settings.serve.public_url,
        scheme="https" if settings.serve.tls_cert else "http",
    )


class ServerDoor:
    """The socket that a command that serves over HTTP opens."""

    def __init__(
        self,
        state: CommandState,
        listening: ListenOptions,
        settings: Settings,
        clock: Clock,
        people: People | None = None,
    ) -> None:
        self._state = state
        self._listening = listening
        self._clock = clock
        self._drain_s = settings.serve.drain_seconds
        self._known = clients(settings)
        tokens = [bearer(client, os.environ) for client in self._known.clients if not client.issuer]
        cert, key = settings.serve.tls_cert, settings.serve.tls_key
        private = bool(cert) or settings.serve.without_tls
        issuers = issuers_of(self._known, settings, clock)
        self.guard = Guard.of(
            listening.host, listening.known_as, tokens, clock, private=private, issuers=issuers, people=people
        )
        self._tls = None
        if cert or key:
            from remit.http.server import server_context

            self._tls = server_context(cert, key)

    async def serve(self, mounts: Sequence[PartMount], path: str, stop: asyncio.Event) -> None:
        """Serve `mounts` until `stop` is set, and say at which URL and whom. Raise UsageError if that cannot be."""
        from remit.http import server
        from remit.http.router import Router

        with self._access_log() as log, self._socket() as taken:
            self._announce(taken, path)
            await server.serve(Router(self.guard, mounts, log), taken, stop, tls=self._tls, drain_s=self._drain_s)

    def _announce(self, taken: socket.socket, path: str) -> None:
        """Print the URL at once: the program that started this one may read it from a pipe."""
        state, host = self._state, self._listening.host
        shown = f"[{host}]" if ":" in host else host
        state.output.out.line(f"http{'s' if self._tls else ''}://{shown}:{taken.getsockname()[1]}{path}")
        state.output.out.flush()
        for warning in self._known.warnings:
            state.note(warning)
        named = sorted({client.principal for client in self._known.clients})
        if self.guard.people is not None:
            named.append(f"people of {self.guard.people.issuer}")
        who = ", ".join(named) or "anyone on this machine"
        state.note(f"serves {who}; stop with Ctrl-C")

    @contextmanager
    def _access_log(self) -> Iterator[AccessLog | None]:
        """The log that was asked for, open within the block. Raise UsageError if its file cannot be opened."""
        name = self._listening.access_log
        if not name:
            yield None
        elif name == "-":
            yield AccessLog(sys.stderr, self._clock)
        else:
            with usage_error(f"--access-log: {name}"):
                # Only the owner reads it: it says who did what. A line at a time, so that it can be followed.
                handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                yield AccessLog(out, self._clock)

    def _socket(self) -> socket.socket:
        """A socket that listens. Raise UsageError if the address cannot be had."""
        from remit.http.server import listen

        host, port = self._listening.host, self._listening.port
        try:
            return listen(host, port)
        except OSError as error:
            reason = f"cannot listen on {host} port {port}: {error.strerror or error}"
            raise UsageError(reason, remedy="Choose another address or port with --host or --port.") from error
