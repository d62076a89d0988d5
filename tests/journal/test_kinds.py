from __future__ import annotations

import typing
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import ChainBrokenError
from remit.journal.blobs import BlobRef
from remit.journal.kinds import (
    ErrorInfo,
    JobWaiting,
    Payload,
    TimeRecorded,
    ToolInvocationFinished,
    decode,
    encode,
)
from tests.every_kind import EVERY_KIND

INTEGERS = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    int: INTEGERS,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
    msgspec.Raw: JSON.map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
    dict[str, str]: st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3),
    dict[str, int]: st.dictionaries(st.text(max_size=8), INTEGERS, max_size=3),
    dict[str, tuple[int, str]]: st.dictionaries(
        st.text(max_size=8), st.tuples(INTEGERS, st.text(max_size=8)), max_size=3
    ),
    dict[str, Any]: st.dictionaries(st.text(max_size=8), JSON, max_size=3),
    dict[str, tuple[str, ...]]: st.dictionaries(
        st.text(max_size=8), st.lists(st.text(max_size=8), max_size=3).map(tuple), max_size=3
    ),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Everything a field of a type may hold."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return values(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {dict, tuple}:
        inner = [values(member) for member in arguments if member is not ...]
        return st.dictionaries(*inner, max_size=3) if origin is dict else st.lists(inner[0], max_size=3).map(tuple)
    if arguments:
        return st.one_of([values(member) for member in arguments])
    return built(hint)


def built(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = {field.name: values(field.type) for field in msgspec.structs.fields(struct)}
    return st.builds(struct, **fields)


PAYLOADS = st.sampled_from(sorted(EVERY_KIND)).flatmap(lambda kind: built(EVERY_KIND[kind]))
EVERY = pytest.mark.parametrize("payload", EVERY_KIND.values(), ids=EVERY_KIND)


def smallest(payload: type[Payload]) -> dict[str, Any]:
    """The fields that have to be there, and nothing else."""
    examples: dict[Any, Any] = {str: "x", int: 1, float: 0.5, ErrorInfo: {"code": "X"}, dict[str, Any]: {}}
    examples[dict[str, str]] = {}
    examples[BlobRef] = {"digest": "sha256:0", "bytes": 1, "preview": ""}
    found = {}
    for field in msgspec.structs.fields(payload):
        if field.required:
            arguments, origin = typing.get_args(field.type), typing.get_origin(field.type)
            hint = arguments[0] if origin is Annotated else field.type
            found[field.name] = arguments[0] if origin is Literal else examples.get(hint, [])
    return found


@given(PAYLOADS)
def test_what_is_encoded_is_decoded_again(payload: Payload) -> None:
    encoded = encode(payload)
    assert decode(payload.KIND, encoded) == payload
    assert encode(typing.cast("Payload", decode(payload.KIND, encoded))) == encoded


@given(PAYLOADS, st.dictionaries(st.text(min_size=1, max_size=8).map(lambda name: f"new_{name}"), JSON, max_size=3))
def test_fields_of_a_newer_version_are_ignored(payload: Payload, added: dict[str, Any]) -> None:
    document = msgspec.json.decode(encode(payload))
    assert decode(payload.KIND, msgspec.json.encode({**added, **document})) == payload


@EVERY
def test_a_value_that_closed_lists_lack_is_kept_as_a_newer_version_recorded_it(payload: type[Payload]) -> None:
    for field in msgspec.structs.fields(payload):
        if typing.get_origin(field.type) is Literal:
            document = {**smallest(payload), field.encode_name: "newer"}
            decoded = decode(payload.KIND, msgspec.json.encode(document))
            assert getattr(decoded, field.name) == "newer"
            assert msgspec.json.decode(encode(typing.cast("Payload", decoded))) == document


@EVERY
def test_optional_fields_may_be_missing(payload: type[Payload]) -> None:
    given_fields = smallest(payload)
    decoded = decode(payload.KIND, msgspec.json.encode(given_fields))
    assert isinstance(decoded, payload)
    assert msgspec.json.decode(encode(decoded)).keys() == given_fields.keys(), "defaults are left out"


@EVERY
def test_required_fields_may_not_be_missing(payload: type[Payload]) -> None:
    for name in smallest(payload):
        rest = {key: value for key, value in smallest(payload).items() if key != name}
        with pytest.raises(ChainBrokenError, match=name):
            decode(payload.KIND, msgspec.json.encode(rest))


@EVERY
def test_fields_are_named_where_a_payload_is_built(payload: type[Payload]) -> None:
    with pytest.raises(TypeError):
        payload(*smallest(payload).values(), "one more")


@given(st.sampled_from(sorted(EVERY_KIND)), st.binary(max_size=80) | JSON.map(msgspec.json.encode))
def test_bytes_are_a_payload_or_a_broken_record(kind: str, data: bytes) -> None:
    try:
        decoded = decode(kind, data)
    except ChainBrokenError:
        return
    assert isinstance(decoded, EVERY_KIND[kind])


def test_a_broken_record_names_its_kind_and_what_to_do() -> None:
    with pytest.raises(ChainBrokenError, match="job_failed") as broken:
        decode("job_failed", b"[]")
    assert broken.value.remedy


def test_endless_nesting_is_a_broken_record() -> None:
    data = b'{"rule": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    with pytest.raises(ChainBrokenError):
        decode("approval_remembered", data)


def test_a_kind_of_a_newer_version_is_passed_over() -> None:
    assert decode("invented_later", b'{"x": 1}') is None


def test_a_value_is_kept_as_it_was_given() -> None:
    given_bytes = b'{"b":1.0,"a":[1e3,"\\u00e9"]}'
    finished = msgspec.json.decode(b'{"result":' + given_bytes + b"}", type=EVERY_KIND["job_completed"])
    decoded = decode("job_completed", encode(finished))
    assert bytes(typing.cast("Any", decoded).result) == given_bytes


def test_the_names_are_those_of_the_contract() -> None:
    contract = """
    job_created plan_generated tool_invocation_started tool_invocation_finished command_committed job_waiting
    wait_completed timer_fired random_recorded uuid_recorded time_recorded step_compensated job_completed job_failed
    job_cancelled version_mismatch_recorded schema_drift_recorded model_drift_recorded confirmation_requested
    confirmation_decided gate_refused evidence_attached recovery_started recovery_completed job_forked"""
    assert set(contract.split()) <= EVERY_KIND.keys()


def test_every_payload_is_a_kind() -> None:
    def leaves(base: type[Payload]) -> set[type[Payload]]:
        return {leaf for below in base.__subclasses__() for leaf in leaves(below)} or {base}

    assert leaves(Payload) == set(EVERY_KIND.values())
    assert all(kind == payload.KIND for kind, payload in EVERY_KIND.items())


def test_an_older_duration_stays_readable() -> None:
    fields = b'"invocation_id":"i","step":"1","outcome":"success"'
    for data, us in ((b'"duration_us":1500', 1_500), (b'"duration_ms":1.5', 1_500), (b'"duration_ms":2', 2_000)):
        finished = decode("tool_invocation_finished", b"{" + fields + b"," + data + b"}")
        assert isinstance(finished, ToolInvocationFinished)
        assert finished.duration_us == us


def test_a_payload_says_what_it_is() -> None:
    assert TimeRecorded.KIND == "time_recorded"
    waiting = JobWaiting(step="1", wait_type="timer", correlation_key="k")
    assert encode(waiting) == b'{"step":"1","wait_type":"timer","correlation_key":"k"}'
    assert BlobRef("sha256:0", 1, "x") == msgspec.json.decode(
        b'{"digest":"sha256:0","bytes":1,"preview":"x"}', type=BlobRef
    )
