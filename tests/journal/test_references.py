"""What an event keeps beside itself is found by the types of its fields, for every kind of event."""

from __future__ import annotations

import typing
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given

from remit.canonical import sha256
from remit.journal.blobs import BlobRef, pack
from remit.journal.event import Blob
from remit.journal.kinds import CommandStarted, MessageKept, Payload, encode
from remit.journal.references import TWIN, digests_in, digests_of, salted, shape_of, values_in
from remit.randomness import salt
from tests.every_kind import EVERY_KIND
from tests.journal.test_kinds import PAYLOADS

DIGESTS: Final = {
    "tool_invocation_started": {"request_schema_hash", "policy_hash"},
    "tool_invocation_finished": {"response_schema_hash"},
    "gate_refused": {"request_schema_hash", "policy_hash"},
    "confirmation_requested": {"request_schema_hash", "policy_hash"},
    "command_started": {"policy_hash"},
    "recorder_opened": {"settings_hash"},
    "notify_answer_received": {"body"},
}
"""Fields that name bytes beside the events. Every other hash is one of what is not kept, or kept as a value."""
SAID: Final = {
    ("job_created", "overlay"): "policy rules",
    ("job_created", "rules"): "rules of a skill",
    ("job_created", "sandbox"): "limits of a skill",
    ("confirmation_requested", "sandbox"): "limits of a skill",
    ("approval_remembered", "rule"): "a policy rule",
    ("command_committed", "usage"): "tokens",
    ("schedule_changed", "spec"): "a schedule, as its settings say it",
}
"""Objects of any form that are not about a subject."""
MEMBER: Final = typing.get_args


def structs() -> list[tuple[str, type[msgspec.Struct]]]:
    """Every payload, and every struct in a field of one."""
    found: dict[type[msgspec.Struct], str] = {payload: kind for kind, payload in EVERY_KIND.items()}
    waiting = list(found)
    while waiting:
        struct = waiting.pop()
        for hint in typing.get_type_hints(struct, include_extras=False).values():
            for one in leaves(hint):
                if isinstance(one, type) and issubclass(one, msgspec.Struct) and one not in found:
                    found[one] = found[struct]
                    waiting.append(one)
    return [(kind, struct) for struct, kind in found.items()]


def leaves(hint: Any) -> list[Any]:
    members = [one for one in MEMBER(hint) if not isinstance(one, msgspec.Meta)]
    return [leaf for one in members for leaf in leaves(one)] if members else [hint]


EVERY = pytest.mark.parametrize(("kind", "struct"), structs(), ids=lambda one: getattr(one, "__name__", one))


@EVERY
def test_whatever_can_hold_any_json_is_a_value(kind: str, struct: type[msgspec.Struct]) -> None:
    values = shape_of(struct).values
    for name, hint in typing.get_type_hints(struct).items():
        if name in struct.__struct_fields__ and {Any, msgspec.Raw} & set(leaves(hint)):
            assert name in values or (kind, name) in SAID, f"{kind}: {name} would be seen by no erasure"
        if name in struct.__struct_fields__ and BlobRef in leaves(hint):
            assert name.endswith(TWIN)


@EVERY
def test_a_kept_digest_says_whose_it_is(kind: str, struct: type[msgspec.Struct]) -> None:
    if struct is EVERY_KIND[kind]:
        assert {name for name, _ in shape_of(struct).digests} == DIGESTS.get(kind, set())


@given(PAYLOADS)
def test_no_value_of_a_subject_is_left_in_an_event(payload: Payload) -> None:
    plain = [value for value in values_in(payload) if value.ref is None]
    refs = [value.ref for value in values_in(payload) if value.ref is not None and not value.ref.key]
    beside = [Blob(ref.digest, b"x") for ref in refs]
    raw = [item["raw_pointer"] for item in getattr(payload, "items", ()) if item.get("raw_pointer")]
    (hidden,), blobs = salted([payload], [*beside, *(Blob(one, b"y") for one in raw)], salt)
    assert all(value.ref is not None and value.ref.key for value in values_in(hidden))
    assert len(list(values_in(hidden))) == len(list(values_in(payload)))
    kept = {blob.digest for blob in blobs}
    assert all(value.ref.digest in kept for value in values_in(hidden) if value.ref is not None and value.ref in refs)
    assert len([blob for blob in blobs if blob.data[32:] not in {b"x", b"y"}]) >= len(plain)


def test_messages_within_a_prompt_are_hidden() -> None:
    long = pack(b'{"text":"' + b"Jane" * 3_000 + b'"}')
    started = CommandStarted(
        invocation_id="i",
        step="1",
        prompt=msgspec.Raw(b'{"thread":"t","tools":"sha256:1","output":"sha256:2"}'),
        added=(
            MessageKept(digest="sha256:3", body=msgspec.Raw(b'{"text":"Jane"}')),
            MessageKept(digest="sha256:4", body_blob=long.ref),
            MessageKept(digest="sha256:5"),
        ),
    )
    assert len(list(values_in(started))) == 3
    (hidden,), blobs = salted([started], long.blobs, salt)
    assert b"Jane" not in encode(hidden)
    texts = {blob.data[32:] for blob in blobs}
    assert len(texts) == 3
    assert b'{"text":"Jane"}' in texts
    assert all(sha256(blob.data) == blob.digest for blob in blobs)
    prompt = next(value for value in values_in(started) if value.holds is not None)
    assert [named.digest for named in digests_of(prompt, prompt.inline_bytes)] == ["sha256:1", "sha256:2"]
    assert list(digests_in(started)) == []
