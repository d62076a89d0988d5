"""The table of stable codes."""

from __future__ import annotations

import re
from collections import Counter
from http import HTTPStatus
from pathlib import Path

import pytest

import remit
from remit.codes import BLOCKED, ERROR, FAILED, HEALTH, NOTE, PENDING, Code, Reserved

SOURCE = Path(remit.__file__).parent

CLIENT_CLOSED = 499
"""Nginx's status for a client that left; no RFC has one."""

CONTRACT = {
    BLOCKED: "INVALID_TOOL_STEP UNKNOWN_TOOL INVALID_TOOL_ARGS INVALID_BUDGET MCP_REQUIRED_UNAVAILABLE BUDGET_EXCEEDED "
    "INVALID_EVIDENCE_CANDIDATE",
    FAILED: "RUN_TIMEOUT TOOL_TIMEOUT TOOL_EXEC_FAILED TOOL_UNAVAILABLE",
    HEALTH: "DEP_UNAVAILABLE DEP_INIT_FAILED DEP_TIMEOUT DEP_UNKNOWN",
}
"""Codes that the contracts promise, by what they do to a call."""
PROMISED = (
    "ToolNotFound SpawnFailed Timeout ConnectionError ProviderClosed InvalidInput AuthError NetworkError BadGateway "
    "missing type_mismatch unknown_field schema_invalid tool_verdict_invalid SCHEMA_VALIDATION_FAILED APPEND_CONFLICT "
    "EXECUTION_VERSION_MISMATCH TOOL_SCHEMA_DRIFT MODEL_DRIFT EVIDENCE_INLINE_TOO_LARGE EVIDENCE_RAW_TOO_LARGE "
    "EVIDENCE_REDACTED EVIDENCE_WRITE_FAILED EVIDENCE_PATH_TRAVERSAL EVIDENCE_INVALID_POINTER EVIDENCE_INVALID_ITEM "
    "EVIDENCE_INVALID_TRUNCATION "
    "WebProviderError WebBlocked captcha_required captcha_cooldown http_403 http_429 WebParseError "
    "ssrf_blocked dns_failed connect_failed tls_failed timeout_connect timeout_read content_too_large "
    "parse_failed unsupported_content_type EXECUTOR_FATAL CONFIG_MISSING LEASE_FAILED DERIVE_FAILED "
    "RELEASE_FAILED LEASE_OWNER_MISMATCH not_found lease_conflict lease_owner_mismatch "
    "direct_fill_not_allowed direct_fill_missing_by gate_kind_not_tool gate_reply_derivation_disabled "
    "gate_tool_only_mode missing_tool_verdict gate_tool_verdict_not_proceed idempotent recovered_orphan "
    "schema_validation_failed created not_tool missing_parent_ticket_id missing_parent_triage_ticket "
    "artifact_sha_mismatch artifact_missing manifest_schema_invalid details_ref_not_listed "
    "manifest_self_integrity_failed duplicate_artifact_path duplicate_check_name dep_unresolved "
    "test_failed ci_failed review_changes_requested env_unavailable permission_denied output_unparseable "
    "stale_run stale_result_discarded manual_intervention outcome_unknown"
)
"""Other codes that the contracts promise."""


def test_no_two_names_share_one_meaning() -> None:
    assert len(Code.__members__) == len(set(Code)), "equal rows make one code an alias of the other"
    meanings = Counter(code.meaning for code in Code)
    assert [meaning for meaning, times in meanings.items() if times > 1] == []


@pytest.mark.parametrize("code", Code)
def test_a_row_is_complete(code: Code) -> None:
    assert code.status in {BLOCKED, FAILED, PENDING, ERROR, HEALTH, NOTE}
    assert code.http == CLIENT_CLOSED or code.http in set(HTTPStatus)
    assert isinstance(code.retryable, bool)
    assert code.meaning[0].isupper()
    assert code.meaning.endswith(".")
    assert str(code) == code.name


@pytest.mark.parametrize(("status", "names"), CONTRACT.items())
def test_the_contracts_codes_do_to_a_call_what_the_contract_says(status: str, names: str) -> None:
    assert {Code[name].status for name in names.split()} == {status}


@pytest.mark.parametrize("name", PROMISED.split())
def test_what_the_contracts_promise_is_there(name: str) -> None:
    assert name in Code.__members__


@pytest.mark.slow
def test_the_reserved_codes_are_those_that_nothing_here_gives_and_that_the_contracts_promise() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.parent.name != "codes")
    named = {*re.findall(r"\bCode\.(\w+)", source), *re.findall(r"[\"'](\w+)[\"']", source)}
    reserved = {code.name for code in Code if isinstance(code.value, Reserved)}
    assert reserved == {code.name for code in Code if code.name not in named}, (
        "make a row Reserved as long as src does not name it, and only then"
    )
    assert reserved <= set(PROMISED.split()), "a code that is Remit's own comes with what gives it"


def test_of_failed_calls_only_these_can_be_tried_again_by_the_contract() -> None:
    names = (CONTRACT[BLOCKED] + " " + CONTRACT[FAILED]).split()
    again = {name for name in names if Code[name].retryable}
    assert again == {"TOOL_TIMEOUT", "TOOL_UNAVAILABLE"}


@pytest.mark.parametrize("code", [code for code in Code if code.status in {BLOCKED, FAILED, PENDING, ERROR}])
def test_an_answer_that_is_no_success_has_no_status_of_one(code: Code) -> None:
    if code.status == PENDING:
        assert code.http == HTTPStatus.ACCEPTED
    else:
        assert code.http >= HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("code", [code for code in Code if code.retryable])
def test_what_can_be_tried_again_is_the_servers_trouble_or_a_matter_of_time(code: Code) -> None:
    of_time = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
    assert code.http >= HTTPStatus.INTERNAL_SERVER_ERROR or code.http in of_time


def test_a_recorded_code_is_read_and_one_of_another_remit_keeps_its_name() -> None:
    assert Code.recorded("TOOL_TIMEOUT", Code.JOB_FAILED) is Code.TOOL_TIMEOUT
    newer = Code.recorded("NEWER", Code.TOOL_EXEC_FAILED, retryable=True)
    assert (newer.name, str(newer), newer.status, newer.http) == ("NEWER", "NEWER", FAILED, Code.TOOL_EXEC_FAILED.http)
    assert newer.retryable
    assert newer is Code.recorded("NEWER", Code.TOOL_EXEC_FAILED, retryable=True)
    assert newer not in set(Code)
    assert "NEWER" not in Code.__members__
