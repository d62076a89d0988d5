"""A server is started when it is needed, comes back when it dies, is left alone when that does not help, and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.child import ChildProcess
from remit.providers.mcp import supervisor
from remit_testing.providers import call_context
from tests.patience import PATIENCE_S
from tests.providers.mcp.world import TOOLS, World, alive, descriptors

pytestmark = pytest.mark.slow  # each starts and ends processes

ECHO = "mcp.puppet.echo"


async def test_nothing_is_started_before_it_is_needed(mcp: World) -> None:
    provider = mcp.provider()
    await provider.close()
    assert mcp.strings.times("initialize") == 0


async def test_a_call_is_answered(mcp: World) -> None:
    provider = mcp.provider()
    assert [meta.name for meta in await provider.list_tools()] == [f"mcp.puppet.{each['name']}" for each in TOOLS]
    assert (await provider.invoke(ECHO, {"text": "hello"}, call_context())).value == "hello"


async def test_many_who_need_it_at_once_start_it_once(mcp: World) -> None:
    provider = mcp.provider()
    await asyncio.gather(*(provider.status() for _ in range(20)))
    assert mcp.strings.times("initialize") == 1


async def test_a_server_that_died_idle_is_back_for_the_next_call(mcp: World) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    await mcp.strings.kill()
    await mcp.strings.started(2)
    assert (await provider.invoke(ECHO, {"text": "again"}, call_context())).value == "again"


async def test_a_server_that_dies_in_a_call_leaves_it_in_doubt_and_is_started_again(mcp: World) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    calls = [asyncio.create_task(provider.invoke("mcp.puppet.hang", {}, call_context())) for _ in range(5)]
    await mcp.strings.heard("tools/call", 5)
    await mcp.strings.kill()
    for error in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(error, ProviderError)
        assert error.cause is Code.ConnectionError
        assert "SIGKILL" in str(error)
    assert (await provider.invoke(ECHO, {"text": "x"}, call_context())).value == "x"
    assert mcp.strings.times("tools/call") == 6, "nothing is sent twice"


async def test_what_a_server_said_before_it_ended_counts(mcp: World) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    for number in range(1, 8):
        assert (await provider.invoke("mcp.puppet.last", {}, call_context())).value == "last words"
        await mcp.strings.started(number + 1)
        await provider.status()
        mcp.clock.advance(supervisor.STABLE_S)


@pytest.mark.parametrize("fd", [0, 1])
async def test_a_server_that_closes_a_pipe_is_of_no_use(mcp: World, fd: int) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    first = await mcp.strings.started()
    mcp.strings.order(close=fd)
    await mcp.strings.started(2)
    assert (await provider.invoke(ECHO, {"text": "x"}, call_context())).value == "x"
    assert not alive(first["pid"])


async def test_a_crash_loop_is_parked_and_tried_again_after_a_while(mcp: World) -> None:
    told: list[str] = []
    provider = mcp.provider(plan={"orders": [{"stderr": "no database"}, {"exit": 7}]})
    provider.watch(lambda: told.append("changed"))
    with pytest.raises(ProviderError, match="exit code 7; it last wrote: no database") as caught:
        await provider.list_tools()
    assert caught.value.cause is Code.SpawnFailed
    for failures in range(1, supervisor.PARK_AFTER):
        await mcp.clock.until_asleep()
        if failures > supervisor.PATIENT:
            with pytest.raises(ProviderError, match="no database"):
                await provider.list_tools()
        mcp.clock.advance(supervisor._LONGEST_REST_S)
    await mcp.clock.until_asleep()
    outage = provider.outage()
    assert outage is not None
    assert "no database" in outage.reason
    with pytest.raises(ProviderError, match="no database"):
        await provider.list_tools()
    assert told == [], "who was told it is down is not asked to look again before"
    mcp.clock.advance(supervisor.PARK_S)
    watched = asyncio.Event()
    provider.watch(watched.set)
    await watched.wait()
    with pytest.raises(ProviderError, match="no database"):
        await provider.list_tools()
    await mcp.clock.until_asleep()


async def test_a_server_that_never_lists_its_tools_is_logged_at_its_time_and_recovers(
    mcp: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("remit.providers.mcp.provider.LIST_S", 20)
    monkeypatch.setattr("remit.providers.mcp.connection.LIST_S", 0.2)
    provider = mcp.provider(plan={"mute": ["tools/list"]})
    with pytest.raises(ProviderError, match=r"no answer to tools/list within 0\.2 s") as caught:
        await provider.list_tools()
    assert caught.value.cause is Code.Timeout
    assert caplog.text.count("mcp.list_tools.failed server=puppet") == 1
    outage = provider.outage()
    assert outage is not None
    assert outage.cause is Code.Timeout
    assert "mcp.spawn.failed" not in caplog.text
    monkeypatch.setattr("remit.providers.mcp.connection.LIST_S", 20)
    await mcp.clock.until_asleep()
    mcp.clock.advance(supervisor._LONGEST_REST_S)
    await mcp.strings.started(2)
    mcp.strings.order(unmute="tools/list")
    assert len(await provider.list_tools()) == len(TOOLS)
    assert provider.outage() is None


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_without_tools_is_up_and_offers_none(mcp: World, era: str) -> None:
    provider = mcp.provider(plan={"toolless": True, "eras": [era]})
    assert await provider.list_tools() == []
    assert (await provider.status()).tools == 0


async def test_a_server_that_takes_longer_to_connect_than_a_listing_waits_is_logged_and_recovers(
    mcp: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("remit.providers.mcp.provider.LIST_S", 0.2)
    provider = mcp.provider(plan={"mute": ["initialize"], "eras": ["legacy"]})
    with pytest.raises(ProviderError, match=r"no list of its tools within 0\.2 s") as caught:
        await provider.list_tools()
    assert caught.value.cause is Code.Timeout
    assert "mcp.list_tools.failed server=puppet" in caplog.text
    monkeypatch.setattr("remit.providers.mcp.provider.LIST_S", 20)
    await mcp.strings.heard("initialize")
    mcp.strings.order(unmute="initialize")
    assert len(await provider.list_tools()) == len(TOOLS)


async def test_callers_during_the_last_attempt_do_not_keep_a_server_from_being_parked(
    mcp: World, caplog: pytest.LogCaptureFixture
) -> None:
    provider = mcp.provider(plan={"orders": [{"exit": 7}]})
    for _ in range(supervisor.PARK_AFTER):
        calls = [asyncio.create_task(provider.status()) for _ in range(3)]
        await mcp.clock.until_asleep()
        await asyncio.gather(*calls, return_exceptions=True)
        mcp.clock.advance(supervisor._LONGEST_REST_S)
    await mcp.clock.until_asleep()
    assert "mcp.server.parked" in caplog.text
    assert caplog.text.count("mcp.spawn.failed") == 1, "the same reason is told once"
    assert "mcp.list_tools.failed" not in caplog.text


async def test_a_server_that_starts_slowly_and_dies_at_once_is_a_crash_loop_too(mcp: World) -> None:
    """What counts is how long it was up, not how long it took to come up."""
    provider = mcp.provider(plan={"mute": ["tools/list"]})
    listing = asyncio.create_task(provider.list_tools())
    await mcp.strings.heard("tools/list")
    mcp.clock.advance(10 * supervisor.STABLE_S)
    mcp.strings.order(unmute="tools/list")
    await listing
    await mcp.strings.kill()
    await mcp.clock.until_asleep()


async def test_the_stderr_of_a_server_that_cannot_start_is_shown_without_its_secrets(mcp: World) -> None:
    provider = mcp.provider(plan={"orders": [{"stderr": "boom API_KEY=sk-live-12345678901234567890"}, {"exit": 1}]})
    with pytest.raises(ProviderError) as caught:
        await provider.list_tools()
    assert "boom" in str(caught.value)
    assert "12345678901234567890" not in str(caught.value)


async def test_a_secret_that_a_server_was_given_is_not_shown_wherever_it_prints_it(
    mcp: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "plain words")
    said = {"stderr": "cannot log in as ann with plain words"}
    entry = {"env": {"SERVICE_TOKEN": "${MY_TOKEN}", "SERVICE_USER": "ann"}}
    provider = mcp.provider(mcp.server({"orders": [said, {"exit": 1}]}, **entry))
    with pytest.raises(ProviderError, match=r"cannot log in as ann with \*{8}"):
        await provider.list_tools()


async def test_a_program_that_is_not_there_is_named(mcp: World) -> None:
    provider = mcp.provider(mcp.server(command=("/nowhere/at-all", "--token", "hunter2")))
    with pytest.raises(ProviderError, match=r"cannot be started: No such file or directory: .*at-all") as caught:
        await provider.list_tools()
    assert caught.value.cause is Code.SpawnFailed
    assert "hunter2" not in str(caught.value)


async def test_a_folder_that_is_not_there_is_named(mcp: World, tmp_path: Path) -> None:
    provider = mcp.provider(mcp.server(cwd=str(tmp_path / "gone")))
    with pytest.raises(ProviderError, match=r"its folder .*gone"):
        await provider.list_tools()


async def test_a_variable_that_is_not_set_fails_that_server_alone(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    lacking = mcp.provider(mcp.server(name="lacking", env={"TOKEN": "${NOT_SET_ANYWHERE}"}))
    fine = mcp.provider()
    with pytest.raises(ProviderError, match="NOT_SET_ANYWHERE"):
        await lacking.list_tools()
    assert await fine.list_tools()


async def test_a_server_sees_little_of_our_environment_and_what_is_given(
    mcp: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("MINE", "taken")
    await mcp.provider(mcp.server(cwd=str(tmp_path), env={"GIVEN": "x-${MINE}"})).list_tools()
    started = (await mcp.strings.started())["started"]
    assert started["env"]["GIVEN"] == "x-taken"
    assert started["env"]["PATH"] == os.environ["PATH"]
    assert not {"AWS_SECRET_ACCESS_KEY", "MINE"} & set(started["env"])
    assert started["cwd"] == str(tmp_path)


# --- the end


async def test_a_server_that_ends_with_its_stdin_gets_no_signal_but_the_last(
    mcp: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[signal.Signals] = []
    kill = ChildProcess.send_signal

    def counted(child: ChildProcess, how: signal.Signals) -> None:
        signals.append(how)
        kill(child, how)

    monkeypatch.setattr(ChildProcess, "send_signal", counted)
    provider = mcp.provider(grace_ms=20_000)  # however slowly this machine lets it end
    await provider.list_tools()
    await provider.close()
    await provider.close()
    assert set(signals) == {signal.SIGKILL}, "only what it left behind is killed"
    assert not alive((await mcp.strings.started())["pid"])


async def test_a_server_that_will_not_end_is_told_and_then_killed(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[signal.Signals] = []
    kill = ChildProcess.send_signal

    def counted(child: ChildProcess, how: signal.Signals) -> None:
        signals.append(how)
        kill(child, how)

    monkeypatch.setattr(ChildProcess, "send_signal", counted)
    provider = mcp.provider(plan={"stays": True, "orders": [{"ignore": 1}]}, grace_ms=100)
    await provider.list_tools()
    await asyncio.gather(provider.close(), provider.close())
    assert signals[:2] == [signal.SIGTERM, signal.SIGKILL]
    assert not alive((await mcp.strings.started())["pid"])


@pytest.mark.parametrize("end", ["close", "exit", "kill"])
@pytest.mark.parametrize("sessions", [1, 2], ids=["in its group", "in a session of its own"])  # s10/W11, W12
async def test_what_a_server_started_ends_with_it(mcp: World, end: str, sessions: int) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    mcp.strings.order(child=sessions)
    child = (await mcp.strings.report(lambda each: "child" in each))["child"]
    assert alive(child)
    if end == "close":
        await provider.close()
    elif end == "exit":
        mcp.strings.order(exit=0)
        await mcp.strings.started(2)
    else:
        await mcp.strings.kill()
        await mcp.strings.started(2)
    await ended(child)


async def ended(pid: int) -> None:
    """Wait for the end of a process that is not our child, by what the kernel tells."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def test_who_waits_for_a_server_that_is_closed_hears_so(mcp: World) -> None:
    provider = mcp.provider(plan={"mute": ["initialize"]})
    waiting = asyncio.create_task(provider.list_tools())
    await mcp.strings.heard("initialize")
    await provider.close()
    with pytest.raises(ProviderError) as caught:
        await waiting
    assert caught.value.cause is Code.ProviderClosed


async def test_who_closes_may_be_cancelled_and_the_server_ends_all_the_same(mcp: World) -> None:
    provider = mcp.provider(plan={"stays": True, "orders": [{"ignore": 1}]}, grace_ms=100)
    await provider.list_tools()
    closing = asyncio.create_task(provider.close())
    await mcp.strings.report(lambda each: "eof" in each)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled(), "a cancellation is not swallowed"
    await provider.close()
    assert not alive((await mcp.strings.started())["pid"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
async def test_fifty_lives_leave_nothing(mcp: World) -> None:
    provider = mcp.provider()
    await provider.list_tools()
    await provider.close()
    before, tasks = descriptors(), len(asyncio.all_tasks())
    pids = []
    for number in range(2, 52):
        again = mcp.provider()
        await again.list_tools()
        pids.append((await mcp.strings.started(number))["pid"])
        if number % 2:
            await mcp.strings.kill(number)
        await again.close()
    assert not any(map(alive, pids))
    await mcp.strings.idle()
    assert descriptors() <= before
    assert len(asyncio.all_tasks()) <= tasks
