"""Events of sessions of clients, of their requests, and of MCP servers. All of these are ours.

Events of a journal as a whole: copied, moved, rid of a subject's values or of old events. All of these are ours.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload


class SessionOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in a session's stream: the caller of calls outside any job."""

    KIND: ClassVar[str] = "session_opened"
    session: str
    face: Literal["mcp", "http", "python", "cli", "hook"] = "mcp"
    principal: str = ""
    client: str = ""
    """The program, as it names itself."""
    client_version: str = ""
    via: str = ""
    """The transport of an MCP client: `stdio` or `http`; of a `hook`, the mode of the guard."""
    client_session: str = ""
    """The client's own name for the session, such as `claude/` and an id, if its calls come by hooks."""
    begin_unseen: bool = False
    """Whether a call came first, although its agent's hooks tell of a session's begin."""
    run: str = ""
    """The stream of the recorded program whose agent makes the calls (`remit record --governed`); empty: of none."""
    token_issuer: str = ""
    """The issuer of the token (JWT) that proved who came; empty: it was a token of `[[clients]]`, or there was none."""
    token_subject: str = ""
    """The subject of that token (`sub`)."""
    token_key: str = ""
    """The id of the issuer's key that it is signed with (`kid`)."""


class CallOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a call from outside any job that asks a person or has an idempotency key."""

    KIND: ClassVar[str] = "call_opened"
    call: str
    session: str
    """The session it was first made in."""
    step: str
    principal: str
    tool_name: str
    """The tool, as it was asked for."""
    request_hash: str
    """Binds the tool's name and the arguments as they were given."""
    key_hash: str = ""
    """Digest of principal and idempotency key; empty: the call has no key."""


class CallContinued(Payload, frozen=True, kw_only=True):
    """Ours, in the streams of the session and of the call: made again in another session, with no question open."""

    KIND: ClassVar[str] = "call_continued"
    call: str
    step: str
    session: str
    """The session that made it again, in which it runs."""
    asked_in: str
    """The session it was first made in."""
    tool_name: str = ""


class RequestTaken(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a request under an idempotency key that starts something."""

    KIND: ClassVar[str] = "request_taken"
    request: str
    operation: str
    """The route's name, such as `jobs.start`."""
    body_hash: str
    """Digest of the body: the same key with another body is refused."""
    principal: str = ""


class RequestAnswered(Payload, frozen=True, kw_only=True):
    """Ours: the answer that every repetition of the request gets."""

    KIND: ClassVar[str] = "request_answered"
    status: int
    """The HTTP status."""
    answer: OptionalRaw = UNSET
    answer_blob: OptionalRef = UNSET


class RequestRelayed(Payload, frozen=True, kw_only=True):
    """Ours, in a session's stream: a request that is not a tool call was passed on to an MCP server as it was."""

    KIND: ClassVar[str] = "request_relayed"
    step: str
    provider_id: str
    method: str
    target: str = ""
    """The resource's URI or the prompt's name."""
    error: str = ""


class McpToolsPinned(Payload, frozen=True, kw_only=True):
    """Ours, in an MCP server's own stream: its tools were taken as they are, by a person or at their first use."""

    KIND: ClassVar[str] = "mcp_tools_pinned"
    server: str
    how: Literal["first_use", "pin", "approve"]
    by: str = ""
    tools: dict[str, str]
    """Hash of each raw definition by the server's own name."""
    names_hash: str = ""
    """Digest of the set of names."""
    definitions: OptionalRaw = UNSET
    definitions_blob: OptionalRef = UNSET


class McpRestartRequested(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `mcp_restarts`: a person wants an MCP server started again, in every process that uses it."""

    KIND: ClassVar[str] = "mcp_restart_requested"
    server: str
    by: str = ""
    process: str = ""
    """Owner of the leases of the process that did so at once; empty: none did."""


class JournalCopied(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: this journal is a copy, and runs no jobs until it is activated."""

    KIND: ClassVar[str] = "journal_copied"
    source: str
    """The journal it is a copy of."""
    complete: bool = False
    """Whether everything was copied and proven; until then a copy is under way, or was broken off."""


class JournalMoved(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: the work goes on in another journal, and never here."""

    KIND: ClassVar[str] = "journal_moved"
    target: str
    """The journal in which it goes on."""
    final: bool = False
    """Whether it is never taken back: a shard whose copy was proven, and may run from then on."""


class JournalActivated(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: this copy, or this journal that had moved, runs jobs from now on."""

    KIND: ClassVar[str] = "journal_activated"
    by: str = ""
    """The person who activated it; empty: a copy that was completed."""


class JournalVouched(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal/seals`: someone vouched for heads whose seals could not be checked."""

    KIND: ClassVar[str] = "journal_vouched"
    key: str
    """The id of the key that heads are sealed under from now on."""
    former: str
    """The id of the key that they were sealed under, which was not here."""
    by: str = ""
    """The person who vouched."""


class SubjectErased(Payload, frozen=True, kw_only=True):
    """Ours, in a subject's own stream: every value of its streams was erased in this transaction."""

    KIND: ClassVar[str] = "subject_erased"
    subject: str
    """Digest of the subject's name, in hexadecimal."""
    streams: int = 0
    """The number of streams that it had."""
    values: int = 0
    """The number of values and pieces of evidence that were erased."""
    left: int = 0
    """The number of values that stand in events of an older Remit, and could not be erased."""
    by: str = ""
    reason: str = ""


class StreamPruned(Payload, frozen=True, kw_only=True):
    """Ours, in the stream itself: every event before this one was removed in this transaction."""

    KIND: ClassVar[str] = "stream_pruned"
    events: int
    """The number of events that were removed."""
    hash: str
    """The chain value of the last of them, in hexadecimal: this event continues it."""
    first_at: int
    """The time of the first of them, in microseconds since the Unix epoch."""
    last_at: int
    """The time of the last of them."""
    state: str = ""
    """The state that the head said."""
    code: str = ""
    """Why a job had failed."""
    package: str = ""
    """The own hash of the evidence package that was archived before; empty: none was."""
    values: int = 0
    """The number of values that were removed with the stream and those that belong to it; said at its root."""
    by: str = ""
    reason: str = ""
