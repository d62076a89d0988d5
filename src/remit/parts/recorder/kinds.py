"""Events of the recorder: who signed, what was signed, and until when. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload, SharedDigest


class RecorderOpened(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a recorder's session: a process signs what is recorded from now on."""

    KIND: ClassVar[str] = "recorder_opened"
    session: int
    """Number of the session; the stream is named by it."""
    origin: str
    """The log, as its checkpoints name it."""
    deployment: str
    """Random name that the first session of the log chose, and the later ones keep."""
    release: str
    """Version of Remit."""
    owner: str
    """The process."""
    settings_hash: SharedDigest
    """Names the settings without secrets, which lie beside the events as JSON."""
    key: str
    """Public key of the session, as C2SP writes it."""
    previous_key: str = ""
    """Key of the log's session before; empty: this is the first."""
    handover: str = ""
    """Signature of the previous key over the change to another; empty: the key is the same, or the old one is lost."""
    size: int
    """Leaves in the log when the session began."""
    peaks: tuple[str, ...] = ()
    """Roots of the full subtrees of these leaves, the largest first, as base64."""
    every_events: int
    every_seconds: int
    """A checkpoint follows the one before within this time, whatever happens meanwhile."""

    def words(self) -> str:
        return f"{self.origin}: session {self.session} begins with {self.size} leaves, signed by {self.key}"


class RecorderCheckpoint(Payload, frozen=True, kw_only=True):
    """Ours: each stream that grew since the last checkpoint stands in the log as far as it reached, which is signed."""

    KIND: ClassVar[str] = "recorder_checkpoint"
    size: int
    """Leaves in the log."""
    root: str
    """The tree's root, as base64."""
    heads: int
    """Leaves that this checkpoint added."""
    signature: str
    """Line of the signature, as the signed note holds it."""
    leaves: OptionalRaw = UNSET
    """Each added leaf as `[stream, seq, hash]`, in the log's order."""
    leaves_blob: OptionalRef = UNSET
    cosigned: int = 0
    """Size of the last checkpoint that a witness cosigned; 0: none in this session."""
    cosignatures: tuple[str, ...] = ()
    """Lines of these cosignatures."""
    stamped: int = 0
    """Size of an earlier checkpoint that an authority stamped with the time; 0: none since the last stamp."""
    stamp: OptionalRaw = UNSET
    """The authority's answer (RFC 3161), as base64."""
    stamp_blob: OptionalRef = UNSET

    def words(self) -> str:
        return f"{self.size} leaves, {self.heads} of them new, root {self.root}"


class RecorderClosed(Payload, frozen=True, kw_only=True):
    """Ours, last in its stream: the session is over; `lost` is written by the next one if the process died."""

    KIND: ClassVar[str] = "recorder_closed"
    reason: Literal["stopped", "day", "lost"]
    checkpoints: int
    size: int
    root: str
    cosigned: int = 0
    cosignatures: tuple[str, ...] = ()
    stamped: int = 0
    stamp: OptionalRaw = UNSET
    stamp_blob: OptionalRef = UNSET

    def words(self) -> str:
        return f"{self.reason} after {self.checkpoints} checkpoints, {self.size} leaves"
