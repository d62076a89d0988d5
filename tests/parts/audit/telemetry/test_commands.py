"""Every command that records sends its spans, however short it is, and none waits long for a collector."""

from __future__ import annotations

import socket

import pytest

from remit.errors import SettingsError
from remit.parts.audit.telemetry import wiring
from remit.parts.audit.telemetry.settings import TelemetrySettings, TelemetryTarget, target_of
from tests.cli.conftest import Project, project
from tests.cli.talking import Talk
from tests.cli.test_mcp_serving import teller
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["project", "receiver", "teller"]
ENDPOINT, PROTOCOL = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


def test_a_command_sends_what_it_recorded_before_it_ends(project: Project, receiver: Collector) -> None:
    project.env["REMIT_TELEMETRY_OTLP_URL"] = receiver.url
    assert project.here("run", "greet", "--name", "ada").status == 0
    assert "invoke_agent greet" in receiver.names
    sent = len(receiver.came)
    assert project.here("run", "greet", "--name", "bob").status == 0
    assert receiver.names.count("invoke_agent greet") == 2
    assert len(set(receiver.came)) == len(receiver.came) == 2 * sent


@pytest.mark.slow
@pytest.mark.parametrize("wraps", [False, True], ids=["serve", "wrap"])
def test_a_server_for_mcp_clients_sends_its_calls(
    project: Project, receiver: Collector, teller: list[str], *, wraps: bool
) -> None:
    project.env[ENDPOINT] = receiver.url
    words = ("wrap", "--era", "legacy", "--name", "tells", "--level", "tell=L0", "--", *teller) if wraps else ("serve",)
    with Talk(project, "mcp", *words) as talk:
        talk.hello()
        talk.call("tell") if wraps else talk.call("note__read", path=str(project.folder / "remit.toml"))
        status, _, err = talk.leave()
    assert status == 0, err
    assert f"execute_tool {'mcp.tells.tell' if wraps else 'note.read'}" in receiver.names


def test_no_command_waits_long_for_a_collector(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and answers nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(wiring, "_LAST_S", 0.05)
        project.env[ENDPOINT] = url
        done = project.here("run", "greet", "--name", "ada")
    assert (done.status, "did not answer" in done.err) == (0, True)
    gone = project.here("run", "greet", "--name", "ada")
    assert (gone.status, "takes no spans" in gone.err) == (0, True)


def test_what_a_collector_missed_is_sent_by_the_next_command(project: Project) -> None:
    collector = Collector()
    collector.server.server_close()
    project.env[ENDPOINT] = collector.url
    project.here("run", "greet", "--name", "ada")
    back = Collector(collector.server.server_port)
    back.start()
    try:
        project.here("run", "greet", "--name", "bob")
    finally:
        back.stop()
    assert back.names.count("invoke_agent greet") == 2


@pytest.mark.parametrize(
    ("own", "environ", "target"),
    [
        ("", {}, None),
        ("", {ENDPOINT: "http://c:4318"}, TelemetryTarget("http://c:4318/v1/traces", ENDPOINT, {})),
        ("", {ENDPOINT: "http://c/x/"}, TelemetryTarget("http://c/x/v1/traces", ENDPOINT, {})),
        ("", {ENDPOINT: "http://c", TRACES: "http://d/t"}, TelemetryTarget("http://d/t", TRACES, {})),
        (
            "",
            {
                ENDPOINT: "http://c",
                "OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c,d=e",
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "d=f",
            },
            TelemetryTarget("http://c/v1/traces", ENDPOINT, {"a": "b c", "d": "f"}),
        ),
        ("", {ENDPOINT: "http://c", PROTOCOL: "http/protobuf"}, TelemetryTarget("http://c/v1/traces", ENDPOINT, {})),
        (
            "",
            {ENDPOINT: "http://c", PROTOCOL: "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            TelemetryTarget("http://c/v1/traces", ENDPOINT, {}),
        ),
        ("", {ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "true"}, None),
        ("", {ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "none"}, None),
        (
            "http://own",
            {ENDPOINT: "http://c", PROTOCOL: "grpc"},
            TelemetryTarget("http://own", "telemetry.otlp_url", {}),
        ),
    ],
)
def test_the_setting_comes_before_the_variables_of_opentelemetry(
    own: str, environ: dict[str, str], target: TelemetryTarget | None
) -> None:
    assert target_of(TelemetrySettings(otlp_url=own), environ) == target


@pytest.mark.parametrize(
    ("own", "environ", "url"),
    [
        ("http://c:4318", {}, "http://c:4318/v1/metrics"),
        ("http://c/x/v1/traces/", {}, "http://c/x/v1/metrics"),
        ("http://c/?key=a", {}, "http://c/v1/metrics?key=a"),
        ("", {ENDPOINT: "http://c/x"}, "http://c/x/v1/metrics"),
        ("", {TRACES: "http://d/t"}, None),
        ("", {TRACES: "http://d/t", METRICS: "http://d/m"}, "http://d/m"),
        ("", {ENDPOINT: "http://c", "OTEL_METRICS_EXPORTER": "none"}, None),
    ],
)
def test_metrics_go_beside_spans_if_a_setting_says_so(own: str, environ: dict[str, str], url: str | None) -> None:
    settings = TelemetrySettings(otlp_url=own, metrics_seconds=60)
    target = target_of(settings, environ, "metrics")
    assert (target and target.url) == url
    assert target_of(TelemetrySettings(otlp_url=own), environ, "metrics") is None


@pytest.mark.slow
def test_a_path_that_does_not_say_where_metrics_go_is_refused_in_words(project: Project) -> None:
    own = {"REMIT_TELEMETRY_OTLP_URL": "http://127.0.0.1:9/ingest", "REMIT_TELEMETRY_METRICS_SECONDS": "60"}
    project.env.update(own)
    checks = [check for check in project.here("doctor", "--json").json if check["name"] == "telemetry"]
    assert [(check["verdict"], check["code"]) for check in checks] == [("ok", ""), ("fail", "SETTINGS_INVALID")]
    assert "where metrics go" in checks[1]["detail"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environ",
    [
        {ENDPOINT: "c:4317"},
        {ENDPOINT: "http://c:4317", PROTOCOL: "grpc"},
        {ENDPOINT: "http://c:4318", PROTOCOL: "http/json"},
    ],
)
def test_what_cannot_be_sent_as_a_variable_wants_is_refused_in_words(environ: dict[str, str], project: Project) -> None:
    with pytest.raises(SettingsError):
        target_of(TelemetrySettings(), environ)
    project.env.update(environ)
    done = project.here("run", "greet", "--name", "ada")
    assert (done.status, "spans are not sent" in done.err) == (0, True)
    (check,) = [check for check in project.here("doctor", "--json").json if check["name"] == "telemetry"]
    assert (check["verdict"], check["code"]) == ("fail", "SETTINGS_INVALID")
