"""`remit mcp wrap --url`, `login` and `logout`: a remote server behind the gate of one client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from remit.cli.wrap_server import name_at
from remit.settings.logins import LoginFile
from remit.settings.mcp import McpServer
from tests.cli.conftest import Project
from tests.cli.talking import Talk, text_of
from tests.providers.mcp.authority import TOKEN, Authority


def test_a_name_is_made_from_a_url() -> None:
    names = {
        "https://mcp.linear.app/mcp": "linear",
        "https://api.githubcopilot.com/mcp/": "githubcopilot",
        "https://mcp.eu.my-firm.co.uk/": "my_firm",
        "http://127.0.0.1:8000/mcp": "server",
        "http://localhost/": "localhost",
        "https://[::1]/": "server",
        "nonsense": "server",
    }
    assert {url: name_at(url) for url in names} == names


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--url", "http://mcp.example/mcp"], "not an https URL"),
        (["--url", "ftp://mcp.example/mcp"], "not an https URL"),
        (
            ["--url", "https://mcp.example/mcp", "--header", "Authorization=Bearer hunter2hunter2a1"],
            "look like secrets",
        ),
        (["--url", "https://mcp.example/mcp?token=hunter2hunter2a1"], "look like secrets"),
        (["--url", "https://mcp.example/mcp", "--issuer", "http://login.example"], "--issuer http://login"),
        (["--url", "https://mcp.example/mcp", "--issuer", "nope"], "--issuer …"),
        (["--url", "https://mcp.example/mcp", "--", "npx", "x"], "either a command or --url"),
        (["--header", "X=1", "--", "npx", "x"], "--header belongs to --url"),
        (["--issuer", "https://login.example", "--", "npx", "x"], "--issuer belongs to --url"),
        (["--url", "https://mcp.example/mcp", "--env", "TEAM"], "--env belongs to a command"),
        (["--env", "TEAM=hunter2", "--", "npx", "x"], "--env TEAM names no environment variable"),
        (["--env", "REMIT_TOKEN", "--", "npx", "x"], "--env REMIT_TOKEN is Remit's own"),
        ([], "either a command or --url"),
    ],
)
def test_what_is_no_place_to_send_calls_to_is_refused(project: Project, words: list[str], why: str) -> None:
    done = project.here("mcp", "wrap", *words)
    assert done.status == 2
    assert why in done.err
    assert "hunter2" not in done.err + done.out


def kept(project: Project, url: str, **values: Any) -> LoginFile:
    """A login, as `remit mcp login --url` keeps it."""
    file = LoginFile(project.folder / ".local/share/remit/mcp-auth", McpServer(name="server", url=url))
    file.keep(**values)
    return file


LOGIN = {"tokens": {"access_token": TOKEN, "token_type": "Bearer"}}


@pytest.mark.slow
async def test_a_remote_server_is_wrapped_as_it_is(project: Project) -> None:
    async with Authority() as authority:
        kept(project, authority.url, **LOGIN)

        def talk() -> tuple[Any, ...]:
            words = ("mcp", "wrap", "--url", authority.url, "--header", "X-Team=${TEAM}", "--level", "echo=L0")
            with Talk(project, *words, env={"TEAM": "blue"}) as wrapped:
                welcome = wrapped.hello()["result"]
                return (
                    welcome,
                    wrapped.ask("tools/list")["result"],
                    wrapped.call("echo"),
                    wrapped.call("echo", text="fail"),
                )

        welcome, listed, answer, error = await asyncio.to_thread(talk)
    assert (welcome["serverInfo"]["name"], welcome["serverInfo"]["version"]) == ("hosted", "9.9")
    assert welcome["serverInfo"]["title"] == "Hosted Server"
    assert welcome["instructions"].startswith("Use echo.")
    assert [tool["name"] for tool in listed["tools"]] == ["echo"]
    assert text_of(answer) == f"Bearer {TOKEN} blue"
    assert answer["_meta"]["com.acme/kept"] == [1]
    assert (error["isError"], text_of(error)) == (True, "line one\n  line two")


@pytest.mark.slow
async def test_without_a_login_the_client_hears_how_to_log_in(project: Project) -> None:
    async with Authority() as authority:

        def talk() -> dict[str, Any]:
            with Talk(project, "mcp", "wrap", "--url", authority.url) as wrapped:
                return wrapped.hello()

        refused = await asyncio.to_thread(talk)
    assert f"remit mcp login --url {authority.url} --name server" in refused["error"]["message"]


def test_a_login_is_shown_and_forgotten(project: Project) -> None:
    project.configure('[[mcp.servers]]\nname = "server"\nurl = "https://mcp.example/mcp"\noauth = {}\n')
    file = kept(project, "https://mcp.example/mcp", **LOGIN)
    (row,) = json.loads(project.here("mcp", "list", "--json").out)["servers"]
    assert row["login"] == "logged in"
    assert TOKEN not in project.here("mcp", "list").out
    assert "logged out of server" in project.here("mcp", "logout", "server").out
    assert not file.path.exists()
    assert "no login at server" in project.here("doctor").out
    (row,) = json.loads(project.here("mcp", "list", "--json").out)["servers"]
    assert row["login"] == "none"


@pytest.mark.parametrize(
    ("place", "said"),
    [('command = ["npx", "x"]', "a program that is started here"), ('url = "https://mcp.example"', "no oauth table")],
    ids=["program", "key"],
)
def test_who_takes_no_login_is_not_logged_in_to(project: Project, place: str, said: str) -> None:
    project.configure(f'[[mcp.servers]]\nname = "server"\n{place}\n')
    done = project.here("mcp", "login", "server", "--json")
    assert (done.status, done.error["code"]) == (2, "USAGE")
    assert said in done.error["message"]
    assert done.error["remedy"]


async def test_a_logout_waits_for_who_renews_and_leaves_nothing(tmp_path: Path) -> None:
    file = LoginFile(tmp_path / "logins", McpServer(name="server", url="https://mcp.example"))
    assert not await file.remove()
    async with file.alone():
        leaving = asyncio.ensure_future(file.remove())
        waiting = asyncio.ensure_future(turn(file))
        file.keep(**LOGIN)
    assert await leaving
    assert await waiting, "who waited meanwhile has a file that others see"
    assert not file.path.exists()
    assert await file.remove() is False
    assert list((tmp_path / "logins").iterdir()) == []


async def turn(file: LoginFile) -> bool:
    """Return whether another process would have to wait, while it is the turn of this one."""
    async with file.alone():
        return file.path.with_suffix(".lock").exists()


def test_the_login_of_a_server_that_no_file_names_is_forgotten_by_its_url(project: Project, tmp_path: Path) -> None:
    url = "http://localhost:1/mcp"
    file = kept(project, url, **LOGIN)
    assert json.loads(project.here("mcp", "logout", "--url", url, "--json").out) == {
        "name": "localhost",
        "removed": False,
    }
    assert file.path.exists()
    assert json.loads(project.here("mcp", "logout", "--url", url, "--name", "server", "--json").out)["removed"] is True
    assert not file.path.exists()
    assert project.here("mcp", "logout").status == 2
    assert project.here("mcp", "logout", "elsewhere").status == 2
