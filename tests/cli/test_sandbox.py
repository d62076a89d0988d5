from __future__ import annotations

from tests.cli.conftest import Project


def test_probe_shows_what_the_default_driver_can_do(project: Project) -> None:
    found = project.here("sandbox", "probe")
    assert found.status == 0
    first, *rest = found.out.splitlines()
    assert first.split()[:3] == ["ok", "bwrap", "namespaces,"]
    assert any(line.split()[0] == "memory_bytes" for line in rest)


def test_probe_tells_where_the_programs_of_allowed_commands_lie(project: Project) -> None:
    project.env["REMIT_SANDBOX_COMMANDS"] = "bash,no-such-thing"
    lines = project.here("sandbox", "probe").out.splitlines()
    assert "      bash             /usr/bin/bash" in lines
    assert "      no-such-thing    no-such-thing is not in /usr/local/bin or /usr/bin" in lines
    rows = project.here("sandbox", "probe", "--json").json
    assert [one["commands"] for one in rows if one["commands"]] == [{"bash": "/usr/bin/bash", "no-such-thing": ""}]


def test_probe_names_the_failed_check_and_the_remedy(project: Project) -> None:
    project.env["REMIT_SANDBOX_BWRAP"] = "/no/bwrap"
    found = project.here("sandbox", "probe")
    assert found.status == 1
    assert "fail  bwrap      bwrap: /no/bwrap cannot be run" in found.out
    assert "-> Install bubblewrap 0.8 or newer" in found.out
    [row] = [one for one in project.here("sandbox", "probe", "--json").json if one["chosen"]]
    assert (row["level"], row["checks"][-1]["ok"]) == ("none", False)


def test_doctor_says_whether_code_can_be_run(project: Project) -> None:
    assert "ok    sandbox    bwrap" in project.here("doctor").out
    project.env["REMIT_SANDBOX_BWRAP"] = "/no/bwrap"
    assert "warn  sandbox    no code can be run: bwrap: bwrap: /no/bwrap cannot be run" in project.here("doctor").out


def test_a_demand_that_the_driver_does_not_meet_is_told(project: Project) -> None:
    project.env["REMIT_SANDBOX_MIN_ISOLATION"] = "kernel"
    assert project.here("sandbox", "probe").status == 1
    assert "isolates by namespaces, not kernel" in project.here("doctor").out
