"""A server that pays and answers oddly: what its client hears of the effect, and that no retry pays again."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from remit import Remit, Run, recipe
from remit.codes import Code
from remit.errors import RemitError
from remit.gateway.result import KEPT_LEVELS
from remit.jobs.state import ENDED
from remit.jsonrpc.message import LEVELS, REPAIRS
from remit.mcp_server.offer import OwnNames
from remit.tools.remote import OUTCOME
from tests.mcp_server.links import LINKS, facing, raw
from tests.opened import OpenRemit, until

SERVER: Final = Path(__file__).parent / "servers" / "odd.py"
ANSWERS: Final[dict[str, tuple[str, str, str, bool]]] = {
    "broken": ("structured", "RESULT_INVALID", "committed", False),
    "missing": ("structured", "RESULT_INVALID", "committed", False),
    "large": ("pay", "RESULT_TOO_LARGE", "committed", False),
    "failed": ("pay", "TOOL_EXEC_FAILED", "unknown", False),
    "null": ("pay", "TOOL_EXEC_FAILED", "unknown", True),
    "text": ("pay", "TOOL_EXEC_FAILED", "unknown", True),
    "broken off": ("pay", "TOOL_EXEC_FAILED", "unknown", True),
    "die": ("pay", "TOOL_UNAVAILABLE", "unknown", True),
}
"""The tool, and what a client is told: code, effect, `uncertain`."""


def nested(levels: int, inmost: Any = ()) -> Any:
    value = inmost if inmost is None else list(inmost)
    for _ in range(levels - (inmost is not None)):
        value = [value]
    return value


OK: Final = [{"type": "text", "text": "ok"}]
HALF: Final = [{"type": "text", "text": "\ufffd"}]
MENDED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "nan": ({"content": [], "n": None}, "not_json"),
    "huge": ({"content": [], "structuredContent": {"n": None}}, "not_json"),
    "utf8": ({"content": HALF}, "not_utf8"),
    "half": ({"content": HALF}, "half_pair"),
    "deep": ({"content": OK, "structuredContent": {"v": nested(300)}}, "too_deep"),
    "deeper": ({"content": OK, "structuredContent": {"v": nested(61, None)}}, "too_deep"),
}
"""What a client is told where a value cannot be read, or recorded whole; and the kind of repair that is recorded."""
ERRORS: Final = ("-32000", "-32001", "-32050", "-32603", "-32700")


@recipe("pays")
async def pays(run: Run, tool: str, how: str) -> Any:
    """Pay once."""
    return (await run.call(f"mcp.odd.{tool}", {"how": how})).value


@asynccontextmanager
async def before(remit_in: OpenRemit, tmp_path: Path) -> AsyncIterator[Remit]:
    """A Remit before the server."""
    command = [sys.executable, "-I", "-S", str(SERVER), str(tmp_path / "paid")]
    rules = [{"effect": "allow", "tools": ["*"]}]
    flags = {"mcp.servers": [{"name": "odd", "command": command, "level": "L1"}], "policy.rules": rules}
    async with remit_in(flags=flags, recipes=[pays]) as remit:
        yield remit


@asynccontextmanager
async def client_of(remit_in: OpenRemit, tmp_path: Path) -> AsyncIterator[Client]:
    """A client that reaches the server through Remit."""
    async with (
        before(remit_in, tmp_path) as remit,
        facing(remit, names=OwnNames("odd")) as face,
        LINKS[0].connect(face) as client,
    ):
        yield client


def paid(tmp_path: Path) -> int:
    return (tmp_path / "paid").read_text().count("paid")


@pytest.mark.parametrize("how", ANSWERS)
async def test_a_client_hears_what_is_known_of_the_effect(remit_in: OpenRemit, tmp_path: Path, how: str) -> None:
    tool, code, effect, uncertain = ANSWERS[how]
    async with client_of(remit_in, tmp_path) as client:
        result = await raw(client, "tools/call", {"name": tool, "arguments": {"how": how}})
    told = result["_meta"][OUTCOME]
    assert result["isError"]
    assert (told["code"], told["effect"], told.get("uncertain", False)) == (code, effect, uncertain)
    assert "docs/" not in str(result)
    assert (effect == "committed") is ("do not make the call again" in result["content"][0]["text"])


@pytest.mark.parametrize("how", MENDED)
async def test_a_value_that_cannot_be_read_costs_itself(remit_in: OpenRemit, tmp_path: Path, how: str) -> None:
    async with client_of(remit_in, tmp_path) as client:
        result = await raw(client, "tools/call", {"name": "pay", "arguments": {"how": how}})
    assert {name: value for name, value in result.items() if name != "_meta"} == {**MENDED[how][0], "isError": False}


def test_as_much_is_kept_of_a_deep_value_whether_its_message_can_be_read_or_not() -> None:
    assert LEVELS == KEPT_LEVELS + 2  # the message's own


@pytest.mark.parametrize("how", MENDED)
async def test_the_record_says_what_was_repaired(remit_in: OpenRemit, tmp_path: Path, how: str) -> None:
    async with before(remit_in, tmp_path) as remit:
        job = await remit.service.jobs.start_named("pays", {"tool": "pay", "how": how})
        await until(remit, job, lambda row: row.state == "completed")
        (step,) = (await remit.service.streams.narrative(job)).steps
        assert step.repaired == f"result: {REPAIRS[MENDED[how][1]]}"


async def test_the_record_says_what_was_repaired_in_arguments(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with before(remit_in, tmp_path) as remit:
        session = await remit.service.sessions.open("mcp", client="test")
        await remit.service.sessions.call(session, "mcp.odd.pay", {"how": "good"}, repaired={"half_pair": 2})
        (step,) = (await remit.service.streams.narrative(session)).steps
        assert step.repaired == f"arguments: {REPAIRS['half_pair']} (2 times)"


@pytest.mark.parametrize("code", ERRORS)
async def test_the_servers_own_errors_arrive_as_they_came(remit_in: OpenRemit, tmp_path: Path, code: str) -> None:
    async with client_of(remit_in, tmp_path) as client:
        with pytest.raises(MCPError) as caught:
            await raw(client, "tools/call", {"name": "pay", "arguments": {"how": code}})
    assert (caught.value.code, caught.value.message) == (int(code), "wait 3 s")
    assert caught.value.data == {"retryAfter": 3}


@pytest.mark.parametrize("how", [*ANSWERS, *ERRORS])
async def test_an_odd_answer_is_paid_for_once(remit_in: OpenRemit, tmp_path: Path, how: str) -> None:
    tool, _, effect, uncertain = ANSWERS.get(how, ("pay", "", "unknown", False))
    async with before(remit_in, tmp_path) as remit:
        job = await remit.service.jobs.start_named("pays", {"tool": tool, "how": how})
        row = await until(remit, job, lambda row: not row.worker and row.state in {*ENDED, "waiting"})
        assert row.state == ("waiting" if uncertain else "failed")
        (step,) = (await remit.service.streams.narrative(job)).steps
        assert step.state_diff is not None
        assert step.state_diff.effect == effect
        assert step.state_diff.effect_by == ("remit" if uncertain else "tool")
        for making in (remit.service.jobs.retry(job), remit.service.forks.make(job, "1")):
            with pytest.raises(RemitError) as caught:
                await making
            assert caught.value.code in {Code.RETRY_REPEATS, Code.JOB_NOT_RETRYABLE}
    assert paid(tmp_path) == 1
