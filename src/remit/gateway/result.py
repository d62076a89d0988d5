"""The result of a provider, made fit to be recorded: whatever it is, this never raises (rule 5).

The kept part of a call's evidence (contract: tickets, "Evidence"). Pure: candidates in, items and blobs out.

Class A is kept whole or not at all, class B is cut at its head, class C is never kept. Bytes never enter an event or a
report (rule 10): a small text stands inline, a larger one lies in a blob, and an item says by digest what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.canonical import MAX_DEPTH, MAX_INT, as_json, canonical, sha256
from remit.clock import DAY
from remit.codes import Code
from remit.errors import NotCanonicalError
from remit.gateway.outcome import EvidenceItem, Outcome, failed
from remit.gateway.schema_gate import CALL_RESULT, Boundary, Misfit
from remit.journal.blobs import pack
from remit.journal.event import Blob
from remit.journal.kinds import ErrorInfo, EvidenceAttached, Payload, SchemaGateWarned, ToolInvocationFinished
from remit.large import decode
from remit.tools.provider import ClientReport, EvidenceCandidate, ToolResult

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.gateway.call_limits import CallLimits
    from remit.gateway.schema_gate import SchemaGate
    from remit.journal.effects import Effect
    from remit.tools.catalog import Tool


CUT: Final = frozenset({"probe_log", "stderr", "http_body_preview", "trace"})
"""Class B; every kind that is neither here nor in NEVER is class A."""
NEVER: Final = frozenset({"secrets", "credentials", "pii_raw"})
"""Class C."""
FORBIDDEN: Final = frozenset({"bytes", "raw_bytes", "blob", "base64", "buffer"})
"""Metadata keys that would carry bytes into a report."""
_MAX_KIND: Final = 100
_MAX_SOURCE: Final = 2_000
"""Characters; a longer source is most likely the content itself."""


class EvidenceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes of UTF-8."""

    inline: int
    raw: int
    items: int
    """Items per call; more are counted in the last one's metadata and dropped."""
    days: int
    """The days that blobs are kept; 0: forever."""


class KeptResult(msgspec.Struct, frozen=True):
    """What is recorded: items for the event, blobs beside it."""

    items: tuple[EvidenceItem, ...]
    blobs: tuple[Blob, ...]


def problem(candidate: object) -> str:
    """Return what is wrong with a candidate; empty: nothing."""
    if not isinstance(candidate, EvidenceCandidate):
        return f"evidence must be a list of candidates, not {type(candidate).__name__}"
    data: object = candidate.data  # msgspec takes text for bytes in base64
    if not isinstance(data, bytes | None):
        return f"an evidence candidate's data is bytes, not {type(data).__name__}"
    try:
        msgspec.convert(
            msgspec.structs.asdict(candidate), EvidenceCandidate
        )  # a struct holds whatever it was made with
        canonical([candidate.kind, candidate.source, candidate.retrieved_at, candidate.metadata])
    except msgspec.ValidationError as error:
        return f"an evidence candidate is not valid: {error}"
    except NotCanonicalError as error:
        return f"an evidence candidate may carry JSON only: {error.message}"
    retrieved = 0 < candidate.retrieved_at <= MAX_INT
    if not (candidate.kind and candidate.source and retrieved) or len(candidate.kind) > _MAX_KIND:
        return "an evidence candidate needs kind, source and retrieved_at"
    field = _forbidden(candidate.metadata)
    return f"an evidence candidate may not carry {field!r}" if field else ""


def keep(candidates: Sequence[EvidenceCandidate], limits: EvidenceLimits, now: int) -> KeptResult:
    """Decide what is kept of each candidate, and until when; they have no `problem`."""
    until = now + limits.days * DAY if limits.days else None
    items: list[EvidenceItem] = []
    blobs: list[Blob] = []
    for candidate in candidates[: limits.items]:
        item, blob = _keep(candidate, limits, until)
        items.append(item)
        if blob is not None:
            blobs.append(blob)
    dropped = len(candidates) - len(items)
    if dropped > 0 and items:
        items[-1] = msgspec.structs.replace(items[-1], metadata={**items[-1].metadata, "dropped_items": dropped})
    return KeptResult(tuple(items), tuple(blobs))


def _keep(candidate: EvidenceCandidate, limits: EvidenceLimits, until: int | None) -> tuple[EvidenceItem, Blob | None]:
    data = candidate.data if candidate.data is not None else (candidate.text or "").encode("utf-8", "replace")
    source, kind = candidate.source, candidate.kind.lower()
    item = EvidenceItem(
        kind=candidate.kind,
        source=source if len(source) <= _MAX_SOURCE else source[: _MAX_SOURCE - 1] + "…",
        retrieved_at=candidate.retrieved_at,
        bytes=len(data),
    )
    if kind in NEVER:
        return _with(item, code=Code.EVIDENCE_REDACTED.name, hash_scope="unknown"), None
    item = _with(item, **_metadata(candidate, limits))
    if candidate.text is None and candidate.data is None:
        return item, None
    item = _with(item, hash=sha256(data))
    if candidate.data is not None:
        return _raw(item, data, limits, until)
    if len(data) <= limits.inline:
        return _with(item, storage="inline", inline=data.decode(), stored_bytes=len(data)), None
    if kind in CUT:
        text = data[: limits.inline].decode("utf-8", "ignore")
        cut = _with(item, storage="inline", inline=text, stored_bytes=len(text.encode()), truncated=True)
        return _with(cut, code=Code.EVIDENCE_INLINE_TOO_LARGE.name), None
    return _raw(_with(item, code=Code.EVIDENCE_INLINE_TOO_LARGE.name), data, limits, until)


def _raw(
    item: EvidenceItem, data: bytes, limits: EvidenceLimits, until: int | None
) -> tuple[EvidenceItem, Blob | None]:
    if len(data) > limits.raw:
        return _with(item, code=Code.EVIDENCE_RAW_TOO_LARGE.name), None
    return _with(item, storage="raw", raw_pointer=item.hash, stored_bytes=len(data)), Blob(item.hash, data, until)


def _with(item: EvidenceItem, **changes: Any) -> EvidenceItem:
    return msgspec.structs.replace(item, **changes)


def _metadata(candidate: EvidenceCandidate, limits: EvidenceLimits) -> dict[str, Any]:
    """The metadata as a replay gives it, unless it is so large that it must be content."""
    encoded = msgspec.json.encode(candidate.metadata)
    if len(encoded) > limits.inline:
        return {"metadata": {"omitted_bytes": len(encoded)}, "code": Code.EVIDENCE_INLINE_TOO_LARGE.name}
    return {"metadata": msgspec.json.decode(encoded)}


def _forbidden(value: Any) -> str:
    """The first forbidden key within a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.lower() in FORBIDDEN:
                return str(key)
            if inner_field := _forbidden(inner):
                return inner_field
    elif isinstance(value, list | tuple):
        for inner in value:
            if inner_field := _forbidden(inner):
                return inner_field
    return ""


StepOutcome = Literal[
    "pure",
    "side_effect_committed",
    "retryable_failure",
    "permanent_failure",
    "compensatable_failure",
    "uncertain",
]
"""The outcome of a call's step, of what the contract knows (contract: versioning, "Write order and recovery")."""

_NOTHING: Final = KeptResult((), ())
_REMEDY: Final = "The author of the tool has to fix its result."
_HAPPENED: Final = "It took effect all the same: do not make the call again. "
_NO_MARK: Final = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_STEPS: Final = bytes(1 if byte in b"[{" else 255 for byte in range(256))
"""Of a bracket: one level more, or as a signed byte one less."""
_SLICE: Final = 16_384
KEPT_LEVELS: Final = 62
"""Levels that are kept of a stranger's value that is too deep: as many as of one in a message that cannot be read."""


class CheckedResult(msgspec.Struct, frozen=True):
    """A result that can be recorded, or why it cannot."""

    failure: Outcome | None = None
    encoded: bytes = b""
    value: Any = None
    evidence: KeptResult = _NOTHING
    misfit: Misfit | None = None
    """The part that does not fit the output schema, and passed."""
    repaired: Mapping[str, int] = {}
    """The repairs of a stranger's value."""


class ResultCheck:
    """Checks results: that JSON holds them, their size, the tool's output schema, and the evidence."""

    def __init__(self, limits: CallLimits, clock: Clock, gate: SchemaGate) -> None:
        self._clock = clock
        self._gate = gate
        self._max_bytes = limits.max_value_bytes
        self._evidence = EvidenceLimits(
            inline=limits.evidence_inline_bytes,
            raw=limits.evidence_raw_bytes,
            items=limits.evidence_items,
            days=limits.evidence_days,
        )

    def check(self, tool: Tool, result: object) -> CheckedResult:
        """Return what a provider gave, as a replay would give it."""
        if not isinstance(result, ToolResult):
            reason = f"{tool.meta.name}: its provider answered with {type(result).__name__} instead of a result"
            return CheckedResult(failed(Code.TOOL_EXEC_FAILED, reason, _REMEDY, cause=Code.BadGateway))
        try:
            encoded, repaired = _encoded(result)
            failure = self._size(tool, encoded)
            value = None if failure else decode(encoded)
        except NotCanonicalError as error:
            reason = f"{tool.meta.name} returned a value that JSON cannot represent: {error.message}"
            return CheckedResult(failed(Code.RESULT_NOT_ENCODABLE, reason, error.remedy))
        except Exception as error:  # noqa: BLE001 - a value may bring code of its own
            reason = f"{tool.meta.name} returned a value that JSON cannot represent: {words(error)}"
            return CheckedResult(failed(Code.RESULT_NOT_ENCODABLE, reason, _REMEDY))
        if failure is not None:
            return CheckedResult(failure)
        misfit = self._gate.check(CALL_RESULT, tool.output, value, tool.meta.name) if tool.output is not None else None
        if misfit is not None and misfit.rejected:
            return CheckedResult(failed(Code.RESULT_INVALID, f"{tool.meta.name}: {misfit.text}", _REMEDY))
        evidence = self.evidence_of(tool, result) if result.evidence else _NOTHING
        return (
            CheckedResult(None, encoded, value, evidence, misfit, repaired)
            if isinstance(evidence, KeptResult)
            else CheckedResult(evidence)
        )

    def _size(self, tool: Tool, encoded: bytes) -> Outcome | None:
        if len(encoded) > self._max_bytes:
            reason = f"{tool.meta.name} returned {len(encoded)} bytes; the limit is {self._max_bytes}"
            return failed(Code.RESULT_TOO_LARGE, reason, _REMEDY)
        if _too_deep(encoded):
            reason = f"{tool.meta.name} returned a value of more than {MAX_DEPTH} levels"
            return failed(Code.RESULT_NOT_ENCODABLE, reason, _REMEDY)
        return None

    def evidence_of(self, tool: Tool, result: ToolResult) -> KeptResult | Outcome:
        """Return what is kept of the evidence a result brings, or why none of it can be."""
        candidates: object = result.evidence
        wrong = "" if isinstance(candidates, list | tuple) else f"evidence is a list, not {type(candidates).__name__}"
        for candidate in () if wrong else result.evidence:
            wrong = wrong or problem(candidate)
        if wrong:
            return failed(Code.INVALID_EVIDENCE_CANDIDATE, f"{tool.meta.name}: {wrong}", _REMEDY)
        return keep(result.evidence, self._evidence, self._clock.now())


def events_of(
    outcome: Outcome,
    checked: CheckedResult,
    *,
    invocation_id: str,
    step: str,
    step_outcome: StepOutcome,
    tool: Tool,
    by: str = "",
    report: ClientReport | None = None,
) -> tuple[list[Payload], tuple[Blob, ...]]:
    """Return the events of an announced call's end: `tool_invocation_finished`, after warnings and evidence if any."""
    events: list[Payload] = []
    evidence, blobs = checked.evidence, checked.evidence.blobs
    schema_hash = tool.output.hash if tool.output is not None else ""
    if checked.misfit is not None:
        events.append(
            warned(
                checked.misfit,
                CALL_RESULT,
                step=step,
                tool_name=tool.meta.name,
                schema_hash=schema_hash,
                invocation_id=invocation_id,
            )
        )
    if evidence.items:
        items = tuple([msgspec.to_builtins(item) for item in evidence.items])
        events.append(EvidenceAttached(invocation_id=invocation_id, step=step, items=items))
    packed = pack(checked.encoded) if outcome.ok else None
    if packed is not None and packed.blobs:
        blobs = (*blobs, *packed.blobs)
    events.append(
        ToolInvocationFinished(
            invocation_id=invocation_id,
            step=step,
            outcome="success" if outcome.ok else "timeout" if outcome.code is Code.TOOL_TIMEOUT else "failure",
            step_outcome=step_outcome,
            result=packed.inline if packed else msgspec.UNSET,
            result_blob=packed.ref if packed else msgspec.UNSET,
            error=_error(outcome),
            response_schema_hash=schema_hash,
            duration_ms=outcome.duration_us / 1_000,
            evidence=len(evidence.items),
            decided_by=by,
            effect=outcome.effect.known,
            effect_by=outcome.effect.by,
            repaired=dict(checked.repaired),
            reported_by=report.by if report else "",
            remarks=report.remarks if report else (),
        )
    )
    return events, blobs


def remedy_of(outcome: Outcome, effect: Effect) -> str:
    """Return what to do about an outcome: not to repeat the call, if it took effect all the same."""
    return f"{_HAPPENED}{outcome.remedy}" if not outcome.ok and effect.known == "committed" else outcome.remedy


def warned(
    misfit: Misfit, boundary: Boundary, *, step: str, tool_name: str, schema_hash: str, invocation_id: str
) -> SchemaGateWarned:
    """Return what is recorded of a value that did not fit and passed."""
    return SchemaGateWarned(
        step=step,
        tool_name=tool_name,
        boundary=boundary.name,
        direction=boundary.direction,
        warn_codes=misfit.codes,
        problems=misfit.lines,
        schema_hash=schema_hash,
        invocation_id=invocation_id,
    )


def _error(outcome: Outcome) -> ErrorInfo | None:
    if outcome.code is None:
        return None
    return ErrorInfo(
        code=outcome.code.name,
        message=outcome.reason,
        remedy=outcome.remedy,
        cause=outcome.cause or "",
        retryable=outcome.code.retryable,
        frames=outcome.frames,
    )


def words(error: BaseException) -> str:
    """Return what an exception says, whatever it does when asked."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the error of an error
        return name
    return f"{name}: {text}" if text else name


def _encoded(result: ToolResult) -> tuple[bytes, Mapping[str, int]]:
    """The value as JSON, and its repairs: what lies too deep in a stranger's value costs that alone (rule 26)."""
    repaired = result.repaired
    try:
        encoded = as_json(result.value)
        if repaired is None or not _too_deep(encoded):
            return encoded, repaired or {}
    except RecursionError:
        if repaired is None:
            raise
    value, cut = _cut(result.value, KEPT_LEVELS)
    return as_json(value), {**repaired, "too_deep": repaired.get("too_deep", 0) + cut}


def _cut(value: Any, levels: int) -> tuple[Any, int]:
    """A value without what lies deeper than so many levels, and how many places became null."""
    if not isinstance(value, dict | list):
        return value, 0
    if levels == 0:
        return None, 1
    names, items = (tuple(value), value.values()) if isinstance(value, dict) else ((), value)
    parts = [_cut(item, levels - 1) for item in items]
    inner = [part for part, _ in parts]
    return dict(zip(names, inner, strict=True)) if isinstance(value, dict) else inner, sum(cut for _, cut in parts)


def _too_deep(encoded: bytes) -> bool:
    """Return whether JSON has more levels than every reader of the journal takes; quick, for it may be large."""
    if len(encoded) <= MAX_DEPTH or encoded.count(b"[") + encoded.count(b"{") <= MAX_DEPTH:
        return False
    # Without escapes every quote begins or ends a string; what is outside of them is every other part.
    outside = encoded.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_MARK).split(b'"')[::2]
    brackets, depth = b"".join(outside).translate(_STEPS), 0
    for start in range(0, len(brackets), _SLICE):  # in slices, so that other threads get their turn
        levels = list(accumulate(memoryview(brackets)[start : start + _SLICE].cast("b"), initial=depth))
        if max(levels) > MAX_DEPTH:
            return True
        depth = levels[-1]
    return False
