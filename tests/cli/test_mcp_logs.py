"""`remit mcp logs` and `remit mcp restart`: what a server writes to stderr, and a new one in the place of the old."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from remit.cli import exit_codes
from tests.cli.conftest import Project
from tests.cli.talking import Talk, text_of
from tests.cli.test_remote import serving
from tests.patience import PATIENCE_S

LOUD = """
import json, os, sys
print("begun", os.environ["API_TOKEN"], "as", os.environ["ROLE"], file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "loud", "version": str(os.getpid())}}
        case "tools/list":
            result = {"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            given = message["params"]["arguments"]
            sys.stderr.write((given["text"] + "\\n") * given.get("times", 1))
            sys.stderr.flush()
            result = {"content": [{"type": "text", "text": str(os.getpid())}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
SECRET = "hush-hush-hush"


@pytest.fixture
def loud(project: Project) -> Project:
    words = json.dumps([sys.executable, "-c", LOUD])
    project.env["XDG_DATA_HOME"] = str(project.folder / "data")
    project.configure(
        f"[[mcp.servers]]\nname = 'loud'\ncommand = {words}\ntools = {{ shout = 'L0' }}\n"
        f"env = {{ API_TOKEN = '{SECRET}', ROLE = 'clerk' }}\n",
        modules=False,
    )
    return project


def kept(project: Project) -> list[Path]:
    """The files of the log."""
    return sorted((project.folder / "data" / "remit" / "mcp-logs").iterdir())


def shout(project: Project, text: str, times: int = 1) -> None:
    args = json.dumps({"text": text, "times": times})
    done = project.apart("mcp", "call", "loud.shout", args)
    assert done.status == 0, done.err


def test_a_log_has_what_a_server_wrote_in_whatever_process_with_secrets_masked(loud: Project) -> None:
    shout(loud, "hot tea")
    shout(loud, f"not for you: {SECRET}; and Authorization: Bearer abcdefgh12345678")
    lines = loud.here("mcp", "logs", "loud", "--json").json
    texts = [line.split(" ", 2)[2] for line in lines]
    assert texts[:3] == ["begun ******** as clerk", "remit: connected", "hot tea"]
    assert len({line.split(" ")[1] for line in lines}) == 2  # processes
    assert SECRET not in "".join(lines)
    assert "abcdefgh12345678" not in "".join(lines)
    shown = loud.here("mcp", "logs", "loud", "-n", "1").out
    assert shown.count("\n") == 1
    (file,) = kept(loud)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_long_line_is_not_cut_within_a_secret(loud: Project) -> None:
    shout(loud, f"{SECRET} " * 3_000)
    shown = "".join(file.read_text() for file in kept(loud))
    assert shown.count("********") > 2_999
    assert "hush" not in shown


def test_each_line_of_a_secret_is_masked(loud: Project) -> None:
    config = loud.folder / "remit.toml"
    config.write_text(config.read_text().replace(f"'{SECRET}'", f'"{SECRET}\\nsecond of two"'))
    shout(loud, "hot tea")
    shown = "".join(file.read_text() for file in kept(loud))
    assert "******** as clerk" in shown
    assert "hush" not in shown
    assert "second" not in shown


def test_a_log_stays_small(loud: Project) -> None:
    loud.env["REMIT_MCP_LOG_BYTES"] = "20000"
    shout(loud, "x" * 100, times=1_000)
    assert sum(file.stat().st_size for file in kept(loud)) <= 20_000
    assert loud.here("mcp", "logs", "loud", "-n", "5", "--json").json[-1].endswith("x" * 100)


def test_no_log_is_kept_where_none_is_wanted(loud: Project) -> None:
    loud.env["REMIT_MCP_LOG_BYTES"] = "0"
    shout(loud, "hot tea")
    assert not (loud.folder / "data" / "remit" / "mcp-logs").exists()
    assert loud.here("mcp", "logs", "loud").status == exit_codes.USAGE


def test_a_log_is_followed_over_the_beginning_of_a_new_file(loud: Project) -> None:
    loud.env["REMIT_MCP_LOG_BYTES"] = "1000"
    with loud.start("mcp", "logs", "loud", "--follow") as following:
        try:
            assert following.stdout is not None
            for text in ("first", "second", "third", "fourth"):
                shout(loud, text)
                while not (line := following.stdout.readline()).endswith(f" {text}\n"):
                    assert line
        finally:
            following.terminate()
            following.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("name", ["none", "../loud", ""])
def test_there_is_no_log_of_what_is_no_server(loud: Project, name: str) -> None:
    assert loud.here("mcp", "logs", name, "--follow" if name != "none" else "--json").status == exit_codes.USAGE


def test_a_link_in_the_place_of_a_log_is_not_written_through(loud: Project) -> None:
    folder = loud.folder / "data" / "remit" / "mcp-logs"
    folder.mkdir(parents=True)
    target = loud.folder / "precious"
    target.write_text("whole")
    (folder / "loud.log").symlink_to(target)
    shout(loud, "hot tea")
    assert target.read_text() == "whole"


def test_a_running_server_is_restarted_and_calls_go_to_the_new_one(loud: Project) -> None:
    with serving(loud) as url:
        first = loud.here("--server", url, "mcp", "restart", "loud", "--json").json
        assert first["name"] == "loud"
        second = loud.here("--server", url, "mcp", "restart", "loud", "--json").json
        assert first["version"] != second["version"]  # its process
        unknown = loud.here("--server", url, "mcp", "restart", "none", "--json")
        assert (unknown.status, unknown.error["code"]) == (exit_codes.USAGE, "UNKNOWN_TOOL")
    texts = [line.split(" ", 2)[2] for line in loud.here("mcp", "logs", "loud", "--json").json]
    assert [text for text in texts if text.startswith("remit: lost: the operator restarted it")]
    with pytest.raises(ProcessLookupError):
        os.kill(int(first["version"]), 0)


def test_logs_are_files_of_the_machine_that_wrote_them(loud: Project) -> None:
    done = loud.here("--server", "http://127.0.0.1:9", "mcp", "logs", "loud", "--json")
    assert (done.status, done.error["code"]) == (exit_codes.USAGE, "LOCAL_ONLY")
    assert "journal" not in done.error["message"] + done.error["remedy"]


@pytest.mark.slow
def test_a_restart_reaches_processes_that_no_url_leads_to(loud: Project) -> None:
    with Talk(loud, "mcp", "serve") as talk:
        talk.hello()
        first = text_of(talk.call("mcp__loud__shout", text="one"))
        assert "starts it again" in loud.here("mcp", "restart", "loud").out
        with loud.start("mcp", "logs", "loud", "--follow") as following:
            assert following.stdout is not None
            while "restarted it" not in following.stdout.readline():
                assert following.poll() is None
            following.terminate()
            following.communicate(timeout=PATIENCE_S)
        assert text_of(talk.call("mcp__loud__shout", text="two")) != first
        assert talk.leave()[0] == 0


def test_a_server_that_no_one_knows_is_not_restarted(loud: Project) -> None:
    done = loud.here("mcp", "restart", "none", "--json")
    assert (done.status, done.error["code"]) == (exit_codes.USAGE, "UNKNOWN_TOOL")
