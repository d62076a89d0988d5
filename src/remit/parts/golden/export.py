"""A golden job out of a journal: its events with every value in them, what a fork shares included, without secrets.

Secrets in a recorded job, replaced consistently: the same text becomes the same word wherever it stands.

What is a secret is what `remit.redact` masks: what a name gives away, and what has the shape of a token. Each is found
first, and then replaced in every string of the job, so that a token that a tool returned and a later call sent on stays
one and the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import digest, sha256
from remit.codes import Code
from remit.errors import StateError
from remit.gateway.call import asked
from remit.jobs.state import KIND, stream_of
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.journal.labels import OURS
from remit.journal.lineage import whole
from remit.journal.references import TWIN, digests_in, shape_of
from remit.parts.golden.file import Golden, checked_name
from remit.record.heads import head_of
from remit.redact import MASK, mask
from remit.redact.clues import names_secret
from remit.regex import regex

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal


_LEAST: Final = 6
"""Characters from which on a secret is looked for inside other texts; a shorter one only where it stands alone."""
_DEPTH: Final = 64
_STRINGS: Final = regex(r'"((?:[^"\\]|\\.)*)"(?:\s*:\s*"((?:[^"\\]|\\.)*)")?')
"""A string of JSON, and the one that it is the name of."""


class JobSecrets:
    """The secrets of one job, each with the word that takes its place."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.words: dict[str, str] = {}
        for text in known:
            self._add(text)

    def find(self, value: Any, depth: int = _DEPTH) -> None:
        """Find the secrets of a JSON value."""
        if depth == 0:
            return
        if isinstance(value, str):
            self._find_in(value, depth)
        elif isinstance(value, dict):
            named = names_secret(str(value.get("name", value.get("key", ""))))
            for name, item in value.items():
                if isinstance(item, str) and (names_secret(name) or (named and name == "value")):
                    self._add(item)
                else:
                    self.find(item, depth - 1)
        elif isinstance(value, list):
            for item in value:
                self.find(item, depth - 1)

    def find_in(self, text: str) -> None:
        """Find the secrets of a piece of JSON, or of a stream of it, in the strings as they are written there."""
        for name, value in _STRINGS.findall(text):
            if value and names_secret(name):
                self._add(value)
            for written in filter(None, (name, value)):
                shown = mask(written)
                for gap in _gaps(written, shown.split(MASK)) if shown != written else ():
                    self._add("" if gap.endswith("\\") else gap)

    def replaced(self, value: Any) -> Any:
        """The same value with every secret replaced."""
        if isinstance(value, str):
            return self._replaced_in(value)
        if isinstance(value, dict):
            return {self._replaced_in(name): self.replaced(item) for name, item in value.items()}
        return [self.replaced(item) for item in value] if isinstance(value, list) else value

    def _add(self, text: str) -> None:
        if text and text != MASK and not text.startswith("secret-"):
            self.words.setdefault(text, f"secret-{len(self.words) + 1}")

    def _find_in(self, text: str, depth: int) -> None:
        if text[:1] in {"{", "["}:
            try:
                inner = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                pass
            else:
                self.find(inner, depth - 1)
                return
        shown = mask(text)
        if shown != text:
            for gap in _gaps(text, shown.split(MASK)):
                self._add(gap)

    def _replaced_in(self, text: str) -> str:
        if text in self.words:
            return self.words[text]
        for secret in sorted(self.words, key=len, reverse=True):
            if len(secret) >= _LEAST and secret in text:
                text = text.replace(secret, self.words[secret])
        return text


def _gaps(text: str, pieces: list[str]) -> list[str]:
    """The parts of a text between pieces of it; all of it, if they do not stand there in this order."""
    gaps, at = [], 0
    for number, piece in enumerate(pieces):
        start = text.find(piece, at) if number < len(pieces) - 1 or not piece else text.rfind(piece)
        if number == len(pieces) - 1 and not piece:
            start = len(text)
        if start < at:
            return [text]
        if number:
            gaps.append(text[at:start])
        at = start + len(piece)
    return gaps


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
        reason = f"{job} has {len(events)} events; a golden job has at most {_MOST}"
        raise StateError(reason, code=Code.GOLDEN_INVALID, remedy="Choose a shorter job.")
    blobs: dict[str, bytes] = {}
    payloads = [await _inlined(journal, payload, blobs) for payload in _alone(events)]
    secrets = JobSecrets(known)
    plain = [(payload.KIND, msgspec.json.decode(k.encode(payload))) for payload in payloads]
    for _, data in plain:
        secrets.find(data)
    for value in blobs.values():
        secrets.find_in(value.decode("utf-8", "surrogateescape"))
    names, blobs = _without_in(secrets, blobs)
    return Golden(
        name=checked_name(name),
        job=job,
        state=head.state,
        labels={key: text for key, text in head.labels.items() if not key.startswith(OURS)},
        secrets=len(secrets.words),
        events=tuple((kind, _renamed(data, names)) for kind, data in _without(secrets, plain)),
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
            value = await journal.value(k.UNSET, ref)
            if not hasattr(payload, name) and value is not None:
                blobs[ref.digest] = value  # bytes as they came, which no event can hold
                continue
            changes[name + TWIN] = k.UNSET
            if hasattr(payload, name) and value is not None and name != "items":
                changes[name] = msgspec.Raw(value)
    for name in shape.nested:
        held = getattr(payload, name)
        if isinstance(held, list | tuple) and not isinstance(payload, k.EvidenceAttached):
            changes[name] = tuple([await _inlined(journal, item, blobs) for item in held])
    for named in digests_in(payload):
        if named.whose == "shared" and (data := await journal.blob(named.digest)):
            blobs[named.digest] = data
    return msgspec.structs.replace(payload, **changes)


def _without(secrets: JobSecrets, plain: list[tuple[str, dict[str, Any]]]) -> Iterable[tuple[str, dict[str, Any]]]:
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


def _without_in(secrets: JobSecrets, blobs: dict[str, bytes]) -> tuple[dict[str, tuple[str, int]], dict[str, bytes]]:
    """Return bytes without secrets, and those that have another digest and length by it."""
    names, clean = dict[str, tuple[str, int]](), dict[str, bytes]()
    for digest_of, data in blobs.items():
        plain = secrets.replaced(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        name = sha256(plain) if plain != data else digest_of
        clean[name] = plain
        if name != digest_of:
            names[digest_of] = name, len(plain)
    return names, clean


def _renamed(value: Any, names: Mapping[str, tuple[str, int]]) -> Any:
    """Return a value with the new names of bytes that are not what they were."""
    if not names:
        return value
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, str):
        return names[value][0] if value in names else value
    if not isinstance(value, dict):
        return value
    size = names.get(str(value.get("digest", "")))
    renamed = {name: _renamed(each, names) for name, each in value.items()}
    return renamed | {"bytes": size[1]} if size is not None and "bytes" in value else renamed


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
