"""`remit mcp call`: one call of a server's tool from the command line."""

from __future__ import annotations

import json
import sys

import pytest

from remit.cli import exit_codes
from tests.cli.conftest import Project
from tests.mcp_server.test_fidelity import SERVER

SAY = json.dumps({"result": {"content": [{"type": "text", "text": "far\x1b[2J away"}]}})
FAILS = json.dumps({"result": {"content": [{"type": "text", "text": "no such page"}], "isError": True}})


@pytest.fixture
def full(project: Project) -> Project:
    words = json.dumps([sys.executable, "-I", "-S", str(SERVER)])
    project.configure(
        f'[[mcp.servers]]\nname = "full"\ncommand = {words}\nlevel = "L1"\ntools = {{ say = "L0" }}\n', modules=False
    )
    return project


def test_a_call_passes_the_gate_and_is_recorded(full: Project) -> None:
    done = full.here("mcp", "call", "full.say", SAY)
    assert (done.status, "far" in done.out, "\x1b" in done.out) == (0, True, False)
    as_json = full.here("mcp", "call", "mcp.full.say", SAY, "--json").json
    assert (as_json["status"], as_json["value"]) == ("ok", "far\x1b[2J away")
    session = full.here("sessions", "--json").json[0]["session"]
    assert "mcp.full.say" in full.here("trace", session).out


def test_a_failure_and_a_tool_that_there_is_not_are_said_with_their_codes(full: Project) -> None:
    failed = full.here("mcp", "call", "full.say", FAILS)
    assert (failed.status, "no such page" in failed.err) == (exit_codes.FAILED, True)
    unknown = full.here("mcp", "call", "full.none", "--json")
    assert (unknown.status, unknown.json["code"]) == (exit_codes.FAILED, "UNKNOWN_TOOL")
    assert full.here("mcp", "call", "full.say", "[1]").status == exit_codes.USAGE


def test_a_call_that_asks_waits_for_confirm_and_the_same_command_makes_it_once(full: Project) -> None:
    waits = full.here("mcp", "call", "full.typed", '{"n": 1}')
    assert (waits.status, "remit confirm c_" in waits.err) == (exit_codes.WAITING, True)
    full.here("confirm", full.here("confirm", "--json").json[0]["confirmation"], "--approve")
    made = full.here("mcp", "call", "full.typed", '{"n": 1}')
    assert (made.status, json.loads(made.out)) == (0, {"n": 1})
    assert full.here("mcp", "call", "full.typed", '{"n": 1}').status == exit_codes.WAITING


def test_a_person_at_a_terminal_is_asked_and_the_call_runs(full: Project) -> None:
    with full.terminal("mcp", "call", "full.typed", '{"n": 2}') as screen:
        screen.expect("edit or later")
        screen.type("approve\r")
        screen.expect(r'\{"n": 2\}')
        assert screen.end() == 0
