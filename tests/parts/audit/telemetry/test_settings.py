"""Telemetry as settings, `remit doctor` and `remit trust` see it: no secret is shown, and looking sends nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.parts.audit.telemetry.settings import TelemetrySettings
from remit.settings import load
from remit.settings.section import abouts
from tests.cli.conftest import Project, project
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["project", "receiver"]


def of_telemetry(project: Project) -> list[tuple[str, str]]:
    """What `remit doctor` finds."""
    checks = project.here("doctor", "--json").json
    return [(check["verdict"], check["detail"]) for check in checks if check["name"] == "telemetry"]


@pytest.mark.slow
def test_doctor_says_where_spans_go_and_which_variable_is_missing(project: Project, receiver: Collector) -> None:
    assert of_telemetry(project) == []
    project.env["REMIT_TELEMETRY_OTLP_URL"] = receiver.url
    project.env["REMIT_TELEMETRY_HEADERS"] = '{"authorization": "Bearer ${SPANS_TOKEN}"}'
    ((verdict, detail),) = of_telemetry(project)
    assert verdict == "fail"
    assert "SPANS_TOKEN" in detail
    project.env["SPANS_TOKEN"] = "s3cret"
    ((verdict, detail),) = of_telemetry(project)
    assert verdict == "ok"
    assert detail.startswith(f"spans go to {receiver.url} (telemetry.otlp_url), with names and times; the next command")
    assert receiver.headers == []


def test_what_is_no_url_is_refused_and_headers_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"telemetry\.otlp_url"):
        load(env={}, cwd=tmp_path, flags={"telemetry.otlp_url": "127.0.0.1:4318"})
    settings = load(env={}, cwd=tmp_path, flags={"telemetry.headers": {"authorization": "s3cret"}})
    assert "s3cret" not in str([row.value for row in settings.explain()])


def test_trust_is_told_where_spans_would_go_and_what_the_collector_would_get() -> None:
    claims = {name: about.claims for name, about in abouts(TelemetrySettings).items()}
    assert claims["otlp_url"] is not None
    assert claims["headers"] is not None
    assert list(claims["otlp_url"]("https://a.example/v1")) == [
        "send spans of calls, models and jobs to https://a.example/v1"
    ]
    assert list(claims["headers"]({"a": "Bearer ${TOKEN}"})) == ["give the collector of spans $TOKEN"]
