"""Agents that speak the Agent Client Protocol: what is taken of them, what they may do, and that nothing is left."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from remit.clock import SystemClock
from remit.errors import ProviderError, UsageError
from remit.parts.work.executors import acp, program
from remit.parts.work.executors.acp import AcpConversation, AcpExecutor, Words
from remit.parts.work.executors.adapter import Adapter, RunPlaces
from remit.parts.work.executors.port import ProgramEnding
from remit.parts.work.executors.worktree import Beginning, Worktree
from remit.parts.work.order import Command, Constraints
from remit.parts.work.pack import Contents, ContextPack
from remit.parts.work.result import WorkResult
from remit.parts.work.workflow import ExecutorTable
from remit.tools.door import DoorOutcome
from tests.parts.work.executors.repository import RUN, git, make_repository, order_in, site_in
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

AGENT: Final = Path(__file__).with_name("acp_agent.py")
MENDED: Final = Constraints(commands=(Command(args=("grep", "-q", "mended", "clock.txt")),))


class Desk:
    """A gate that says yes or no to all, or leaves the question open."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.barred: list[str] = []
        self.waits = asyncio.Event()

    async def open(self, principal: str, client: str) -> str:
        assert (principal, client) == ("alice", "test")
        return "ses_1"

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> DoorOutcome:
        assert session == "ses_1"
        if tool != "acp.permit":
            self.barred.append(tool)
            return DoorOutcome(ok=False, code="UNKNOWN_TOOL")
        self.asked.append(args)
        if self.answer is None:
            self.waits.set()
            await asyncio.Event().wait()
        return DoorOutcome(bool(self.answer))

    async def decided(self, confirmation: str) -> bool:
        return bool(confirmation)


class Bench:
    """A repository, and a run of an agent there."""

    def __init__(self, tmp_path: Path) -> None:
        self.repository = make_repository(tmp_path / "repo")
        self.tree = tmp_path / "tree"
        self.root = tmp_path / "work"
        self.order = order_in(self.tree, MENDED)
        self.pack = ContextPack.of(self.root, self.order.issue, RUN)
        self.home = self.tree.with_name(f"{self.tree.name}.home")
        self.shown: list[bytes] = []

    async def run(self, mode: str, desk: Desk, *, timeout_s: int = 600, version: str = "1.0") -> WorkResult:
        """Run the agent on the repository."""
        command = (sys.executable, "-I", str(AGENT), mode, version)
        table = ExecutorTable(program=command[0], timeout_seconds=timeout_s)
        tree = Worktree.of(self.repository, self.tree, self.order.issue, RUN)
        places = RunPlaces(SystemClock(), "alice", show=lambda _, data: self.shown.append(data), door=desk)
        adapter = Adapter(self.order, AcpExecutor("test", command), table, tree, self.pack, places)
        return await adapter.run(Beginning("main"), Contents(), lambda _: None)

    @property
    def ending(self) -> ProgramEnding:
        """Return what was kept of the end."""
        return msgspec.json.decode(self.pack.audit() or b"", type=ProgramEnding)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(program, "_GRACE_S", 0.2)
    return Bench(tmp_path)


ENDS: Final = {
    "edit": ("ok", "", "ask"),
    "forgets": ("ok", "", "ask"),
    "reaches": ("ok", "", "ask"),
    "unasked": ("ok", "", "free"),
    "greedy": ("fail", "permission_denied", "ask"),
    "lie": ("fail", "test_failed", "ask"),
    "cut": ("fail", "outcome_unknown", "free"),
    "fail": ("fail", "", "free"),
    "long": ("fail", "", "free"),
    "locked": ("fail", "", "free"),
    "setsid": ("fail", "test_failed", "ask"),
}


@pytest.mark.parametrize(("mode", "status", "code", "works"), [(mode, *row) for mode, row in ENDS.items()], ids=ENDS)
async def test_what_is_proved_is_what_counts(bench: Bench, mode: str, status: str, code: str, works: str) -> None:
    result = await bench.run(mode, Desk(answer=True))
    turn = bench.ending.turn
    assert turn is not None
    assert (result.status, result.result_code, turn.mode) == (status, code, works), result.summary
    bench.pack.verify()


async def test_an_agent_asks_and_its_answer_is_bound_to_all_that_it_shows(bench: Bench) -> None:
    desk = Desk(answer=True)
    result = await bench.run("edit", desk)
    call = {"toolCallId": "t-1", "kind": "execute", "title": "echo mended > clock.txt"}
    shown = call | {"rawInput": {"command": call["title"]}}
    assert desk.asked == [{"issue_ref": "local#1", "run_id": RUN, "agent": "test", "tool_call": shown}]
    assert git(bench.repository, "show", f"{result.changes.commit}:clock.txt") == "mended"
    answers = (bench.home / "answers").read_text().splitlines()
    assert [json.loads(answer)["optionId"] for answer in answers] == ["once", "no"], (
        "the work, and the probe of refusal"
    )
    turn = bench.ending.turn
    assert turn is not None
    assert (turn.session, turn.version, turn.trace, turn.terminal) == ("s-1", "1.0", "ses_1", True)
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cost_usd) == (7, 3, 0.25)
    assert b"I am at it (edit)." in b"".join(bench.shown)
    assert b"session/request_permission" in (bench.pack.folder / "stdout.log").read_bytes()


async def test_what_a_person_denies_is_not_done_and_the_run_fails(bench: Bench) -> None:
    result = await bench.run("edit", Desk(answer=False))
    assert (result.status, result.result_code, result.changes.commit) == ("fail", "permission_denied", "")


async def test_a_run_that_ends_while_questions_wait_fails_and_asks_no_more_than_so_many(bench: Bench) -> None:
    desk = Desk(answer=None)
    result = await bench.run("hurries", desk)
    assert (result.status, result.result_code) == ("fail", "permission_denied")
    assert len([one for one in desk.asked if one["tool_call"]["title"].startswith("question")]) == 20


async def test_an_answer_is_never_for_always(bench: Bench) -> None:
    desk = Desk(answer=True)
    await bench.run("greedy", desk)
    assert desk.asked == []
    assert json.loads((bench.home / "answers").read_text().splitlines()[0])["optionId"] == "no"


async def test_files_and_terminals_of_ours_are_refused(bench: Bench) -> None:
    desk = Desk(answer=True)
    await bench.run("reaches", desk)
    assert desk.barred == ["fs/write_text_file", "terminal/create"]
    assert [answer["error"]["code"] for answer in json.loads((bench.home / "reached").read_text())] == [-32601, -32601]


async def test_a_version_is_tried_once(bench: Bench) -> None:
    await bench.run("edit", Desk(answer=True))
    (probe,) = (bench.root / "acp").iterdir()
    assert json.loads(probe.read_bytes()) == {"version": "1.0", "asks": True}
    assert probe.name == "test-1.0.json"
    (bench.root.parent / "other").mkdir()
    other = Bench(bench.root.parent / "other")
    other.root = bench.root
    other.pack = ContextPack.of(other.root, other.order.issue, f"{RUN[:-1]}2")
    other.home = other.tree.with_name(f"{other.tree.name}.home")
    await other.run("edit", Desk(answer=True))
    assert len((other.home / "answers").read_text().splitlines()) == 1
    assert not (other.pack.folder / "probe.stdout.log").exists()


async def test_a_result_that_lacks_its_status_is_asked_for_again(bench: Bench) -> None:
    result = await bench.run("forgets", Desk(answer=True))
    assert (result.status, result.summary) == ("ok", "Mended.")


@pytest.mark.parametrize("mode", ["hang", "endless"])
async def test_a_turn_that_does_not_end_is_ended(bench: Bench, mode: str) -> None:
    result = await bench.run(mode, Desk(answer=True), timeout_s=2)
    assert (result.status, result.result_code) == ("fail", "outcome_unknown")
    assert bench.ending.timed_out


async def test_a_run_that_is_stopped_while_its_question_is_open_leaves_nothing(bench: Bench) -> None:
    desk = Desk(answer=None)
    running = asyncio.create_task(bench.run("waits", desk))
    async with asyncio.timeout(PATIENCE_S):
        await desk.waits.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert b"session/request_permission" in (bench.pack.folder / "stdout.log").read_bytes()


async def test_the_time_that_a_person_takes_is_not_the_agents(bench: Bench) -> None:
    site = site_in(bench.repository, bench.tree, bench.home)
    talk = AcpConversation(site, acp._Refusals(), Words("", bench.tree))
    async with asyncio.timeout(PATIENCE_S) as deadline:
        talk._deadline, before = deadline, deadline.when()
        await talk._ask({"title": "wait"})
        assert (deadline.when() or 0) > (before or 0)


async def test_what_is_not_installed_and_what_nobody_can_answer_says_so(bench: Bench) -> None:
    with pytest.raises(UsageError, match="not installed"):
        AcpExecutor("test", ("no-such-agent",)).require({})
    with pytest.raises(ProviderError, match="gate"):
        await bench.run("edit", None)  # type: ignore[arg-type]
    assert acp.KNOWN["gemini"] == ("gemini", "--acp")
