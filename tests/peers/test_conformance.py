from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from scripts import conformance
from scripts.conformance import Row, Subject, reasons, rows, verdict

PRINTED = """=== Running scenario: ping ===
✓ not-a-scenario: 1 passed, 0 failed

=== SUMMARY ===
✓ tools-list: 3 passed, 0 failed
✗ auth/dpop: 1 passed, 2 failed, 1 warnings
✗ ping: 0 passed, 1 failed

Total: 4 passed, 3 failed

Not scored for 2026-07-28: 1 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ auth/dpop (extension)
"""


def test_scenarios_are_read_from_what_the_suite_prints() -> None:
    assert rows(PRINTED) == [Row("tools-list", 3, 0), Row("auth/dpop", 1, 2, "extension"), Row("ping", 0, 1)]


def test_only_scored_scenarios_count() -> None:
    assert verdict("ours", "2026-07-28", rows(PRINTED), {}) == (1, ["ping: 1 of 1 checks failed"])


def test_an_excepted_failure_is_neither_passed_nor_failed() -> None:
    assert verdict("ours", "2026-07-28", rows(PRINTED), {("ours", "2026-07-28", "ping"): "why"}) == (1, [])


def test_an_exception_holds_for_its_subject_and_suite_only() -> None:
    exceptions = {("theirs", "2026-07-28", "ping"): "why", ("ours", "2025-11-25", "ping"): "why"}
    assert verdict("ours", "2026-07-28", rows(PRINTED), exceptions) == (1, ["ping: 1 of 1 checks failed"])


@pytest.mark.parametrize("scenario", ["tools-list", "auth/dpop", "gone"])
def test_an_exception_for_what_does_not_fail_is_wrong(scenario: str) -> None:
    exceptions = {("ours", "2026-07-28", "ping"): "why", ("ours", "2026-07-28", scenario): "why"}
    assert verdict("ours", "2026-07-28", rows(PRINTED), exceptions)[1] == [f"{scenario}: excepted, but it did not fail"]


@pytest.mark.parametrize("folder", ["server-ping-2026-07-28T00-00-00-000Z", "ping-2026-07-28T00-00-00-000Z"])
def test_failed_checks_say_why(folder: str, tmp_path: Path) -> None:
    checks = [
        {"id": "a", "status": "FAILURE", "errorMessage": "no answer", "description": "answers"},
        {"id": "b", "status": "FAILURE", "description": "is empty"},
        {"id": "c", "status": "SUCCESS", "description": "is prompt"},
    ]
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "checks.json").write_text(json.dumps(checks), encoding="utf-8")
    assert reasons(tmp_path, "ping") == ["a: no answer", "b: is empty"]


def test_a_subject_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["nobody"]) == 2
    assert "nobody" in capsys.readouterr().out


def test_a_server_that_prints_no_url_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conformance, "RESULTS", tmp_path)
    mute = Subject("mute", "server", (sys.executable, "-c", "print('hello')"))
    with pytest.raises(RuntimeError, match="hello"), conformance.target(mute):
        pass


def test_a_server_ends_with_its_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conformance, "RESULTS", tmp_path)
    program = "import os, time; print('http://127.0.0.1:1/' + str(os.getpid()), flush=True); time.sleep(600)"
    with conformance.target(Subject("idle", "server", (sys.executable, "-c", program))) as where:
        assert where[0] == "--url"
    with pytest.raises(ProcessLookupError):
        os.kill(int(where[1].rpartition("/")[2]), 0)


def test_a_run_that_prints_no_scenario_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conformance, "RESULTS", tmp_path)
    monkeypatch.setattr(conformance, "run", lambda *_: "crashed")
    assert conformance.examine(Subject("ours", "client", ("ours",))) == (0, len(conformance.SUITES))
    assert "did not finish" in capsys.readouterr().out


@pytest.mark.slow
def test_the_sdk_server_passes_what_the_newest_revision_requires(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conformance, "RESULTS", tmp_path)
    monkeypatch.setattr(conformance, "SUITES", conformance.SUITES[-1:])
    assert conformance.main(["sdk-server"]) == 0
    assert capsys.readouterr().out.endswith("\n37 passed, 0 failed\n")
