"""The real agents ask the gate, and make no call that it does not allow, whatever becomes of the guard.

They are large, so they are installed and run only if that is asked for: `make agents`, REMIT_TEST_AGENTS=1.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.hooks.agents import ROWS, Home, real, script_of
from tests.parts.hooks.fake_guard import ANSWERS, answering

pytestmark = [pytest.mark.slow, real, pytest.mark.timeout(300)]
COMMANDS = ["echo hi > b.txt", "rm -f a.txt", "git push"]


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as place:
        made = Home(Path(place))
        yield made
        made.kill()


@pytest.mark.parametrize("agent", ROWS)
async def test_an_agent_asks_and_obeys(agent: str, home: Home) -> None:
    await home.connect(agent)
    ran = await home.run(agent, COMMANDS)
    assert {file.name for file in home.repository.iterdir() if file.name[0] != "."} == {"a.txt", "b.txt"}, ran.text
    assert "POLICY_DENIED: deleting is forbidden" in ran.script.said[-1]
    assert "A person has to approve this call: remit confirm c_" in ran.script.said[-1]
    _, told = await home.remit("verify")
    assert "1 end of calls stand as their clients reported them" in told


@pytest.mark.parametrize("agent", ROWS)
async def test_an_approved_call_runs_once_when_it_is_made_again(agent: str, home: Home) -> None:
    (home.repository / "git").write_text("#!/bin/sh\necho pushed >> pushed.txt\n")
    (home.repository / "git").chmod(0o755)
    await home.connect(agent)
    push = ["./git push"]
    asked = await home.run(agent, push)
    assert not (home.repository / "pushed.txt").exists()
    [question] = set(re.findall(r"c_[a-z0-9]{26}", asked.script.said[-1]))
    status, said = await home.remit("confirm", question, "--approve")
    assert status == 0, said
    for _ in range(2):  # approved the first time, asked about again the second
        await home.run(agent, push)
        assert (home.repository / "pushed.txt").read_text() == "pushed\n"


async def test_a_call_that_was_put_off_runs_once_when_its_run_is_resumed() -> None:
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as place:
        home = Home(Path(place), more="defer = true")
        (home.repository / "git").write_text("#!/bin/sh\necho pushed >> pushed.txt\n")
        (home.repository / "git").chmod(0o755)
        await home.connect("claude")
        script = script_of("claude", ["./git push"])
        asked = await home.run("claude", [], script=script)
        assert '"stop_reason":"tool_deferred"' in asked.text, asked.text
        assert not (home.repository / "pushed.txt").exists()
        _, waiting = await home.remit("api", "confirmations.pending")
        [question] = set(re.findall(r"c_[a-z0-9]{26}", waiting))
        status, said = await home.remit("confirm", question, "--approve")
        assert status == 0, said
        [session] = set(re.findall(r'"session_id":"([0-9a-f-]+)"', asked.text))
        resumed = await home.run("claude", [], script=script, more=("--resume", session))
        assert (home.repository / "pushed.txt").read_text() == "pushed\n", resumed.text
        _, told = await home.remit("verify")
        assert "1 end of calls stand as their clients reported them" in told
        home.kill()


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("agent", ROWS)
async def test_no_call_runs_on_an_answer_that_is_none(agent: str, answer: str, home: Home) -> None:
    await home.connect(agent, deadline_s=2)
    async with answering(home.folder / "socket", ANSWERS[answer]) as came:
        ran = await home.run(agent, COMMANDS[:1])
    assert [request for request in came if request.startswith(f"{agent}.before".encode())], ran.text
    assert not (home.repository / "b.txt").exists(), ran.text


@pytest.mark.parametrize("fault", ["settings", "client", "killed"])
@pytest.mark.parametrize("agent", ROWS)
async def test_no_call_runs_without_a_guard(agent: str, fault: str, home: Home) -> None:
    await home.connect(agent)
    client = home.folder / "client"
    if fault == "settings":
        (home.settings / "remit.toml").write_text("[[policy.rules]]\n")
    elif agent == "opencode":
        pytest.skip("it asks by its plugin")
    else:
        client.unlink()
    if fault == "killed":
        client.write_text("#!/bin/sh\nkill -SEGV $$\n")
        client.chmod(0o755)
    ran = await home.run(agent, COMMANDS[:1])
    assert ran.script.offered, ran.text
    assert not (home.repository / "b.txt").exists(), ran.text


@pytest.mark.parametrize("agent", ROWS)
async def test_a_guard_that_was_killed_is_started_by_the_next_hook(agent: str, home: Home) -> None:
    await home.connect(agent)
    await home.run(agent, COMMANDS[:1])
    home.kill()
    ran = await home.run(agent, ["echo two > c.txt"])
    assert (home.repository / "c.txt").exists(), ran.text
