"""A golden job out of a journal: its events with every value in them, what a fork shares included, without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import StateError
from remit.gateway.call import asked
from remit.golden.file import Golden, checked_name
from remit.golden.secrets import Secrets
from remit.jobs.state import KIND, OURS, stream_of
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.journal.lineage import whole
from remit.journal.references import TWIN, digests_in, shape_of
from remit.record.heads import head_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_MOST: Final = 100_000
"""Events of a golden job at most."""
_UNCOMPARED: Final = ("request_hash", "arguments_hash")


async def golden_of(journal: Journal, job: str, name: str, known: Iterable[str] = ()) -> Golden:
    """Return a job as a golden one, without its secrets; `known` are texts that are secret beside those that are found.

    Raises NotFoundError, StateError for a session or a job that is too long, PayloadErasedError or ChainBrokenError.
    """
    head = await head_of(journal, job)
    if head.kind != KIND:
        remedy = "Name a job."
        raise StateError(f"{job} is a session, and no golden job", code=Code.JOB_NOT_REPLAYABLE, remedy=remedy)
    events = await whole(journal, (await journal.read(stream_of(job)))[: head.seq])
    if len(events) > _MOST:
        why = f"{job} has {len(events)} events; a golden job has at most {_MOST}"
        raise StateError(why, code=Code.GOLDEN_INVALID, remedy="Choose a shorter job.")
    blobs: dict[str, bytes] = {}
    payloads = [await _inlined(journal, payload, blobs) for payload in _alone(events)]
    secrets = Secrets(known)
    plain = [(payload.KIND, msgspec.json.decode(k.encode(payload))) for payload in payloads]
    for _, data in plain:
        secrets.find(data)
    return Golden(
        name=checked_name(name),
        job=job,
        state=head.state,
        labels={key: text for key, text in head.labels.items() if not key.startswith(OURS)},
        secrets=len(secrets.words),
        events=tuple(_without(secrets, plain)),
        blobs=blobs,
    )


def _alone(events: list[Event]) -> list[k.Payload]:
    """The payloads of a job that shares nothing: what it shared stands in it as what a retry takes over."""
    own = events[0].stream
    shared = sum(event.stream != own for event in events)
    payloads = []
    for event in events:
        payload = k.decode(event.kind, event.data)
        if isinstance(payload, k.JobForked):
            payload = msgspec.structs.replace(payload, shared=False, taken=shared, changes=0, hash="")
        if payload is not None:
            payloads.append(payload)
    return payloads


async def _inlined(journal: Journal, payload: Any, blobs: dict[str, bytes]) -> Any:
    """The same with every value in it; what it names by digest is put into `blobs`."""
    kind: type[msgspec.Struct] = type(payload)
    shape, changes = shape_of(kind), dict[str, Any]()
    for name in shape.values:
        ref = getattr(payload, name + TWIN)
        if isinstance(ref, BlobRef) and not isinstance(payload, k.BytesKept):
            changes[name + TWIN] = k.UNSET
            value = await journal.value(k.UNSET, ref)
            if hasattr(payload, name) and value is not None and name != "items":
                changes[name] = msgspec.Raw(value)
    for name in shape.nested:
        held = getattr(payload, name)
        if isinstance(held, list | tuple) and not isinstance(payload, k.EvidenceAttached):
            changes[name] = tuple([await _inlined(journal, one, blobs) for one in held])
    for named in digests_in(payload):
        if named.whose == "shared" and (data := await journal.blob(named.digest)):
            blobs[named.digest] = data
    return msgspec.structs.replace(payload, **changes)


def _without(secrets: Secrets, plain: list[tuple[str, dict[str, Any]]]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The events without secrets. Digests of what was asked are made again, or left out where that cannot be done."""
    if not secrets.words:
        yield from plain
        return
    tainted = False
    for kind, data in plain:
        clean = secrets.replaced(data)
        tainted = tainted or clean != data
        if tainted:
            clean = _rehashed(kind, data, clean)
        yield kind, clean


def _rehashed(kind: str, before: dict[str, Any], clean: dict[str, Any]) -> dict[str, Any]:
    if kind == k.ChildStarted.KIND:
        return clean | {"request_hash": digest(clean.get("input", {}))}
    if kind == k.ToolInvocationStarted.KIND and before.get("args") != clean.get("args"):
        hashed = digest(clean.get("args", {}))
        names = (clean["tool_name"], clean["tool_name"].replace(".", "__"))
        same = [name for name in names if asked(name, before.get("arguments_hash", "")) == before.get("request_hash")]
        if "request_hash" not in before:
            return clean | {"arguments_hash": hashed}
        if same:
            return clean | {"arguments_hash": hashed, "request_hash": asked(same[0], hashed)}
    elif kind == k.ToolInvocationStarted.KIND:
        return clean
    return {name: value for name, value in clean.items() if name not in _UNCOMPARED}
