"""Values that an event keeps beside itself: one walk over the type of its payload finds every value and every digest.

A *value* is a field with a twin whose name ends in `_blob`: small, it stands in the field; large, the twin refers to
it; some have the twin alone. Values stand in a payload, and in the structs in its fields and lists.

A *digest* is a field whose type says whose bytes it names: those that streams share (`SharedDigest`), such as a schema;
the text of rules, which an older Remit did not keep (`PolicyDigest`); those that are kept for a time (`TimedDigest`);
or those that belong to the stream (`OwnDigest`). A value in which digests stand says of which type it is (`holding`).


Salts that hide the values of a stream with a subject, so that they can be erased and the chain stays whole.

A subject is whom the values are about, such as a customer. No value stands in an event then, at whatever depth: each
lies beside it behind 32 random bytes of its own, and the event holds the digest of both, without a preview. So the
event says nothing of the value once these bytes are gone, and no two streams share them.

    stored = salt:32 ‖ bytes        digest = SHA-256(stored)        key = "salt"

Another `key` is left for bytes that are encrypted under a key kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, NameInvalidError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob, Event
from remit.journal.kinds import (
    BytesKept,
    CommandCommitted,
    CommandStarted,
    EvidenceAttached,
    Payload,
    ToolInvocationFinished,
    ToolInvocationStarted,
    decode,
)
from remit.regex import regex

TWIN: Final = "_blob"


_NAMES: Final = regex(rb"sha256:[0-9a-f]{64}|[a-z]+_[0-9a-z]{26}")


class ReferenceShape(NamedTuple):
    """Where values and digests stand in a struct."""

    values: tuple[str, ...] = ()
    """Values, by the names of the fields that they stand in when they are small."""
    nested: tuple[str, ...] = ()
    """Fields that hold structs, or lists of them, in which values or digests stand."""
    digests: tuple[tuple[str, Literal["shared", "policy", "timed", "own"]], ...] = ()
    """Digests, by the names of their fields, and whose bytes they name."""
    holding: tuple[tuple[str, Any], ...] = ()
    """Values in which digests stand, and their types."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing stands there."""
        return not any(self)


class Value(NamedTuple):
    """A value of an event: in it, or beside it."""

    inline: Any
    ref: BlobRef | None
    holds: Any
    """The type of a value in which digests stand; None: there are none."""

    @property
    def inline_bytes(self) -> bytes:
        """The JSON bytes of a value that stands in its event."""
        return bytes(self.inline) if isinstance(self.inline, msgspec.Raw) else msgspec.json.encode(self.inline)


class Digest(NamedTuple):
    """Bytes that an event, or a value of it, names by digest alone."""

    digest: str
    whose: Literal["shared", "policy", "timed", "own"]


@lru_cache(maxsize=256)
def shape_of(struct: type[msgspec.Struct]) -> ReferenceShape:
    """Return where values and digests stand in a struct, told from the types of its fields."""
    hints = get_type_hints(struct, include_extras=True)
    fields = {field.name: hints[field.name] for field in msgspec.structs.fields(struct)}
    values = tuple(
        name.removesuffix(TWIN) for name, hint in fields.items() if name.endswith(TWIN) and BlobRef in _in(hint)
    )
    twins = {name + TWIN for name in values}
    rest = {name: hint for name, hint in fields.items() if name not in twins}
    return ReferenceShape(
        values=values,
        nested=tuple(
            name for name, hint in rest.items() if any(not shape_of(inner).is_empty for inner in _structs(hint))
        ),
        digests=tuple((name, whose) for name, hint in rest.items() if (whose := _marks(hint, "names")) is not None),
        holding=tuple((name, held) for name, hint in rest.items() if (held := _marks(hint, "holds")) is not None),
    )


def values_in(struct: msgspec.Struct) -> Iterator[Value]:
    """The values of a payload that were recorded, with those in the structs within it."""
    shape = shape_of(type(struct))
    held = dict(shape.holding)
    for name in shape.values:
        inline, ref = getattr(struct, name, msgspec.UNSET), getattr(struct, name + TWIN)
        if isinstance(ref, BlobRef):
            yield Value(None, ref, held.get(name))
        elif inline is not msgspec.UNSET and inline != ():
            yield Value(inline, None, held.get(name))
    for inner in _nested(struct, shape):
        yield from values_in(inner)


def names_in(data: bytes) -> set[str]:
    """Return every digest and every identifier that stands in the bytes of an event, whatever it means there."""
    return {name.decode() for name in _NAMES.findall(data)}


def digests_in(held: Any) -> Iterator[Digest]:
    """Give what a struct, or a list of them, names by digest alone."""
    if isinstance(held, list | tuple):
        for item in held:
            yield from digests_in(item)
    elif isinstance(held, msgspec.Struct):
        shape = shape_of(type(held))
        for name, whose in shape.digests:
            if digest := getattr(held, name):
                yield Digest(digest, whose)
        for item in _nested(held, shape):
            yield from digests_in(item)


def digests_of(value: Value, data: bytes) -> list[Digest]:
    """Return what a recorded value names by digest alone; `data` are its bytes.

    A value that hides what is about a subject names its bytes by a digest that cannot be guessed, and only those.
    """
    try:
        names = [] if value.holds is None else list(digests_in(msgspec.json.decode(data, type=value.holds)))
    except msgspec.ValidationError:  # an older Remit recorded another form
        return []
    return [name for name in names if name.whose != "timed"] if value.ref is not None and value.ref.key else names


_FREQUENT: Final[dict[str, type[Payload]]] = {
    kind.KIND: kind for kind in (ToolInvocationStarted, ToolInvocationFinished, CommandStarted, CommandCommitted)
}
_FACTS: Final = frozenset(
    (
        *("invocation_id", "step", "tool_name", "arguments_hash", "idempotency_key", "attempt", "confirmation"),
        *("rule_id", "risk_level", "policy_kept", "facts", "reported_by"),
    )
)


@lru_cache(maxsize=256)
def _reader_of(kind: str) -> Callable[[bytes], Any]:
    """Return what reads a payload of a kind, or of a frequent one its facts: the rest is skipped."""
    payload = _FREQUENT.get(kind)
    if payload is None:
        return partial(decode, kind)
    shape = shape_of(payload)
    names = {*_FACTS, *shape.values, *(value + TWIN for value in shape.values), *shape.nested, *dict(shape.digests)}
    fields = [field for field in msgspec.structs.fields(payload) if field.name in names]
    required = [(field.name, field.type) for field in fields if field.required]
    optional = [(field.name, field.type, field.default) for field in fields if not field.required]
    facts = msgspec.defstruct(payload.__name__, [*required, *optional], frozen=True, kw_only=True, gc=False)
    return msgspec.json.Decoder(facts).decode


def facts_of(event: Event) -> Any:
    """Return the payload of an event, or its facts if its kind is a frequent one; None as `decode`, and raise as it."""
    try:
        return _reader_of(event.kind)(event.data)
    except (msgspec.DecodeError, RecursionError):
        return decode(event.kind, event.data)


class _RuleText(msgspec.Struct):
    """The text of rules, as far as it names other texts."""

    overlays: tuple[str, ...] = ()


def overlays_of(text: bytes) -> list[Digest]:
    """Return what the text of rules names: the texts of overlays."""
    try:
        return [Digest(name, "policy") for name in msgspec.json.decode(text, type=_RuleText).overlays]
    except msgspec.DecodeError:
        return []


def is_expired(payload: Payload, now: int) -> bool:
    """Return whether the bytes that an event keeps were to be kept until `now` or less."""
    return isinstance(payload, BytesKept) and payload.until is not None and payload.until <= now


def _nested(struct: msgspec.Struct, shape: ReferenceShape) -> Iterator[msgspec.Struct]:
    for name in shape.nested:
        value = getattr(struct, name)
        yield from (value if isinstance(value, list | tuple) else [value] if isinstance(value, msgspec.Struct) else [])


def _in(hint: Any) -> tuple[Any, ...]:
    """A type's members, down to those that have none."""
    members = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    return tuple(each for member in members for each in _in(member)) if members else (hint,)


def _structs(hint: Any) -> list[type[msgspec.Struct]]:
    return [
        inner
        for inner in _in(hint)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and inner is not BlobRef
    ]


def _marks(hint: Any, key: str) -> Any:
    """Return what a field's type, or a member of it, says of it under a key."""
    for argument in get_args(hint):
        if isinstance(argument, msgspec.Meta) and argument.extra and key in argument.extra:
            return argument.extra[key]
        if get_origin(argument) is Annotated and (marks := _marks(argument, key)) is not None:
            return marks
    return None


SALT: Final = "salt"
SALT_BYTES: Final = 32
_KEPT_AS: Final = "kept_as"
"""In a salted item of evidence: the digest under which the bytes of `raw_pointer` are kept."""

_RESTORE: Final = "Restore the journal from a backup."
_NO_KEY: Final = "Upgrade Remit, or give it access to the keys."

LONGEST_SUBJECT: Final = 200
"""Characters of a subject's name."""

Salt = Callable[[int], bytes]
S = TypeVar("S", bound=msgspec.Struct)


def fit_subject(subject: str) -> str:
    """Return a subject that a new stream may have. Raises NameInvalidError."""
    if subject != subject.strip() or not subject.isprintable() or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise NameInvalidError(
            f"a subject has 1 to {LONGEST_SUBJECT} characters, none of them for control, and no blanks around it",
            remedy="Name whom the values are about, such as customer-4711.",
        )
    return subject


def erasure_of(subject: str) -> str:
    """The stream that says when a subject's values were erased; it does not say the subject's name."""
    return f"subject/{sha256(subject.encode()).removeprefix('sha256:')}"


def reveal(ref: BlobRef, stored: bytes) -> bytes:
    """The value behind a reference, out of the bytes that are kept for it.

    Raises PayloadErasedError if they were erased, ChainBrokenError if they are not those that were recorded.
    """
    if ref.key not in {"", SALT}:
        msg = f"the bytes of {ref.digest} are hidden under the key {ref.key}, which is not here"
        raise JournalError(msg, code=Code.JOURNAL_NEWER, remedy=_NO_KEY)
    if ref.key and not stored:
        raise PayloadErasedError(f"the value ({ref.bytes} bytes) was erased with its subject")
    if sha256(stored) != ref.digest:
        raise ChainBrokenError(f"the bytes kept as {ref.digest} have another digest", remedy=_RESTORE)
    return stored[SALT_BYTES:] if ref.key else stored


def salted(payloads: Sequence[Payload], blobs: Sequence[Blob], salt: Salt) -> tuple[list[Payload], tuple[Blob, ...]]:
    """The payloads with every value behind a hiding reference, and the blobs to write instead of those given.

    Raises JournalError if a payload refers to bytes that are not among `blobs`.
    """
    salting = _Salting({blob.digest: blob for blob in blobs}, salt)
    hiding = [salting.payload(payload) for payload in payloads]
    rest = [blob for blob in blobs if blob.digest not in salting.replaced]
    return hiding, (*rest, *salting.blobs)


class _Salting:
    """One commit's values."""

    def __init__(self, blobs: Mapping[str, Blob], salt: Salt) -> None:
        self._blobs = blobs
        self._salt = salt
        self.replaced: set[str] = set()
        self.blobs: list[Blob] = []

    def payload(self, payload: Payload) -> Payload:
        if isinstance(payload, EvidenceAttached) and payload.items:
            items = msgspec.json.encode([self._item(item) for item in payload.items])
            payload = msgspec.structs.replace(payload, items=(), items_blob=self._hide(items))
        return self._struct(payload)

    def _struct(self, struct: S) -> S:
        """The same with its values hidden, and those of the structs in it."""
        shape, changes = shape_of(type(struct)), dict[str, Any]()
        for name in shape.values:
            value, ref = getattr(struct, name, None), getattr(struct, name + TWIN)
            if isinstance(value, msgspec.Raw):
                changes |= {name: msgspec.UNSET, name + TWIN: self._hide(bytes(value))}
            elif isinstance(ref, BlobRef) and not ref.key:
                blob = self._taken(ref.digest)
                changes[name + TWIN] = self._hide(blob.data, blob.until)
        for name in shape.nested:
            held = getattr(struct, name)
            if isinstance(held, tuple):
                changes[name] = tuple([self._struct(item) for item in held])
            elif isinstance(held, msgspec.Struct):
                changes[name] = self._struct(held)
        return msgspec.structs.replace(struct, **changes)

    def _item(self, item: dict[str, Any]) -> dict[str, Any]:
        pointer = item.get("raw_pointer")
        if pointer is None:
            return item
        blob = self._taken(pointer)
        return {**item, _KEPT_AS: self._hide(blob.data, blob.until).digest}

    def _taken(self, digest: str) -> Blob:
        blob = self._blobs.get(digest)
        if blob is None:
            msg = f"the bytes of {digest} are stored elsewhere, and could not be erased with this stream's subject"
            raise JournalError(msg, code=Code.RECORD_INVALID, remedy="Record the value with the event.")
        self.replaced.add(digest)
        return blob

    def _hide(self, data: bytes, until: int | None = None) -> BlobRef:
        stored = self._salt(SALT_BYTES) + data
        blob = Blob(sha256(stored), stored, until)
        self.blobs.append(blob)
        return BlobRef(blob.digest, len(data), "", SALT)
