"""Orders and results in every form: what is read is what was written, whichever way it went, unknown fields too."""

from __future__ import annotations

import builtins
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work import forms as protobuf
from remit.parts.work.forms import FORMS, Form, form_of, read_order_in, read_result_in, write_in
from remit.parts.work.order import Command, Constraints, WorkOrder
from remit.parts.work.result import RESULT_CODES, Changes, Test, WorkResult

ISSUE, RUN = "org/contracts#123", "2026-02-14-backend-0003"
_PROTOBUF: Final = find_spec("google") is not None and find_spec("google.protobuf") is not None
needs_protobuf: Final = pytest.mark.skipif(not _PROTOBUF, reason="without the extra `work`")
BINARY: Final[tuple[Form, ...]] = ("pb", "textproto")
STRUCTURED: Final[tuple[Form, ...]] = ("json", *BINARY)

_TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
_URL = _TEXT.map(str.strip).filter(lambda text: text.lower() != "none")
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_INT = st.integers(0, 2**31 - 1)
_UNKNOWN = st.dictionaries(st.from_regex(r"later_[a-z]{1,5}", fullmatch=True), st.integers(0, 9) | _TEXT, max_size=2)
_JSON = _UNKNOWN.map(lambda names: msgspec.json.encode(names, order="sorted").decode() if names else "")
_FIELDS = st.sampled_from([b"", b"\xa2\x06\x05hello", b"\xa0\x06\x07\xa0\x06\x08"])
"""Fields 100 of a version to come: a text; two numbers."""
RESULTS = st.builds(
    WorkResult,
    issue_ref=st.just(ISSUE),
    run_id=st.just(RUN),
    status=st.sampled_from(["ok", "fail", "blocked"]),
    changes=st.builds(Changes, pr=_URL, commit=_URL),
    tests=st.lists(
        st.builds(Test, command=_TEXT, result=st.sampled_from(["pass", "fail", "n/a"]), evidence=_TEXT), max_size=3
    ).map(tuple),
    summary=_TEXT,
    blocked_by=_TEXTS,
    questions=_TEXTS,
    artifacts=_TEXTS,
    result_code=st.sampled_from(["", *sorted(RESULT_CODES)]),
    schema_version=_INT,
    unknown_fields=_FIELDS,
)
ORDERS = st.builds(
    WorkOrder,
    issue_ref=st.just(ISSUE),
    run_id=st.just(RUN),
    role=st.just("backend"),
    repo_dir=_TEXT.filter(bool),
    spec_ref=_TEXT,
    spec_snapshot=_TEXT,
    contracts_ref=_TEXT,
    constraints=st.builds(
        Constraints,
        forbidden_paths=_TEXTS,
        interface_paths=_TEXTS,
        commands=st.lists(
            st.builds(Command, args=_TEXTS.filter(bool), timeout_seconds=_INT),
            max_size=2,
        ).map(tuple),
        target_branch=_TEXT,
        notes=_TEXTS,
    ),
    depends_on=st.lists(st.just("local#3"), max_size=2).map(tuple),
    lease_ttl=_INT,
    schema_version=_INT,
    unknown_fields=_FIELDS,
)


@needs_protobuf
@given(RESULTS, _JSON, st.permutations(STRUCTURED))
def test_a_result_and_what_it_does_not_know_survive_every_form(
    result: WorkResult, unknown: str, way: list[Form]
) -> None:
    read = before = msgspec.structs.replace(result, unknown_json=unknown)
    for form in way:
        read = read_result_in(form, write_in(form, read))
    assert _plain(read) == _plain(before)


@needs_protobuf
@given(ORDERS, _JSON, st.permutations(STRUCTURED))
def test_an_order_and_what_it_does_not_know_survive_every_form(order: WorkOrder, unknown: str, way: list[Form]) -> None:
    read = before = msgspec.structs.replace(order, unknown_json=unknown)
    for form in way:
        read = read_order_in(form, write_in(form, read))
    assert _plain(read) == _plain(before)


def _plain(document: WorkOrder | WorkResult) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(document)
    return values | {"unknown_json": msgspec.json.decode(document.unknown_json or "{}")}


@needs_protobuf
def test_a_newer_worker_may_write_fields_within_fields() -> None:
    newer = (
        b'{"issueRef":"local#1","run_id":"2026-02-14-work-0001","status":"ok",'
        b'"changes":{"branch":"x"},"cost":{"usd":1}}'
    )
    read = read_result_in("json", newer)
    assert read.status == "ok"
    written = msgspec.json.decode(write_in("json", read))
    assert (written["changes"], written["cost"]) == ({"branch": "x"}, {"usd": 1})
    kind = protobuf._message("WorkResult")
    binary = kind(issue_ref="local#1", run_id="2026-02-14-work-0001", status="ok").SerializeToString()
    nested = b"\x22\x03\xa0\x06\x07"  # changes { 100: 7 }
    again = write_in("pb", read_result_in("pb", binary + nested))
    assert kind.FromString(again).changes.SerializeToString() == nested[2:]


@needs_protobuf
@given(ORDERS)
def test_an_older_worker_hands_on_what_it_does_not_know(order: WorkOrder) -> None:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - an extra

    described = descriptor_pb2.FileDescriptorSet.FromString(
        files("remit.parts.work").joinpath("work.binpb").read_bytes()
    )
    for kind in described.file[0].message_type:
        known = [field for field in kind.field if field.number <= 4]
        del kind.field[:], kind.oneof_decl[:]
        for field in known:
            field.ClearField("oneof_index")
            field.ClearField("proto3_optional")
            kind.field.append(field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described.file[0])
    older = message_factory.GetMessageClass(pool.FindMessageTypeByName("remit.work.v1.WorkOrder"))
    handed_on = older.FromString(write_in("pb", order))
    assert (handed_on.issue_ref, handed_on.repo_dir) == (order.issue_ref, order.repo_dir)
    assert read_order_in("pb", handed_on.SerializeToString()) == read_order_in("pb", write_in("pb", order))


@needs_protobuf
@pytest.mark.parametrize("form", STRUCTURED)
def test_what_is_unknown_says_nothing_of_what_is_known(form: Form) -> None:
    forged = {
        "issue_ref": "local#1",
        "run_id": "2026-02-14-work-0001",
        "status": "fail",
        "unknown_json": '{"summary":"It went well.","status":"ok"}',
        "unknown_fields": "GAE=",  # status: ok
    }
    read = read_result_in("json", msgspec.json.encode(forged))
    again = read_result_in(form, write_in(form, read))
    assert (again.status, again.summary) == ("fail", "")


@needs_protobuf
def test_the_names_of_the_seed_stand_in_the_text_and_the_json_of_protobuf_itself() -> None:
    from google.protobuf import json_format  # noqa: PLC0415 - an extra

    result = WorkResult(issue_ref=ISSUE, run_id=RUN, status="blocked", tests=(Test(result="n/a"),))
    assert b"status: blocked" in write_in("textproto", result)
    message = protobuf._message("WorkResult")()
    json_format.Parse(write_in("json", result), message)
    theirs = json_format.MessageToJson(message)
    assert '"status": "blocked"' in theirs
    assert '"issueRef"' in theirs
    assert read_result_in("json", theirs.encode()) == result


@needs_protobuf
@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("pb", b"\xff\xff"),
        ("pb", b"\x0a\x02\xff\xfe"),  # no UTF-8
        ("pb", b""),
        ("textproto", b"status: perhaps"),
        ("textproto", b"\xff"),
        ("textproto", b'issue_ref: "local#1" run_id: "2026-02-14-work-0001" status: absent'),
        ("textproto", b'issue_ref: "local#1" run_id: "2026-02-14-work-0001" status: 9'),
        ("textproto", b'issue_ref: "local#1" run_id: "1" status: ok'),
        ("textproto", b'issue_ref: "local#1" run_id: "2026-02-14-work-0001" status: ok unknown_json: "["'),
        ("json", b'{"issue_ref":"local#1","run_id":"2026-02-14-work-0001","status":"ok","unknown_json":"[]"}'),
        ("json", b'{"issue_ref":"local#1","run_id":"2026-02-14-work-0001","status":"ok","unknown_json":7,"x":1}'),
        ("json", b'{"issue_ref":"local#1","run_id":"2026-02-14-work-0001","status":"ok","summary":"\\ud800"}'),
        ("json", b'{"issue_ref":"local#1","run_id":"2026-02-14-work-0001","status":"ok","schema_version":-1}'),
        ("json", b'{"issue_ref":"local#1","run_id":"2026-02-14-work-0001","status":"ok","unknown_fields":"!"}'),
        ("txt", b"Status: ok"),
    ],
)
def test_a_malformed_result_is_unparseable_in_every_form(form: Form, data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_result_in(form, data)
    assert refused.value.code is Code.output_unparseable


@needs_protobuf
@pytest.mark.parametrize(
    ("form", "data"),
    [("pb", b"\xff"), ("textproto", b"repo_dir: 1"), ("textproto", b'role: "qa"'), ("json", b"{}"), ("txt", b"x")],
)
def test_a_malformed_order_is_refused_in_every_form(form: Form, data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_order_in(form, data)
    assert refused.value.code is Code.WORK_INVALID


@needs_protobuf
def test_fields_that_are_no_protobuf_are_not_written_as_such() -> None:
    result = WorkResult(issue_ref=ISSUE, run_id=RUN, status="ok", unknown_fields=b"\xff")
    with pytest.raises(UsageError) as refused:
        write_in("pb", result)
    assert refused.value.code is Code.WORK_INVALID


def test_half_of_a_surrogate_pair_is_no_text_of_a_result() -> None:
    result = WorkResult(issue_ref=ISSUE, run_id=RUN, status="ok", tests=(Test(command="\ud800", result="pass"),))
    with pytest.raises(UsageError) as refused:
        result.check(Code.WORK_INVALID)
    assert refused.value.code is Code.WORK_INVALID


def test_the_form_is_the_ending_of_the_name() -> None:
    assert [form_of(f"a.b.{form}") for form in FORMS] == list(FORMS)
    assert form_of("WORK.JSON") == "json"
    for name in ("", "json", "result.xml", "result."):
        with pytest.raises(UsageError) as refused:
            form_of(name)
        assert refused.value.code is Code.WORK_INVALID
    with pytest.raises(UsageError):
        write_in("txt", WorkOrder(issue_ref=ISSUE, run_id=RUN, role="backend", repo_dir="/x"))


def test_without_the_extra_json_and_text_work_and_protobuf_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("google"):
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    protobuf._message.cache_clear()
    result = WorkResult(issue_ref=ISSUE, run_id=RUN, status="ok", changes=Changes(pr="x"), summary="Done.")
    assert read_result_in("json", write_in("json", result)) == result
    assert read_result_in("txt", write_in("txt", result)).status == "ok"
    for form in BINARY:
        with pytest.raises(UsageError) as refused:
            read_result_in(form, b"")
        assert refused.value.code is Code.WORK_INVALID
        assert "remit[work]" in refused.value.remedy


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="without grpcio-tools")
def test_the_descriptor_set_is_that_of_the_definition(tmp_path: Path) -> None:
    folder = files("remit.parts.work")
    compiled = tmp_path / "work.binpb"
    words = ("-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={compiled}", "work.proto")
    subprocess.run([sys.executable, *words], check=True)
    assert compiled.read_bytes() == folder.joinpath("work.binpb").read_bytes()
