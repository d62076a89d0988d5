"""Events about processes that run jobs. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from remit.journal.kinds.payload import Payload


class WorkerStarted(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a worker: a process works on jobs from now on; it leases the stream while it lives."""

    KIND: ClassVar[str] = "worker_started"
    owner: str
    """The process, as in its leases."""
    role: str
    """What was started: `worker`, `serve`, `tickets` or, of a program that opened a Remit, `python`."""
    remit: str
    """The version of Remit."""
    recipes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The recipes that it runs, with the execution versions that it runs them as."""
    settings_file: str = ""
    """The remit.toml that it has read."""
    settings_digest: str = ""
    """The SHA-256 of that file as it was then."""
