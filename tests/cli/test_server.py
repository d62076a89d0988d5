"""`remit serve` as others see it: whether it is ready, and what it does without a worker."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client import Client

from tests.cli.conftest import Project
from tests.cli.test_mcp_clients import CLIENT, TOKEN
from tests.cli.test_mcp_pins import far
from tests.cli.test_remote import serving
from tests.mcp_server.links import at, text_of
from tests.mcp_server.test_relays import SERVER as SHELF
from tests.patience import PATIENCE_S

__all__ = ["far"]
pytestmark = pytest.mark.slow


def answer(url: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of a request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:  # noqa: S310 - loopback
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_server_is_ready_once_what_it_requires_was_reached_without_a_call(far: Project) -> None:
    with (far.folder / "remit.toml").open("a", encoding="utf-8") as file:
        file.write('[readiness]\nrequired = ["mcp.far"]\n')
    with serving(far, "--no-work") as url:
        while answer(f"{url}/health")[0] != 200:
            pass  # it connects
        _, health = answer(f"{url}/health")
        assert health["required"]["mcp.far"]["ready"]
        assert not health["optional"]["mcp.gone"]["ready"]


def test_a_server_whose_requirement_does_not_start_is_never_ready(far: Project) -> None:
    with (far.folder / "remit.toml").open("a", encoding="utf-8") as file:
        file.write('[readiness]\nrequired = ["mcp.gone"]\n')
    with serving(far) as url:
        status, body = answer(f"{url}/health")
        assert (status, body["error_code"], body["missing_required"]) == (503, "MCP_REQUIRED_UNAVAILABLE", ["mcp.gone"])


def test_the_health_of_a_server_tells_when_its_settings_were_changed_since_it_began(project: Project) -> None:
    project.configure("", modules=False)
    with serving(project, "--no-work") as url:
        assert answer(f"{url}/health")[1]["optional"]["settings"]["ready"]
        project.configure("[jobs]\nconcurrency = 3\n", modules=False)
        while (health := answer(f"{url}/health"))[1]["optional"]["settings"]["ready"]:
            pass  # it looks at the file every second
        status, body = health
        assert (status, body["degraded"]) == (200, True)
        state = body["optional"]["settings"]
        assert (state["code"], "jobs.concurrency" in state["detail"]) == ("DEP_UNAVAILABLE", True)


def test_without_work_a_server_still_runs_the_steps_that_a_request_waits_for(project: Project) -> None:
    (project.folder / "a.txt").write_text("hello", encoding="utf-8")
    step = {"tool_name": "fs_read", "args": {"path": "a.txt"}}
    with serving(project, "--no-work") as url:
        status, report = answer(f"{url}/v1/tools/execute", {"ticket_id": "tkt_a", "tool_steps": [step]})
        assert (status, report["status"]) == (200, "ok")


@asynccontextmanager
async def client_of(project: Project, settings: str, **given: Any) -> AsyncIterator[Client]:
    """An MCP client of `remit serve` under these settings."""
    project.configure(CLIENT + settings)
    with serving(project, "--no-work") as url:
        async with at(f"{url}/mcp", token=TOKEN, mode="legacy", cache=None, **given) as client:
            yield client


async def test_mcp_clients_of_a_server_find_tools_by_a_search(project: Project) -> None:
    settings = '[mcp]\nexpose_tools = "search"\nalways = ["fs.read"]\n'
    async with client_of(project, settings) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["tools__search", "tools__call", "fs__read"]
        found = await client.call_tool("tools__search", {"query": "list the files of a folder", "limit": 3})
        assert "fs__list" in text_of(found)
        outcome = await client.call_tool("tools__call", {"name": "fs__list", "arguments": {}})
        assert not outcome.is_error


async def test_mcp_clients_of_a_server_are_asked_and_answered_as_its_settings_say(project: Project) -> None:
    async def never(context: Any, params: Any) -> Any:
        raise AssertionError(params)

    settings = '[mcp]\nask = "terminal"\nwaiting = "result"\n'
    async with client_of(project, settings, elicitation_callback=never) as client:
        waits = await client.call_tool("note__write", {"path": "a.txt", "text": "x"})
    assert not waits.is_error
    assert waits.meta is not None
    assert waits.meta["dev.remit/outcome"]["status"] == "pending"


async def test_mcp_clients_of_a_server_get_the_prompts_and_resources_of_its_mcp_servers(project: Project) -> None:
    command = json.dumps([sys.executable, "-I", "-S", str(SHELF), "ann"])
    async with client_of(project, f'[[mcp.servers]]\nname = "ann"\ncommand = {command}\n') as client:
        assert [each.name for each in (await client.list_prompts()).prompts] == [
            "mcp__ann__greet",
            "mcp__ann__part__two",
        ]
        (said,) = (await client.read_resource("ui://ann/page")).contents
        assert getattr(said, "text", "") == "ann has ui://ann/page"
