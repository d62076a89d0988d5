"""Secrets: where they are configured, passed, returned, raised or quoted, nobody sees them (reviews s08)."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from pathlib import Path

import pytest

from remit.errors import ProviderError
from remit.providers.mcp.oauth import ServerLogin
from remit.settings.mcp import McpServer
from tests.cli.conftest import Project, project
from tests.providers.mcp.authority import Authority
from tests.providers.mcp.test_oauth import Person
from tests.providers.mcp.world import world

__all__ = ["project"]
CONFIGURED = {
    "C-server env API_KEY": "q1zq91aaaa",
    "C-server env with a harmless name": "q2zq92bbbb",
    "C-header Authorization": "q3zq93cccc",
    "C-header X-Custom": "q4zq94dddd",
    "C-password in a URL": "q5zq95eeee",
    "C-query of a URL": "q6zq96ffff",
    "C-path of a URL": "q7zq97gggg0000aaaa1111bbbb2222",
    "C---token= in a command": "q8zq98hhhh",
    "C-client token": "q9zq99iiii",
    "C-default in a reference": "q0zq90jjjj",
    "C-oauth client_secret": "qazq9akkkk",
}
Q = list(CONFIGURED.values())
PRINTS = "import os, sys; print(os.environ['API_KEY'], sys.argv, file=sys.stderr)"
SETTINGS = f"""
[[mcp.servers]]
name = "local"
command = ["{sys.executable}", "-c", "{PRINTS}", "--token={Q[7]}"]
env = {{ API_KEY = "{Q[0]}", LICENSE_BLOB = "{Q[1]}" }}
[[mcp.servers]]
name = "far"
url = "http://user:{Q[4]}@127.0.0.1:1/{Q[6]}?key={Q[5]}"
headers = {{ Authorization = "Bearer {Q[2]}", X-Custom = "{Q[3]}", X-Default = "${{NOPE:-{Q[9]}}}" }}
oauth = {{ client_secret = "{Q[10]}" }}
[[clients]]
principal = "ann"
token = "{Q[8]}-0123456789abcdef0123456789abcdef"
"""
LOOKS = (
    ("config",), ("mcp", "list"), ("mcp", "test"), ("mcp", "show", "local"), ("mcp", "show", "far"),
    ("doctor",),    ("tools",), ("token", "list"), ("run", "report"), ("show", "last"), ("trace", "last"),
)  # fmt: skip


def test_no_secret_of_the_settings_is_shown_logged_or_recorded(project: Project) -> None:  # C-*
    project.configure(SETTINGS)
    said = ""
    for words in LOOKS:
        for verbose in ((), ("-v", "-v")):
            done = project.here(*verbose, *words)
            said += done.out + done.err
    journal = (project.folder / ".remit/journal.db").read_bytes()
    seen = {name for name, text in CONFIGURED.items() if text in said or text.encode() in journal}
    assert seen == set()
    assert "local" in said


NAMED = (
    "api_key", "apikey", "token", "access_token", "refresh_token", "password", "passwd", "passphrase", "secret",
    "client_secret", "authorization", "private_key", "credentials", "cookie", "session_token",
)  # fmt: skip
SHAPED = {
    "a": "ghp_0123456789abcdefABCDEF0123456789abcd", "b": "Bearer abcdefghij0123456789", "c": "AKIAABCDEFGHIJKLMNOP",
    "d": "https://user:hunter2zq@example.com/x", "e": "curl -H 'Authorization: Bearer zzzzzzzzzzzzzzzz'",
    "f": "--password hunter2zq", "g": "sk-proj-0123456789abcdef0123456789abcdef",
}  # fmt: skip
UNKNOWN = ("auth", "pin", "pass", "session_id", "otp", "Passwort")
"""Names that say too little: what they hold is shown, as docs/security.md says."""
MODULE = """
from remit import recipe, tool

@tool("vault.put", level="L1")
def put(values: dict) -> dict:
    "Keep values."
    return {"access_token": "zqresult1", "note": "token=zqresult2zqresult2"}

@tool("vault.fail", level="L0")
def fail(how: str) -> None:
    "Fail."
    raise ValueError(how)

@recipe("keeps")
async def keeps(run, values: dict) -> None:
    await run.call("vault.put", {"values": values})

@recipe("raises")
async def raises(run, how: str) -> None:
    await run.call("vault.fail", {"how": how})
"""


@pytest.fixture
def vault(project: Project) -> Project:
    """A project with tools that take, return and raise secrets."""
    (project.folder / "vault.py").write_text(MODULE, encoding="utf-8")
    project.configure('[app]\nmodules = ["vault.py"]\n', modules=False)
    return project


def test_secrets_in_arguments_and_results_are_masked_wherever_text_is_shown(vault: Project) -> None:
    values = {name: f"zq{number:02}zqzq" for number, name in enumerate(NAMED)} | SHAPED  # V-args, V-heads
    asked = vault.here("run", "keeps", "--input", json.dumps({"values": values}))
    assert asked.status == 4
    said = asked.out + asked.err
    for words in (("show", "last"), ("trace", "last"), ("confirm",), ("jobs",)):
        done = vault.here("-v", *words)
        said += done.out + done.err
    hidden = [f"zq{number:02}zqzq" for number in range(len(NAMED))]
    hidden += ["0123456789abcdefABCDEF", "abcdefghij0123456789", "ABCDEFGHIJKLMNOP", "hunter2zq", "zzzzzzzzzzzzzzzz"]
    assert [text for text in hidden if text in said] == []
    (question,) = vault.here("confirm", "--json").json
    assert question["args"]["values"] == values, "V-json: who asks for JSON gets what is recorded"
    assert vault.here("confirm", question["confirmation"], "--approve").status == 0
    vault.here("resume", "last")
    shown = "".join(vault.here(word, "last").out for word in ("show", "trace"))
    assert "zqresult" not in shown  # V-results
    journal = b"".join(path.read_bytes() for path in (vault.folder / ".remit").glob("journal.db*"))
    assert b"zq00zqzq" in journal, "V-journal: values are kept whole, as the docs say"


@pytest.mark.parametrize(
    "how",
    ["password=zqzqzqzq1", "token ghp_zq23456789abcdefABCDEF0123456789abcd", "Authorization: Bearer zqzqzqzqzqzq"],
)
def test_a_secret_that_is_raised_is_masked(vault: Project, how: str) -> None:  # E-*
    said = ""
    for words in (("run", "raises", "--how", how), ("show", "last"), ("trace", "last")):
        for verbose in ((), ("-v", "-v")):
            done = vault.here(*verbose, *words)
            said += done.out + done.err
    assert "TOOL_EXEC_FAILED" in said
    assert "zqzq" not in said
    assert "ghp_zq" not in said


TOMLS = {
    "T-token is a number": "[[clients]]\nprincipal = 'a'\ntoken = 919191919191\n",
    "T-headers is a text": "[[mcp.servers]]\nname = 'a'\nurl = 'http://h'\nheaders = 'Bearer 9191zq9191'\n",
    "T-broken TOML line": "[[clients]]\ntoken = '9191zq9191\n",
    "T-url with odd scheme": "[[mcp.servers]]\nname = 'a'\nurl = 'gopher://u:9191zq9191@h/9191zq9191'\n",
    "T-journal url": "[journal]\nurl = 'postgresql://u:9191zq9191@127.0.0.1:1/x'\n",
    "T-journal url, unknown backend": "[journal]\nurl = 'mysql://u:9191zq9191@127.0.0.1:1/x'\n",
    "T-env value is a list": "[[mcp.servers]]\nname = 'a'\ncommand = ['x']\nenv = { API_KEY = ['9191zq9191'] }\n",
}


@pytest.mark.parametrize("name", TOMLS)
def test_an_error_about_settings_quotes_no_secret(project: Project, name: str) -> None:  # T-*
    project.configure(TOMLS[name], modules=False)
    said = ""
    for words in (("config",), ("doctor",), ("mcp", "list"), ("tools",), ("jobs",)):
        done = project.here("-v", "-v", *words)
        said += done.out + done.err
    assert [half for half in ("9191z", "q9191") if half in said] == []


@pytest.mark.parametrize(
    "env",
    [
        {"REMIT_NOPE": "9191zq9191"},
        {"REMIT_JOBS_CONCURRENCY": "9191zq9191"},
        {"MCP_SERVERS_JSON": '[{"name":"a","url":"http://u:9191zq9191@h","headers":["9191zq9191"]}]'},
    ],
)
def test_an_error_about_the_environment_quotes_no_secret(project: Project, env: dict[str, str]) -> None:
    project.env |= env  # T-environment
    done = [project.here("-v", *words) for words in (("config",), ("mcp", "list"), ("doctor",))]
    assert "http://u:9191zq9191" not in "".join(one.out + one.err for one in done)
    if "REMIT_JOBS_CONCURRENCY" not in env:
        assert "9191zq9191" not in "".join(one.out + one.err for one in done)


@pytest.mark.parametrize("verbose", [(), ("-v", "-v")])
def test_a_module_that_raises_a_secret_does_not_show_it(project: Project, verbose: tuple[str, ...]) -> None:  # T-module
    (project.folder / "bad.py").write_text('PASSWORD = "zq9191zq"\nraise ValueError(f"password={PASSWORD}")\n')
    project.configure('[app]\nmodules = ["bad.py"]\n', modules=False)
    done = project.here(*verbose, "tools")
    assert done.status != 0
    assert "password=zq9191zq" not in done.out + done.err
    assert "zq9191zq" not in done.out + done.err


async def test_a_token_answer_that_does_not_fit_is_not_quoted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # T-oauth
    caplog.set_level(logging.DEBUG)
    async with world() as mcp, Authority() as authority:
        authority.token = {"refresh_token": "rtzq9191, input_type=str]rtzq9191", "token_type": "Bearer"}
        server = McpServer(name="hosted", url=authority.url, oauth={})
        with pytest.raises(ProviderError) as raised:
            await mcp.provider(server, login=ServerLogin(tmp_path, Person())).list_tools()
    said = "".join(traceback.format_exception(raised.value))
    assert "access_token" in said
    assert "rtzq" not in said + caplog.text


def test_a_name_that_says_too_little_hides_nothing(vault: Project) -> None:  # V-args: the limit that the docs name
    vault.here("run", "keeps", "--input", json.dumps({"values": dict.fromkeys(UNKNOWN, "zqzqzq")}))
    shown = vault.here("show", "last").out
    assert "zqzqzq" in shown
