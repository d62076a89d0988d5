"""Events of the model gateway: what a program sent on a provider's wire, and what came back. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from remit.journal.blobs import BlobRef
from remit.journal.kinds.payload import UNSET, OptionalRef, Payload

End = Literal["complete", "cut", "failed", "refused"]
"""The end of an answer: its terminal event came; it broke off; the provider refused or failed; the gate refused."""


class BodySegment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a request's body: a message, or what stands between messages."""

    body_blob: BlobRef


class ModelGatewayAsked(Payload, frozen=True, kw_only=True):
    """Ours: a request of a program to a model, byte for byte, before it is judged and sent."""

    KIND: ClassVar[str] = "model_gateway_asked"
    step: str
    wire: str
    """The wire format, such as `anthropic-messages`."""
    method: str = "POST"
    route: str
    """The path after the prefix of the wire, without what names the version twice."""
    query: str = ""
    """The query, without a key."""
    sha256: str
    """Digest of the body."""
    size: int = 0
    base: str = ""
    """The step whose body begins and ends like this one; empty: this one stands alone."""
    first: int = 0
    """The number of segments that are those with which the body of `base` begins."""
    last: int = 0
    """The number of segments that are those with which it ends."""
    segments: tuple[BodySegment, ...] = ()
    """The segments between them."""
    client: str = ""
    """The product that the program says it is."""
    conversation: str = ""
    """The program's own name for its conversation."""
    main: bool = False
    """Whether the request offers tools: titles and summaries do not."""
    repeats: str = ""
    """The step that failed before, which this one asks again."""
    results: tuple[str, ...] = ()
    """Calls whose results are new in this request, by the provider's identifiers."""

    def words(self) -> str:
        """Say what was sent."""
        again = f", again after {self.repeats}" if self.repeats else ""
        return f"{self.step}: {self.method} {self.route}, {self.size} bytes{again}"


class ModelGatewayAnswered(Payload, frozen=True, kw_only=True):
    """Ours: what the provider answered to such a request, byte for byte, and how it reached the program."""

    KIND: ClassVar[str] = "model_gateway_answered"
    step: str
    invocation_id: str = ""
    end: End
    status: int = 0
    """The HTTP status that the program got; 0: none."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers of the answer that a replay gives again."""
    answer_blob: OptionalRef = UNSET
    size: int = 0
    """Bytes of the body; more than are kept if it was longer than `model_gateway.keep_bytes`."""
    pieces: int = 0
    client_gone_after: int | None = None
    """The number of pieces that the program took before it left; None: it took all."""
    wanted: dict[str, str] = msgspec.field(default_factory=dict)
    """The calls that the model wants: their tools, by the provider's identifiers."""
    given_from: str = ""
    """The recorded question whose answer was given again, as `JOB STEP`; empty: the provider was asked."""
    handed_on_before_cut: tuple[str, ...] = ()
    """Calls that were handed on whole before the answer broke off: the program may have made them."""

    def words(self) -> str:
        """Say how it ended."""
        gone = f", the client left after {self.client_gone_after} pieces" if self.client_gone_after is not None else ""
        return f"{self.step}: {self.end}, status {self.status}, {self.size} bytes{gone}"


class ClaimedSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A span as the program told it: masked and cut."""

    name: str
    trace_id: str = ""
    span_id: str = ""
    parent: str = ""
    """The span that it lies below."""
    began_us: int = 0
    ended_us: int = 0
    """In microseconds since the Unix epoch, by the program's clock."""
    failed: bool = False
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class ModelGatewayClaimed(Payload, frozen=True, kw_only=True):
    """The program's claim: spans that it told of itself. Nothing of it is known to be true, and nothing counts it."""

    KIND: ClassVar[str] = "model_gateway_claimed"
    step: str
    count: int
    names: tuple[str, ...] = ()
    """The first names, each once."""
    spans_blob: BlobRef
    """The spans, masked and cut: name, ids, times in microseconds, `failed` and `attributes`."""
    left_out: int = 0
    """The number of spans beyond those that a run keeps: the first ones that were left out."""

    def words(self) -> str:
        """Say that it is a claim."""
        left = f", {self.left_out} left out" if self.left_out else ""
        return f"{self.step}: claimed by the program: {self.count} spans{left}: {', '.join(self.names)}"


class ModelGatewayTried(Payload, frozen=True, kw_only=True):
    """Ours: a program tried to reach a host beside the gateway, and was refused."""

    KIND: ClassVar[str] = "model_gateway_tried"
    step: str
    host: str

    def words(self) -> str:
        """Say which host."""
        return f"tried to reach {self.host}; refused"
