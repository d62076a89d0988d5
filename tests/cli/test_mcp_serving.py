"""`remit mcp serve` and `remit mcp wrap` as real processes: on stdio, over HTTP, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from remit import Remit
from remit.cli.wrap_server import name_of
from remit.journal.kinds import Payload, SessionOpened
from remit.mcp_server.request import MAX_REQUEST_BYTES
from remit.process.environment import INHERITED
from remit.settings import load
from remit.settings.principal import principal
from tests.cli.conftest import Project
from tests.cli.talking import ENVELOPE, MODERN, Talk, text_of
from tests.mcp_server.links import sessions
from tests.patience import PATIENCE_S
from tests.peers import servers

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["legacy", MODERN])


def serving(project: Project, *words: str, modern: bool = False, env: dict[str, str] | None = None) -> Talk:
    """`remit mcp serve` after the handshake."""
    talk = Talk(project, *(words or ("mcp", "serve")), modern=modern, env=env)
    if not modern:
        talk.hello()
    return talk


def recorded(project: Project, url: str = "") -> list[tuple[str, Payload]]:
    """Stream and event of all that sessions recorded."""

    async def look() -> list[tuple[str, Payload]]:
        settings = load(env={}, cwd=project.folder, flags={"journal.url": url} if url else {}, file=None)
        async with Remit(settings=settings, work=False) as remit:
            return [(stream, event) for stream, found in (await sessions(remit)).items() for event in found]

    return asyncio.run(look())


# --- stdio


def test_prints_of_tools_reach_stderr_and_never_the_protocol(project: Project) -> None:
    with serving(project) as talk:
        assert talk.call("loud__print")["isError"] is False
        status, out, err = talk.leave()
    assert (status, out) == (0, "")
    assert "printed by a tool" in err
    assert "printed by a child" in err


@ERAS
def test_the_end_of_input_ends_it_with_status_0_even_in_the_middle_of_a_call(project: Project, modern: bool) -> None:
    with serving(project, modern=modern) as talk:
        params: dict[str, Any] = {"name": "slow__forever", "arguments": {}}
        if modern:
            params["_meta"] = ENVELOPE
        talk.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params})
        assert talk.process.stderr is not None
        while b"a read is under way" not in talk.process.stderr.readline():
            pass
        status, out, _ = talk.leave()
    assert status == 0
    assert '"id"' not in out


@ERAS
def test_an_answered_call_is_in_the_journal_whatever_happens_then(project: Project, modern: bool) -> None:
    note = str(project.folder / "note")
    rule = '[[policy.rules]]\neffect = "allow"\ntools = ["note.write"]\n'
    project.configure(rule)
    with serving(project, modern=modern) as talk:
        assert talk.call("note__write", path=note, text="x")["isError"] is False
        talk.process.kill()
    verified = project.here("verify", "--all")
    assert verified.status == 0
    assert [event.KIND for _, event in recorded(project)] == [
        "session_opened",
        "tool_invocation_started",
        "tool_invocation_finished",
    ]


@ERAS
def test_lines_that_are_no_messages_are_answered_and_the_rest_is_served(project: Project, modern: bool) -> None:
    with serving(project, modern=modern) as talk:
        for nonsense, code in (b"hello", -32700), (b"[1]", -32600), (b'{"id": [5]}', -32600), (b"\xff\xfe", -32700):
            talk.raw(nonsense + b"\n")
            assert talk.answer(None)["error"]["code"] == code
        talk.raw(b"\n\n")
        assert "result" in talk.ask("tools/list")
        assert talk.leave()[0] == 0


def test_the_era_of_the_first_request_holds_for_good(project: Project) -> None:
    with Talk(project, "mcp", "serve") as talk:
        talk.hello()
        refused = talk.ask("tools/list", {"_meta": ENVELOPE})
        assert "older protocol" in refused["error"]["message"]
        assert "result" in talk.ask("tools/list")
    with Talk(project, "mcp", "serve", modern=True) as talk:
        assert talk.ask("server/discover")["result"]["supportedVersions"] == [MODERN]
        talk.send({"jsonrpc": "2.0", "id": 50, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
        refused = talk.answer(50)
        assert "newer protocol" in refused["error"]["message"]
        assert refused["error"]["data"]["requested"] == "2025-11-25"


def test_nothing_is_served_before_the_handshake(project: Project) -> None:
    with Talk(project, "mcp", "serve") as talk:
        assert "initialize comes first" in talk.ask("tools/call", {"name": "loud__print"})["error"]["message"]
        assert "result" in talk.hello()


def test_a_request_beyond_the_cap_ends_the_conversation_and_one_below_is_served(project: Project) -> None:
    with serving(project) as talk:
        big = "x" * (MAX_REQUEST_BYTES - 10_000)
        assert talk.call("note__read", path=big)["isError"] is True
    with serving(project) as talk:
        half = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x" * 20_000_000}})
        with suppress(BrokenPipeError):  # it stops reading in the middle
            talk.raw(half.encode() + b"\n")
        assert f"longer than {MAX_REQUEST_BYTES} bytes" in talk.answer(None)["error"]["message"]
        assert talk.process.wait(timeout=PATIENCE_S) == 0


def test_a_signal_ends_it_at_once(project: Project) -> None:
    with serving(project) as talk:
        talk.ask("tools/list")
        talk.process.send_signal(signal.SIGTERM)
        talk.process.wait(timeout=PATIENCE_S)
        assert talk.process.returncode == 130


def test_who_calls_is_the_user_where_nobody_else_is_named(project: Project) -> None:
    del project.env["REMIT_PRINCIPAL"]
    with serving(project) as talk:
        talk.call("loud__print")
        talk.leave()
    opened = recorded(project)[0][1]
    assert isinstance(opened, SessionOpened)
    assert opened.principal == principal(load(env={}, cwd=project.folder))
    assert opened.principal


def test_outside_any_project_it_records_in_a_place_of_the_user_s(project: Project) -> None:
    (project.folder / "remit.toml").unlink()
    data = project.folder / "data"
    with serving(project, env={"XDG_DATA_HOME": str(data)}) as talk:
        assert talk.call("fs__read", path="x")["isError"] is True
        _, _, err = talk.leave()
    assert (data / "remit" / "journal.db").exists()
    assert f"records in {data / 'remit' / 'journal.db'}" in err


# --- over HTTP


def url_of(process: subprocess.Popen[str]) -> str:
    """What is printed first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_over_http_the_url_comes_first_and_a_signal_ends_it_with_status_0(project: Project) -> None:
    with project.start("mcp", "serve", "--http", "--port", "0") as process:
        url = url_of(process)
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/mcp")
        headers = {"accept": "application/json, text/event-stream"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        with httpx2.Client(headers=headers) as bare:
            opened = bare.post(url, json=body)
            assert opened.status_code == 200
            session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            with bare.stream("GET", url, headers=session) as stream:  # stays open
                assert stream.status_code == 200
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert out == ""
    assert "serves anyone on this machine" in err
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_a_clear_error(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = project.here("mcp", "serve", "--http", "--port", str(port))
    assert done.status == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in done.err
    assert "Traceback" not in done.err


def test_the_network_is_refused_without_clients(project: Project) -> None:
    done = project.here("mcp", "serve", "--http", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - what is refused
    assert done.status == 2
    assert "no client has a token" in done.err
    assert done.out == ""


def test_tokens_come_from_the_environment_and_are_shown_nowhere(project: Project) -> None:
    project.configure('[[mcp.clients]]\nprincipal = "ann"\ntoken = "${ANN_TOKEN}"\n')
    missing = project.here("mcp", "serve", "--http", "--port", "0")
    assert missing.status == 2
    assert "ANN_TOKEN" in missing.err
    with project.start("mcp", "serve", "--http", "--port", "0", env={"ANN_TOKEN": "swordfish"}) as process:
        url = url_of(process)
        assert httpx2.post(url, json={}).status_code == 401
        assert httpx2.post(url, json={}, headers={"authorization": "Bearer swordfish"}).status_code != 401
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert "serves ann" in err
    assert "swordfish" not in out + err


# --- wrap


@ERAS
def test_a_wrapped_server_looks_like_itself_and_every_call_is_governed(project: Project, modern: bool) -> None:
    words = ("mcp", "wrap", "--name", "suite", "--level", "test_simple_text=L0", "--", *servers.conformance())
    with serving(project, *words, modern=modern) as talk:
        listed = {tool["name"] for tool in talk.ask("tools/list")["result"]["tools"]}
        assert {"test_simple_text", "test_error_handling"} <= listed
        assert not any("__" in name for name in listed)
        assert talk.call("test_simple_text")["isError"] is False
        asked = talk.call("test_error_handling")
        assert asked["_meta"]["dev.remit/outcome"]["code"] == "CONFIRMATION_REQUIRED"
        assert "result" in talk.ask("prompts/list")
        assert "error" in talk.ask("tools/call", {"name": "fs.read", "arguments": {"path": "remit.toml"}})
        status, out, _ = talk.leave()
    assert (status, out) == (0, "")
    kept = project.folder / ".local/share/remit/journal.db"
    assert len({stream for stream, _ in recorded(project, str(kept))}) == 1
    assert project.here("verify", "--all").status == 0


TELLER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "teller", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]}
        case _:
            said = {"cwd": os.getcwd(), "secret": os.environ.get("API_KEY"),
                    "names": sorted(os.environ), "pid": os.getpid(),
                    "ours": os.environ.get("REMIT_PRINCIPAL"), "words": sys.argv[1:]}
            result = {"content": [{"type": "text", "text": json.dumps(said)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def teller(project: Project) -> list[str]:
    """A server that tells where it runs and what it is given."""
    (project.folder / "teller.py").write_text(TELLER, encoding="utf-8")
    return [sys.executable, str(project.folder / "teller.py")]


def wrapped(project: Project, command: list[str], *words: str, env: dict[str, str] | None = None) -> Talk:
    return serving(project, "mcp", "wrap", "--era", "legacy", "--level", "tell=L0", *words, "--", *command, env=env)


def test_a_wrapped_server_runs_where_and_with_what_the_client_started_us(project: Project, teller: list[str]) -> None:
    inner = project.folder / "inner"
    inner.mkdir()
    words = ("mcp", "wrap", "--era", "legacy", "--level", "tell=L0", "--", *teller, "--flag", "${HOME}")
    outer, project.folder = project.folder, inner
    with serving(project, *words, env={"API_KEY": "swordfish"}) as talk:
        told = json.loads(text_of(talk.call("tell")))
        _, _, err = talk.leave()
    project.folder = outer
    assert told["cwd"] == str(inner)
    assert told["secret"] == "swordfish"
    assert told["ours"] is None
    assert told["words"] == ["--flag", "${HOME}"]
    assert "swordfish" not in err


def test_a_wrapped_server_sees_of_the_environment_what_is_named(project: Project, teller: list[str]) -> None:
    given = {"API_KEY": "swordfish", "TEAM": "red", "OTHER": "x"}
    with wrapped(project, teller, "--env", "TEAM", "--env", "OTHER", "--env", "ABSENT", env=given) as talk:
        told = json.loads(text_of(talk.call("tell")))
    assert told["secret"] is None
    assert {"TEAM", "OTHER", "PATH", "HOME"} <= set(told["names"])
    assert set(told["names"]) <= {"TEAM", "OTHER", "REMIT_FAMILY", "__CF_USER_TEXT_ENCODING", *INHERITED}


def test_a_call_that_comes_at_once_finds_the_wrapped_server_s_tool(project: Project, teller: list[str]) -> None:
    with wrapped(project, teller) as talk:
        assert "cwd" in text_of(talk.call("tell"))


def test_the_end_of_input_ends_the_wrapped_server_too(project: Project, teller: list[str]) -> None:
    with wrapped(project, teller) as talk:
        child = json.loads(text_of(talk.call("tell")))["pid"]
        assert talk.leave()[0] == 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_signal_ends_the_wrapped_server_too(project: Project, teller: list[str]) -> None:
    with wrapped(project, teller) as talk:
        child = json.loads(text_of(talk.call("tell")))["pid"]
        talk.process.send_signal(signal.SIGTERM)
        talk.process.wait(timeout=PATIENCE_S)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_options_of_the_wrapped_command_are_its_own(project: Project, teller: list[str]) -> None:
    words = ("mcp", "wrap", "--era", "legacy", "--level", "tell=L0", *teller, "--port", "9", "--http", "-x")
    with serving(project, *words) as talk:
        assert json.loads(text_of(talk.call("tell")))["words"] == ["--port", "9", "--http", "-x"]


def test_wrong_options_of_wrap_are_refused(project: Project) -> None:
    assert project.here("mcp", "wrap").status == 2
    assert "'tell' does not look like get_*=L0" in project.here("mcp", "wrap", "--level", "tell", "--", "x").err
    assert "'tell=L9' does not look like" in project.here("mcp", "wrap", "--level", "tell=L9", "--", "x").err
    assert "--nmae" in project.here("mcp", "wrap", "--nmae", "a", "--", "x").err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-memory@1.2", "memory"),
        ("npx -y @modelcontextprotocol/server-memory", "memory"),
        ("npx some-server", "some"),
        ("npx -y mcp-server@latest", "mcp_server"),
        ("uvx mcp-server-git --repository .", "git"),
        ("uvx mcp_server_time", "time"),
        ("node /opt/it/Filesystem.js /data", "filesystem"),
        ("python3 server.py", "server"),
        ("/usr/bin/python -m my_tools", "my_tools"),
        ("docker run -i --rm mcp/fetch", "fetch"),
        ("./tool", "tool"),
        ("node /opt/notes/dist/index.js", "notes"),
        ("node ./server.js", "server"),
        ("python3", "python3"),
        ("--", "server"),
        ("ünïcode", "n_code"),
        ("x" * 90, "x" * 40),
    ],
)
def test_a_wrapped_server_s_name_is_made_from_its_command(command: str, name: str) -> None:
    assert name_of(tuple(command.split())) == name
