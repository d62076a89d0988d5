"""What is kept of the evidence a call brings (contract: tickets, "Evidence")."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import sha256
from remit.clock import DAY
from remit.codes import Code
from remit.gateway.outcome import EvidenceItem
from remit.gateway.result import CUT, FORBIDDEN, NEVER, EvidenceLimits, KeptResult, keep, problem
from remit.tools.provider import EvidenceCandidate

LIMITS = EvidenceLimits(inline=10, raw=100, items=3, days=7)
NOW = 1_000
CLASS_A = ("tool_output", "llm_output", "final_reply", "structured_result_json", "anything_else")
LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


def candidate(text: str | None = None, kind: str = "tool_output", **changes: Any) -> EvidenceCandidate:
    said: dict[str, Any] = {"kind": kind, "source": "fs:notes.txt", "retrieved_at": 7, "text": text}
    return EvidenceCandidate(**(said | changes))


def kept(*candidates: EvidenceCandidate, limits: EvidenceLimits = LIMITS) -> KeptResult:
    assert not any(problem(each) for each in candidates)
    return keep(candidates, limits, NOW)


def item(*candidates: EvidenceCandidate) -> EvidenceItem:
    (only,) = kept(*candidates).items
    return only


# --- what a candidate has to be


def test_a_candidate_with_kind_source_and_time_is_fine() -> None:
    assert problem(candidate("text", metadata={"page": 1, "deep": [{"a": None}]})) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ""},
        {"source": ""},
        {"retrieved_at": 0},
        {"retrieved_at": -1},
        {"kind": None},
        {"kind": 5},
        {"source": b"x"},
        {"retrieved_at": "now"},
        {"retrieved_at": True},
        {"retrieved_at": 1.5},
        {"retrieved_at": 2**53},
        {"text": b"bytes"},
        {"text": 5},
        {"metadata": None},
        {"metadata": [1]},
        {"metadata": {1: 2}},
        {"kind": "k" * 101},
        {"kind": "\ud800"},
        {"source": "\ud800"},
    ],
    ids=repr,
)
def test_a_candidate_that_lacks_or_garbles_something_is_refused(changes: dict[str, Any]) -> None:
    assert problem(candidate(**changes))


@pytest.mark.parametrize("thing", [None, "text", {"kind": "x"}, 5, object()])
def test_something_else_is_no_candidate(thing: object) -> None:
    assert "candidate" in problem(thing)


@pytest.mark.parametrize("key", [*sorted(FORBIDDEN), "Bytes", "BASE64"])
@pytest.mark.parametrize(
    "nest", [lambda inner: inner, lambda inner: {"a": [{"b": inner}]}, lambda inner: {"a": (inner,)}]
)
def test_bytes_may_not_travel_under_their_names_at_any_depth(key: str, nest: Any) -> None:
    assert repr(key) in problem(candidate(metadata=nest({key: "aGVsbG8="})))


@pytest.mark.parametrize(
    "value",
    [
        b"x",
        bytearray(b"x"),
        memoryview(b"x"),
        {1, 2},
        object(),
        float("nan"),
        pytest.param(10**4300, id="long"),
        LOOP,
        "\ud800",
    ],
)
def test_metadata_is_json_and_nothing_else(value: Any) -> None:
    assert "JSON only" in problem(candidate(metadata={"a": [value]}))


# --- the classes


@pytest.mark.parametrize("kind", CLASS_A)
def test_class_a_is_kept_whole_inline_while_it_is_small(kind: str) -> None:
    assert item(candidate("0123456789", kind)) == EvidenceItem(
        kind=kind,
        source="fs:notes.txt",
        retrieved_at=7,
        storage="inline",
        bytes=10,
        stored_bytes=10,
        hash=sha256(b"0123456789"),
        inline="0123456789",
    )


KEYS = [
    *("kind", "source", "retrieved_at", "storage", "code", "bytes", "stored_bytes", "truncated", "hash", "hash_scope"),
    *("inline", "raw_pointer", "metadata"),
]
"""Every key of an item (contract: tickets, "Evidence")."""


@pytest.mark.parametrize(
    "given", [candidate("0123456789"), candidate(None), candidate("x" * 101), candidate("x", "pii_raw")]
)
def test_an_item_as_json_has_every_key_of_the_contract(given: EvidenceCandidate) -> None:
    assert list(msgspec.json.decode(msgspec.json.encode(item(given)))) == KEYS


@pytest.mark.parametrize("kind", CLASS_A)
def test_class_a_is_kept_whole_in_a_blob_when_it_is_larger(kind: str) -> None:
    text = "0123456789x"
    found = kept(candidate(text, kind))
    assert found.items == (
        EvidenceItem(
            kind=kind,
            source="fs:notes.txt",
            retrieved_at=7,
            storage="raw",
            code="EVIDENCE_INLINE_TOO_LARGE",
            bytes=11,
            stored_bytes=11,
            hash=sha256(text.encode()),
            raw_pointer=sha256(text.encode()),
        ),
    )
    assert [(blob.digest, blob.data) for blob in found.blobs] == [(sha256(text.encode()), text.encode())]


@pytest.mark.parametrize("kind", CLASS_A)
def test_class_a_is_left_out_rather_than_cut_when_it_is_too_large(kind: str) -> None:
    found = kept(candidate("x" * 101, kind))
    (only,) = found.items
    assert (only.storage, only.code, only.bytes, only.stored_bytes) == ("omitted", "EVIDENCE_RAW_TOO_LARGE", 101, 0)
    assert (only.truncated, only.inline, only.raw_pointer, found.blobs) == (False, None, None, ())
    assert only.hash == sha256(b"x" * 101)


@pytest.mark.parametrize("kind", sorted(CUT))
def test_class_b_is_cut_at_its_head(kind: str) -> None:
    only = item(candidate("0123456789 and more", kind))
    assert (only.storage, only.inline, only.truncated) == ("inline", "0123456789", True)
    assert only.code == "EVIDENCE_INLINE_TOO_LARGE"
    assert (only.bytes, only.stored_bytes, only.hash_scope) == (19, 10, "original")
    assert only.hash == sha256(b"0123456789 and more")


def test_class_b_is_not_cut_within_a_character() -> None:
    only = item(candidate("ääääää", "stderr"))
    assert (only.inline, only.stored_bytes, only.bytes) == ("äääää", 10, 12)
    assert item(candidate("xääääää", "stderr")).inline == "xääää"


@pytest.mark.parametrize("kind", [*sorted(NEVER), "SECRETS", "Credentials"])
def test_class_c_is_never_kept_and_neither_is_what_could_betray_it(kind: str) -> None:
    found = kept(candidate("hunter2", kind, metadata={"user": "hunter"}))
    assert found == KeptResult(
        (
            EvidenceItem(
                kind=kind,
                source="fs:notes.txt",
                retrieved_at=7,
                bytes=7,
                code="EVIDENCE_REDACTED",
                hash_scope="unknown",
            ),
        ),
        (),
    )


def test_a_candidate_without_text_only_says_that_it_was_there() -> None:
    only = item(candidate(None, metadata={"rows": 5}))
    assert (only.storage, only.hash, only.bytes, only.metadata) == ("omitted", "", 0, {"rows": 5})


def test_an_empty_text_is_kept() -> None:
    only = item(candidate(""))
    assert (only.storage, only.inline, only.hash) == ("inline", "", sha256(b""))


def test_sizes_are_bytes_not_characters() -> None:
    assert item(candidate("ääääää")).storage == "raw"


# --- bounds


def test_items_beyond_the_limit_are_counted() -> None:
    found = kept(*(candidate(f"{number}", metadata={"n": number}) for number in range(5)))
    assert [one.inline for one in found.items] == ["0", "1", "2"]
    assert found.items[-1].metadata == {"n": 2, "dropped_items": 2}


def test_where_none_may_be_kept_none_is() -> None:
    limits = EvidenceLimits(inline=10, raw=100, items=0, days=7)
    assert kept(candidate("x"), limits=limits) == KeptResult((), ())


@pytest.mark.parametrize(("days", "until"), [(7, NOW + 7 * DAY), (0, None)])
def test_bytes_beside_a_report_are_kept_for_some_days(days: int, until: int | None) -> None:
    limits = EvidenceLimits(inline=10, raw=100, items=3, days=days)
    assert [blob.until for blob in kept(candidate("y" * 50), limits=limits).blobs] == [until]


def test_metadata_that_must_be_content_is_left_out() -> None:
    only = item(candidate("x", metadata={"body": "y" * 50}))
    assert (only.metadata, only.code) == ({"omitted_bytes": 61}, "EVIDENCE_INLINE_TOO_LARGE")
    assert only.inline == "x"


def test_a_source_that_must_be_content_is_cut() -> None:
    only = item(candidate("x", source="data:" + "A" * 10_000))
    assert (len(only.source), only.source[-1]) == (2_000, "…")


@given(
    st.lists(
        st.builds(
            candidate,
            st.none() | st.text(st.characters(), max_size=150),
            st.sampled_from([*CLASS_A, *CUT, *NEVER]),
            metadata=st.dictionaries(
                st.text(max_size=3), st.integers() | st.text(st.characters(), max_size=3), max_size=3
            ),
        ),
        max_size=6,
    )
)
def test_whatever_is_kept_can_be_recorded_and_is_read_back_the_same(candidates: list[EvidenceCandidate]) -> None:
    fine = [each for each in candidates if not problem(each)]
    found = keep(fine, LIMITS, NOW)
    assert len(found.items) == min(len(fine), LIMITS.items)
    for only, given_ in zip(found.items, fine, strict=False):
        assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(only)), EvidenceItem) == only
        assert only.code is None or Code[only.code].status == "note"
        if given_.text is not None and only.hash:
            data = given_.text.encode("utf-8", "replace")
            assert only.hash == sha256(data)
            assert not only.truncated or given_.kind in CUT
            assert len((only.inline or "").encode()) <= LIMITS.inline
    for blob in found.blobs:
        assert sha256(blob.data) == blob.digest
        assert LIMITS.inline < len(blob.data) <= LIMITS.raw


def test_metadata_nested_as_deep_as_json_may_be_is_no_problem_for_the_stack() -> None:
    deep: Any = 1
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    assert "levels" in problem(candidate(metadata={"a": deep}))


# --- content that is not text


PNG = b"\x89PNG\r\n\x1a\n"


def test_bytes_lie_in_a_blob_however_few_they_are() -> None:
    found = kept(candidate(None, "tool_attachment", data=PNG, metadata={"page": 1}))
    (only,) = found.items
    assert (only.storage, only.inline, only.raw_pointer) == ("raw", None, sha256(PNG))
    assert (only.hash, only.bytes, only.stored_bytes, only.metadata) == (sha256(PNG), 8, 8, {"page": 1})
    assert [(blob.digest, blob.data, blob.until) for blob in found.blobs] == [(sha256(PNG), PNG, NOW + 7 * DAY)]


@pytest.mark.parametrize("kind", sorted(CUT))
def test_bytes_are_never_cut(kind: str) -> None:
    only = item(candidate(None, kind, data=b"\x00" * 50))
    assert (only.storage, only.stored_bytes, only.truncated) == ("raw", 50, False)


def test_bytes_that_are_too_many_are_left_out() -> None:
    found = kept(candidate(None, data=b"\x00" * 101))
    (only,) = found.items
    assert (only.storage, only.code, only.bytes, only.stored_bytes) == ("omitted", "EVIDENCE_RAW_TOO_LARGE", 101, 0)
    assert only.hash == sha256(b"\x00" * 101)
    assert found.blobs == ()


@pytest.mark.parametrize("kind", sorted(NEVER))
def test_bytes_that_could_betray_are_never_kept(kind: str) -> None:
    found = kept(candidate(None, kind, data=PNG))
    assert (found.items[0].hash, found.items[0].code, found.blobs) == ("", "EVIDENCE_REDACTED", ())


def test_no_bytes_at_all_are_content_too() -> None:
    only = item(candidate(None, data=b""))
    assert (only.storage, only.hash, only.bytes) == ("raw", sha256(b""), 0)


@pytest.mark.parametrize("data", [5, 1.5, [1, 2], {"a": 1}])
def test_data_is_bytes_and_nothing_else(data: Any) -> None:
    assert problem(candidate(None, data=data))
