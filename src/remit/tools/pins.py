"""Pins: a server's tools as a person, or the first use, took them; any change since is shown first.

A pin holds the hash of each tool's raw definition, so that no word a model reads can change unseen, and with the
hashes the set of names: a tool under a new name is a new tool. Each server's pins are a stream of the journal
(`mcp/<server>`), the last one counts; the definitions lie beside it, so that a change can be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.canonical import MAX_INT, digest, sha256
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, JournalError, NotCanonicalError, SettingsError
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch
from remit.journal.kinds import McpToolsPinned, decode
from remit.journal.proven import ProvenStream

if TYPE_CHECKING:
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal


KIND: Final = "mcp_server"
"""The kind of their streams."""
How = Literal["first_use", "pin", "approve"]
Definitions = Mapping[str, dict[str, Any]]


class Changes(msgspec.Struct, frozen=True):
    """How a server's tools differ from their pin; names are the server's own."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether they differ at all."""
        return bool(self.added or self.changed or self.removed)


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken, by whom and when."""

    server: str
    seq: int
    """Its event's place in the server's stream."""
    at: int
    """Microseconds since the Unix epoch."""
    how: How
    by: str
    tools: dict[str, str]
    """Hash of the raw definition by the server's own name."""
    names_hash: str
    definitions: dict[str, dict[str, Any]]

    def compare(self, definitions: Definitions) -> Changes:
        """Return how the tools of today differ."""
        return Changes(
            added=tuple(name for name in definitions if name not in self.tools),
            changed=tuple(
                name for name, raw in definitions.items() if name in self.tools and hash_of(raw) != self.tools[name]
            ),
            removed=tuple(name for name in self.tools if name not in definitions),
        )


class Pins:
    """The pins of all servers, in the journal."""

    def __init__(self, journal: Journal, *, trust: bool, principal: str) -> None:
        self._journal = journal
        self._trust = trust
        self._principal = principal

    async def load(self, server: str) -> Pin | None:
        """The pin that counts. Raises ChainBrokenError where the pins were not written by Remit (rule 14)."""
        for event in reversed(await ProvenStream(self._journal, stream_of(server)).more()):
            pinned = decode(event.kind, event.data)
            if isinstance(pinned, McpToolsPinned):
                encoded = await self._journal.value(pinned.definitions, pinned.definitions_blob)
                return Pin(
                    server=server,
                    seq=event.seq,
                    at=event.at,
                    how=pinned.how,
                    by=pinned.by,
                    tools=pinned.tools,
                    names_hash=pinned.names_hash,
                    definitions=msgspec.json.decode(encoded) if encoded is not None else {},
                )
        return None

    async def record(
        self, server: str, definitions: Definitions, *, how: How, by: str = "", over: Pin | None = None
    ) -> Pin:
        """Take these definitions from now on; with `over`, in the place of that pin and no other.

        Raises AppendConflictError where someone else pins at this moment, or has pinned since.
        """
        head = await self._journal.head(stream_of(server))
        if over is not None and (head is None or head.seq != over.seq):
            raise AppendConflictError(f"{server} has a newer pin")
        return await self._record(server, definitions, head, how=how, by=by or self._principal)

    async def withheld(self, server: str, definitions: Definitions) -> dict[str, str]:
        """The tools that must not be used, with the reason and what to do about it."""
        try:
            pin = await self.load(server)
        except ChainBrokenError as error:
            reason = f"{error.code.name}: {error.message}. Its pins are not trusted: run `remit verify`"
            return dict.fromkeys(definitions, reason)
        if pin is None and self._trust:
            try:
                await self._record(server, definitions, None, how="first_use", by=self._principal)
            except AppendConflictError:
                pin = await self.load(server)  # another process saw the server first
            except JournalError as error:
                if error.code is not Code.JOURNAL_MISSING:
                    raise
                return {}  # who looks where nothing was used yet takes nothing
            else:
                return {}
        if pin is None:
            reason = f"the MCP server {server} was never pinned. Review its tools, then: remit mcp pin {server}"
            return dict.fromkeys(definitions, reason)
        changes = pin.compare(definitions)
        look = f"See the change: remit mcp diff {server}"
        return {
            **dict.fromkeys(changes.added, f"it is new since {server} was pinned. {look}"),
            **dict.fromkeys(changes.changed, f"it changed since {server} was pinned. {look}"),
        }

    async def reviewed(self, server: str) -> bool:
        """Say whether a person, not the first use alone, has pinned the server's tools, and approves each change since.

        A server without a pin needs no look yet: nothing of it can be used. Raises ChainBrokenError as `load` does.
        """
        events = await ProvenStream(self._journal, stream_of(server)).more()
        pins = [payload for event in events if isinstance(payload := decode(event.kind, event.data), McpToolsPinned)]
        return not pins or any(payload.how == "pin" for payload in pins)

    async def changed(self, server: str, seq: int) -> None:
        """Wait until the server's pin is another one than that at `seq` (0: none)."""
        mark = 0
        while True:
            mark = await self._journal.heads_changed(mark)
            head = await self._journal.head(stream_of(server))
            if (head.seq if head is not None else 0) != seq:
                return

    async def seq(self, server: str) -> int:
        """The place of the pin that counts; 0: there is none."""
        head = await self._journal.head(stream_of(server))
        return head.seq if head is not None else 0

    async def _record(
        self, server: str, definitions: Definitions, head: StreamHead | None, *, how: How, by: str
    ) -> Pin:
        packed = pack(msgspec.json.encode(definitions))
        tools = {name: hash_of(raw) for name, raw in definitions.items()}
        pinned = McpToolsPinned(
            server=server,
            how=how,
            by=by,
            tools=tools,
            names_hash=digest(sorted(tools)),
            definitions=packed.inline,
            definitions_blob=packed.ref,
        )
        writer = self._journal.writer(stream_of(server), KIND, head)
        draft = writer.draft(pinned, patch=HeadPatch(state="pinned", title=server))
        await self._journal.commit(draft, synced=True, blobs=packed.blobs)
        return Pin(
            server=server,
            seq=head.seq + 1 if head is not None else 1,
            at=self._journal.clock.now(),
            how=how,
            by=by,
            tools=tools,
            names_hash=pinned.names_hash,
            definitions=dict(definitions),
        )


def stream_of(server: str) -> str:
    """The stream of a server's pins."""
    return f"mcp/{server}"


def hash_of(raw: Mapping[str, Any]) -> str:
    """Digest of a raw definition; where it has no canonical form, of the nearest thing to one.

    Integers beyond ±(2^53 - 1) had none when the first pins were recorded, which have to hold.
    """
    with suppress(NotCanonicalError):
        value = digest(raw)
        if not _has_wide(raw):
            return value
    import json  # noqa: PLC0415 - for definitions that are not canonical

    return f"not canonical, {sha256(json.dumps(raw, sort_keys=True).encode())}"


def _has_wide(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_wide, value.values()))
    if isinstance(value, list):
        return any(map(_has_wide, value))
    return isinstance(value, int) and not -MAX_INT <= value <= MAX_INT


class PinFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: the definitions of each server's tools, by the server's own names, as the server words them."""

    version: Literal[1] = 1
    servers: dict[str, dict[str, dict[str, Any]]]


def written_pins(servers: dict[str, Definitions]) -> bytes:
    """The file's text: sorted and indented, so that a change is easy to review."""
    pins = PinFile(servers={name: dict(tools) for name, tools in servers.items()})
    return msgspec.json.format(msgspec.json.encode(pins, order="sorted"), indent=2) + b"\n"


def read_pins(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The definitions that a file holds, by server. Raises SettingsError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=PinFile).servers
    except OSError as error:
        reason = error.strerror or str(error)
    except msgspec.DecodeError as error:
        reason = str(error)
    raise SettingsError(f"mcp.pins_file: {path}: {reason}", remedy="Write it again: remit mcp pin --export FILE")
