"""Which test shows which line of the contract on tickets. A line without a test that exists is a line nobody keeps."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
TICKETS, EXECUTION = "testing/src/remit_testing/tickets.py", "testing/src/remit_testing/execution.py"
STEPS, VERDICT, DERIVE = (
    "tests/parts/tickets/test_steps.py",
    "tests/parts/tickets/test_verdict.py",
    "tests/parts/tickets/test_derive.py",
)
REPORT, RUNNER, SERVICE = (
    "tests/parts/tickets/test_report.py",
    "tests/parts/tickets/test_runner.py",
    "tests/service/test_tickets.py",
)
CODES, NAMING, CATALOG = "tests/test_codes.py", "tests/tools/test_names.py", "tests/tools/test_catalog.py"
INVOKE, READY, GATE = (
    "tests/gateway/stages/test_invoke.py",
    "tests/gateway/test_readiness.py",
    "tests/gateway/test_schema_gate.py",
)
TOOLS, RUNS, PROBES = (
    "tests/api/test_tools.py",
    "tests/service/test_ticket_runs.py",
    "tests/gateway/test_probes.py",
)
EVIDENCE, PART, REQUESTS = "tests/gateway/test_evidence.py", "tests/api/test_part.py", "tests/api/test_requests.py"
CLI, SETTINGS, THREADS = "tests/cli/test_tickets.py", "tests/settings/test_loader.py", "tests/api/test_threads.py"

SHOWN_BY: Final[dict[str, tuple[str, ...]]] = {
    # --- Ticket
    "kinds TRIAGE → TOOL → REPLY": (f"{SERVICE}::test_a_message_becomes_a_tool_run_and_a_reply",),
    "fields of a ticket": (
        f"{TICKETS}::check_a_new_ticket_is_pending_and_keeps_what_it_was_made_from",
        f"{SERVICE}::test_in_strict_mode_a_ticket_that_breaks_the_schema_is_refused",
    ),
    "every field of metadata, tool_input and final_outputs": (
        f"{SERVICE}::test_a_ticket_has_the_fields_of_the_contract_and_keeps_what_it_was_given",
    ),
    "lease_token: shown to its holder alone": (f"{TICKETS}::check_a_token_is_shown_to_its_holder_alone",),
    "tool_policy {max_turns, web_search_budget, tool_whitelist}": (
        f"{EXECUTION}::check_a_ticket_tightens_what_may_run",
        f"{SERVICE}::test_a_ticket_can_tighten_what_may_run",
    ),
    "ToolVerdict, reason ≤ 512, bare string": (
        f"{VERDICT}::test_a_bare_status_is_a_verdict_without_a_reason",
        f"{VERDICT}::test_a_reason_has_at_most_512_characters",
        f"{VERDICT}::test_what_is_no_verdict_is_read_as_none",
    ),
    "ToolStep: these keys and no other, budgets ≥ 1": (
        f"{STEPS}::test_a_budget_is_read",
        f"{STEPS}::test_a_bad_step_is_refused_with_its_number",
    ),
    "budget.max_steps ≥ 1: how often the call is made": (
        f"{SERVICE}::test_a_budget_says_how_often_a_step_may_be_tried",
        f"{SERVICE}::test_in_strict_mode_a_ticket_with_a_bad_step_is_refused_with_the_steps_code",
    ),
    "web_search_budget counts searches": (f"{SERVICE}::test_the_budget_for_searches_counts_calls_of_web_search_alone",),
    "steps: tool_input, then the older place, then none": (
        f"{STEPS}::test_the_new_place_is_read_before_the_old_one",
        f"{STEPS}::test_the_old_place_is_read_if_the_new_one_is_missing",
        f"{STEPS}::test_a_ticket_without_steps_has_none",
    ),
    "legacy {server, tool, args}; _original_tool for the trace alone": (
        f"{STEPS}::test_a_step_of_the_oldest_form_is_named_by_its_server_and_keeps_its_tool_for_the_trace_alone",
        f"{EXECUTION}::check_a_step_in_the_oldest_form_is_the_same_step",
    ),
    "canonical_missing, legacy_read, cutover_violation": (
        f"{EXECUTION}::check_steps_in_the_older_place_are_counted_where_the_journal_is",
    ),
    # --- Names
    "a key has no dot": (f"{STEPS}::test_any_json_is_a_step_or_a_refusal",),
    "key of an MCP tool is its server's name; of any other its name with _": (
        f"{NAMING}::test_a_key_is_the_servers_name_or_the_name_without_dots",
    ),
    "a key of one tool runs it; of several takes args.operation; else the choices are named": (
        f"{CATALOG}::test_a_key_that_covers_one_tool_runs_it_with_its_arguments_untouched",
        f"{CATALOG}::test_a_key_that_covers_several_takes_the_tool_from_the_operation",
        f"{CATALOG}::test_without_a_valid_operation_the_choices_are_named",
    ),
    "a name with a dot is refused on both paths": (
        f"{SERVICE}::test_in_strict_mode_a_ticket_with_a_bad_step_is_refused_with_the_steps_code",
        f"{SERVICE}::test_a_bad_step_in_the_older_place_blocks_the_ticket",
        f"{TOOLS}::test_a_name_with_a_dot_is_refused_and_the_key_and_the_name_for_models_are_taken",
    ),
    "the allowlist is keyed by it, on both paths": (
        f"{EXECUTION}::check_a_ticket_tightens_what_may_run",
        f"{TOOLS}::test_a_token_for_some_tools_sees_and_calls_no_others_nor_do_its_jobs",
    ),
    "wire names: __ for ., 64 of [A-Za-z0-9_-]": (
        f"{NAMING}::test_models_accept_every_wire_name",
        f"{NAMING}::test_a_name_comes_back_from_its_wire_name",
    ),
    # --- States
    "pending → running | blocked": (
        f"{TICKETS}::check_the_oldest_ticket_of_the_kind_is_leased_first",
        f"{TICKETS}::check_a_pending_ticket_can_be_blocked_without_a_lease",
    ),
    "running → done | failed | blocked | pending": (
        f"{TICKETS}::check_completing_is_idempotent_once_done",
        f"{TICKETS}::check_a_failed_or_blocked_ticket_can_be_retried",
        f"{TICKETS}::check_a_released_ticket_is_pending_again",
    ),
    "failed → pending | running": (
        f"{TICKETS}::check_a_failed_or_blocked_ticket_can_be_retried",
        f"{TICKETS}::check_a_failed_ticket_is_leased_again_by_its_identifier_alone",
        f"{TICKETS}::check_a_failed_ticket_whose_lease_broke_off_is_leased_again",
    ),
    "blocked → pending; retry increments retry_count": (f"{TICKETS}::check_a_failed_or_blocked_ticket_can_be_retried",),
    "done is terminal": (f"{TICKETS}::check_completing_is_idempotent_once_done",),
    "block needs {code, reason, source}": (f"{TICKETS}::check_a_block_says_what_why_and_who",),
    "lease FIFO; leaseById: not_found, lease_conflict (409)": (
        f"{TICKETS}::check_the_oldest_ticket_of_the_kind_is_leased_first",
        f"{TICKETS}::check_a_ticket_that_does_not_exist_is_not_found",
        f"{THREADS}::test_one_ticket_is_leased_filled_and_replied_to_once",
    ),
    "complete: idempotent; directly by http_fill, system, manual": (
        f"{TICKETS}::check_a_pending_ticket_is_filled_directly_by_those_who_may",
        f"{TICKETS}::check_of_many_who_fill_one_ticket_one_is_recorded",
    ),
    "every write on a running ticket needs the proof, a fencing token": (
        f"{TICKETS}::check_every_write_on_a_running_ticket_needs_the_proof",
        f"{TICKETS}::check_what_one_store_remembers_does_not_outlive_what_another_wrote",
    ),
    "a lease that ran out counts until another takes the ticket": (
        f"{TICKETS}::check_a_lease_that_ran_out_counts_until_another_takes_the_ticket",
        f"{TICKETS}::check_a_ticket_of_a_process_that_died_here_is_leased_at_once",
    ),
    "ticket_store_guard_reject_total{code, action}": (
        f"{TICKETS}::check_a_pending_ticket_is_filled_directly_by_those_who_may",
        f"{PART}::test_health_metrics_and_the_document_are_served",
    ),
    "tickets persist and are shared": (
        "tests/journal/postgres/test_tickets.py::test_tickets_in_postgresql_keep_the_contract",
        "tests/crash/test_tickets.py::test_killed_runners_leave_no_ticket_undone_and_none_done_twice",
    ),
    # --- Execution
    "paths Z and Y are adapters of one port": (
        "tests/parts/tickets/test_run.py::test_a_ticket_is_executed",
        "tests/parts/tickets/test_run.py::test_both_paths_give_the_same_report_but_for_times_and_identifiers",
    ),
    "worst step; code of the first; no steps → INVALID_TOOL_STEP": (
        f"{REPORT}::test_the_worst_step_is_the_status_and_the_first_of_its_kind_the_code",
        f"{EXECUTION}::check_the_worst_step_decides",
    ),
    "max_wall_ms cuts a running step": (f"{EXECUTION}::check_a_budget_cuts_a_step_while_it_runs",),
    "NO_MCP: unavailable in readiness, deterministic runs": (
        f"{REQUESTS}::test_a_call_is_refused_while_a_required_dependency_is_missing",
        f"{EXECUTION}::check_without_mcp_two_runs_give_the_same_report",
    ),
    "no steps, or a question to a person: blocked until it is answered, then the run goes on": (
        f"{EXECUTION}::check_a_step_that_asks_blocks_the_run_until_a_person_answers",
        f"{RUNS}::test_a_ticket_goes_on_at_once_when_its_question_is_answered",
        f"{RUNS}::test_a_step_in_doubt_blocks_its_run_and_says_what_to_decide",
        f"{RUNS}::test_a_run_goes_on_at_once_when_its_step_is_decided",
    ),
    "stub gateway: the same without pins in the journal": (
        "tests/cli/test_mcp_pins.py::test_pins_in_a_file_let_tickets_run_without_servers_in_a_clean_checkout",
    ),
    "executor command: limit 10, lease 300 s, owner, no_mcp": (
        f"{CLI}::test_work_leases_ten_for_five_minutes_unless_told_otherwise",
    ),
    "executor command: JSON on stdout alone; exit 0, 1, 2, 3": (
        f"{CLI}::test_work_prints_its_report_and_nothing_else_to_stdout",
        f"{CLI}::test_the_exit_status_of_work_is_the_contracts",
        f"{CLI}::test_what_was_done_before_a_fatal_error_is_reported",
        f"{RUNNER}::test_failed_outranks_blocked_outranks_ok",
    ),
    # --- Codes
    "codes, and which are retryable": (
        f"{CODES}::test_the_contracts_codes_do_to_a_call_what_the_contract_says",
        f"{CODES}::test_what_the_contracts_promise_is_there",
        f"{CODES}::test_of_failed_calls_only_these_can_be_tried_again_by_the_contract",
        "tests/parts/tickets/test_run.py::test_a_step_that_a_run_did_not_get_to_is_blocked_with_run_timeout",
    ),
    "provider error → code; the provider's own stays as cause": (
        f"{INVOKE}::test_an_exception_becomes_the_code_of_the_contract",
    ),
    "UNHANDLED_EXCEPTION": (f"{RUNNER}::test_a_ticket_that_cannot_be_worked_on_is_blocked_and_ends_nothing",),
    "EXECUTOR_FATAL LEASE_FAILED DERIVE_FAILED RELEASE_FAILED LEASE_OWNER_MISMATCH": (
        f"{RUNNER}::test_tickets_that_cannot_be_leased_are_counted_and_the_report_says_that_it_was_the_end",
        f"{RUNNER}::test_what_cannot_even_be_given_back_is_counted",
        f"{RUNNER}::test_a_reply_that_could_not_be_derived_is_counted_and_the_ticket_is_done",
        f"{RUNNER}::test_a_ticket_that_another_worker_took_is_left_to_it",
    ),
    "DEP_UNKNOWN: a dependency whose state is not known is not ready": (
        f"{PROBES}::test_one_that_was_never_reached_is_not_known_to_be_ready",
        "tests/cli/test_server.py::test_a_server_is_ready_once_what_it_requires_was_reached_without_a_call",
        f"{READY}::test_what_is_required_and_has_no_probe_is_never_ready",
    ),
    "dependency keys are stable and not provider ids; each code of a provider": (
        f"{PROBES}::test_servers_that_are_up_are_ready_each_and_together",
        f"{PROBES}::test_one_that_is_down_degrades_with_a_code_and_its_reason",
    ),
    "DEP_UNAVAILABLE DEP_INIT_FAILED DEP_TIMEOUT DEP_UNKNOWN; the body of a 503": (
        f"{READY}::test_a_probe_that_does_not_answer_is_a_dependency_that_is_down",
        f"{READY}::test_the_body_of_a_503",
    ),
    # --- Gates
    "snapshot {degraded, required, optional, as_of}": (f"{READY}::test_a_snapshot_as_json_has_every_key",),
    "an unknown tool requires every required dependency": (
        f"{READY}::test_an_unknown_tool_lacks_every_required_dependency_that_is_down",
    ),
    "requireDeps guards routes": (f"{REQUESTS}::test_a_call_is_refused_while_a_required_dependency_is_missing",),
    "SCHEMA_GATE_MODE=off|warn|strict; never changes the body": (
        f"{SETTINGS}::test_short_environment_names_work_and_yield_to_the_full_ones",
        f"{GATE}::test_an_open_gate_does_not_look",
        f"{GATE}::test_a_warning_gate_counts_each_problem_and_lets_pass",
        f"{GATE}::test_a_strict_gate_refuses_and_counts_the_refusal_once",
        f"{GATE}::test_the_value_is_never_changed",
    ),
    "warn and off let pass, also for functions": (
        "tests/gateway/stages/test_validate_arguments.py::test_an_open_gate_leaves_out_what_a_function_does_not_take",
        "tests/gateway/stages/test_validate_arguments.py::test_a_warning_gate_reports_and_lets_pass",
    ),
    "five boundaries; ingress strict → 400": (
        f"{GATE}::test_every_boundary_has_its_code",
        f"{PART}::test_what_cannot_be_answered_is_a_problem_with_a_code",
    ),
    "internal strict never touches the parent": (f"{DERIVE}::test_a_reply_that_breaks_its_schema_is_not_created",),
    "warn mode is counted, by warn_code, kind, direction, boundary": (
        f"{SERVICE}::test_in_warn_mode_it_passes_and_is_counted",
    ),
    "X-Schema-Warn-Count": (f"{REQUESTS}::test_an_answer_says_how_many_warnings_the_schema_gate_had",),
    "schema_gate_warn, schema_gate_reject; the tool's schema": (
        "tests/gateway/stages/test_validate_arguments.py::test_a_warning_gate_reports_and_lets_pass",
        f"{GATE}::test_a_strict_gate_refuses_and_counts_the_refusal_once",
    ),
    "isError is a failed call; unclear shape is not ok": (f"{INVOKE}::test_an_answer_of_unclear_shape_is_not_ok",),
    # --- Evidence
    "a candidate's fields; bytes forbidden": (
        f"{EVIDENCE}::test_a_candidate_that_lacks_or_garbles_something_is_refused",
        f"{EVIDENCE}::test_bytes_may_not_travel_under_their_names_at_any_depth",
    ),
    "classes A, B and C": (
        f"{EVIDENCE}::test_class_a_is_left_out_rather_than_cut_when_it_is_too_large",
        f"{EVIDENCE}::test_class_b_is_cut_at_its_head",
        f"{EVIDENCE}::test_class_c_is_never_kept_and_neither_is_what_could_betray_it",
    ),
    "every field of an item": (f"{EVIDENCE}::test_an_item_as_json_has_every_key_of_the_contract",),
    "limits from EVIDENCE_*": (f"{SETTINGS}::test_short_environment_names_work_and_yield_to_the_full_ones",),
    "bytes never enter a report": (
        f"{EXECUTION}::check_a_report_holds_no_bytes",
        f"{REPORT}::test_the_summary_holds_no_more_evidence_than_allowed_and_says_how_much_is_left_out",
    ),
    # --- Reports
    "RunReport and StepReport": (
        f"{REPORT}::test_every_field_of_the_contract_is_in_the_json",
        f"{REPORT}::test_the_moments_of_a_run_come_in_order",
    ),
    "executor report: counters, samples 3, 5, 5, stable_codes": (
        f"{RUNNER}::test_a_report_has_every_field_of_the_contract",
        f"{RUNNER}::test_samples_are_three_that_are_ok_and_five_of_the_others",
    ),
    "verdict: ok → PROCEED, else DEFER": (f"{VERDICT}::test_only_a_run_that_is_ok_proceeds",),
    # --- TOOL → REPLY
    "one entry derives": ("pyproject.toml::One entry derives tickets",),
    "only after a completion, which a failure never undoes": (
        f"{DERIVE}::test_a_derivation_that_fails_is_recorded_and_leaves_the_completion",
    ),
    "created idempotent recovered_orphan": (
        f"{DERIVE}::test_a_tool_ticket_that_proceeds_gets_a_reply",
        f"{DERIVE}::test_a_reply_is_derived_once",
        f"{DERIVE}::test_a_reply_whose_parent_does_not_know_it_is_joined_to_it",
    ),
    "gate_reply_derivation_disabled gate_tool_only_mode": (f"{DERIVE}::test_a_setting_can_forbid_replies",),
    "missing_tool_verdict gate_tool_verdict_not_proceed": (
        f"{DERIVE}::test_without_a_verdict_to_proceed_there_is_no_reply",
    ),
    "not_tool gate_kind_not_tool": (
        f"{DERIVE}::test_only_tool_tickets_have_replies",
        f"{DERIVE}::test_a_ticket_whose_metadata_say_another_kind_has_no_reply",
    ),
    "missing_parent_ticket_id missing_parent_triage_ticket": (
        f"{DERIVE}::test_a_tool_ticket_without_a_parent_has_no_reply",
        f"{DERIVE}::test_a_parent_that_is_no_triage_ticket_is_reported",
    ),
    "schema_validation_failed": (f"{DERIVE}::test_a_reply_that_breaks_its_schema_is_not_created",),
    # --- HTTP
    "every route": (
        f"{PART}::test_a_message_becomes_a_ticket_that_is_leased_and_filled_under_its_proof",
        "tests/api/test_openapi.py::test_every_route_is_there_once_under_a_name_of_its_own",
        "tests/docs/test_tickets_page.py::test_the_walk_is_what_happens",
    ),
    # --- Evidence and drift
    "a manifest and its reasons": (
        "tests/evidence/test_verify.py::test_hostile_packages_are_rejected_each_with_a_sentence",
    ),
    "model drift by output": ("tests/service/test_live_questions.py::test_each_question_is_put_again_as_it_was_asked",),
}
"""Lines of the contract, in its order."""

ANSWERED: Final[dict[str, tuple[str, str]]] = {
    "metadata.lease_token": ("docs/tickets.md", "The token is in the answer to a lease alone, never in a ticket"),
    "web_search_strategy": ("docs/tickets.md", "Remit's own search does not read it"),
    "save_as": ("docs/tickets.md", "names the result in the trace of the outputs, and does nothing else"),
    "RUN_TIMEOUT among failed": (
        "docs/tickets.md",
        "A step that the run has not come to is `blocked` with `RUN_TIMEOUT`",
    ),
    "CONFIG_MISSING": ("docs/codes.md", "| `CONFIG_MISSING` |"),
    "server names [a-z0-9_]+": ("docs/mcp.md", "Names such as `a_`, `_a` or `a__b` are refused"),
    "POLICY_DENIED as a status of a sandbox run": ("docs/sandbox.md", "and no status of a run, because nothing ran"),
    "artifacts.evidence with source_index": ("docs/web.md", "`source_index` is its place in `sources`"),
    "state diff": ("docs/cli.md", "What was there before and after stands in the [trace as a file]"),
    "batch of events": ("docs/http.md", '`POST /v1/triage/batch` (`{"events": […]}`, messages)'),
}
"""Lines that Remit keeps in another way or not yet, and where the documentation says so."""


@functools.cache
def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("line", SHOWN_BY)
def test_a_line_of_the_contract_has_tests(line: str) -> None:
    for place in SHOWN_BY[line]:
        path, _, name = place.partition("::")
        assert re.search(rf"\bdef {name}\(|^name = \"{name}\"$", text(path), re.MULTILINE), place


@pytest.mark.parametrize("line", ANSWERED)
def test_a_line_that_is_kept_in_another_way_is_answered_in_the_documentation(line: str) -> None:
    path, answer = ANSWERED[line]
    assert answer in " ".join(text(path).split())


def test_every_promise_of_the_suites_shows_a_line_of_the_contract() -> None:
    named = {place for places in SHOWN_BY.values() for place in places}
    for path in (TICKETS, DERIVE, VERDICT):
        missing = {
            f"{path}::{name}"
            for name in re.findall(r"^(?:async )?def ((?:check|test)_\w+)\(", text(path), re.MULTILINE)
        } - named
        assert missing == OTHERWISE & missing, missing


OTHERWISE: Final[frozenset[str]] = frozenset(
    {
        f"{TICKETS}::check_tickets_are_listed_newest_first_by_kind_state_and_thread",
        f"{TICKETS}::check_of_many_who_lease_one_ticket_one_gets_it",
        f"{DERIVE}::test_a_triage_that_asks_for_tools_gets_a_tool_ticket_with_its_steps",
        f"{DERIVE}::test_a_triage_that_asks_for_nothing_gets_none",
    }
)
"""Promises of ours beyond the contract."""
