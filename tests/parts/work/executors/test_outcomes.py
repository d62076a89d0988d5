"""The table in docs/work.md follows from what the agents say: each in its own words, without a process."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from msgspec.structs import replace

from remit.parts.work.executors.adapter import SeenFacts, judge
from remit.parts.work.executors.cli import EventLines
from remit.parts.work.executors.port import AgentTurn, ProgramEnding
from remit.parts.work.executors.rows import CLIS
from remit.parts.work.order import WorkOrder
from remit.parts.work.result import Test
from tests.parts.work.executors import fake_agent
from tests.parts.work.executors.outcomes import CASES, cell, written

ORDER: Final = WorkOrder(issue_ref="local#1", run_id="2026-02-14-work-0001", role="work", repo_dir="/x")


class Played(NamedTuple):
    """How an agent ends a scene."""

    what: str = ""
    """What it says last; empty: nothing that ends a turn."""
    exit_code: int = 0
    timed_out: bool = False
    edited: bool = False


DONE: Final = Played("done", edited=True)
FAILED: Final = Played("failed", 1)
ENDLESS: Final = Played(exit_code=143, timed_out=True)
PLAYED: Final = {
    "edit": DONE,
    "lie": Played("done"),
    "denied": DONE,
    "cut": FAILED,
    "401": FAILED,
    "500": ENDLESS,
    "hang": ENDLESS,
    "sleep": ENDLESS,
    "setsid": DONE,
}
"""What most of them do."""
OWN: Final = {
    ("cut", "opencode"): ENDLESS,
    ("cut", "aider"): ENDLESS,
    ("401", "claude"): ENDLESS,
    ("401", "aider"): Played("failed"),
    ("500", "codex"): FAILED,
}
"""What single ones do."""


def said(agent: str, what: str, monkeypatch: pytest.MonkeyPatch, pieces: int = 1_000) -> AgentTurn:
    """Return the turn of an agent that says this, in pieces of some bytes."""
    lines: list[str] = []
    monkeypatch.setattr(fake_agent, "write", lambda line: lines.append(f"{line}\n"))
    for word in ("begin", *([what] if what else [])):
        fake_agent.AGENTS[agent](word, "HTTP 500")
    shown: list[bytes] = []
    events = EventLines(CLIS[agent], lambda _, data: shown.append(data))
    data = "".join(lines).encode()
    for start in range(0, len(data), pieces):
        events("stdout", data[start : start + pieces])
    turn = events.turn("governed")
    assert b"I look." in b"".join(shown)
    return turn


@pytest.mark.parametrize(("scene", "agent"), CASES)
def test_what_an_agent_says_is_judged_as_the_page_says(scene: str, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = OWN.get((scene, agent), PLAYED[scene])
    turn = replace(said(agent, played.what, monkeypatch), denied=int(scene == "denied"))
    ending = ProgramEnding(
        program=agent,
        args=(),
        timeout=9,
        started=1,
        finished=2,
        exit_code=played.exit_code,
        timed_out=played.timed_out,
        turn=turn,
    )
    tests = () if played.timed_out else (Test(command="t", result="pass" if played.edited else "fail"),)
    facts = SeenFacts(ending, "aaa", "bbb" if played.edited else "aaa", commits=True, tests=tests)
    assert cell(judge(ORDER, facts)) == written()[scene, agent]


@pytest.mark.parametrize("pieces", [1, 7, 1_000])
@pytest.mark.parametrize("agent", CLIS)
def test_a_turn_is_read_whatever_the_pieces_it_comes_in(
    agent: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = said(agent, "done", monkeypatch, pieces)
    assert (turn.terminal, turn.fault, turn.denied) == (True, "", 0)
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (60, 42)
    assert turn.session == ("" if agent == "aider" else "s-1")


@pytest.mark.parametrize("agent", CLIS)
def test_what_does_not_end_a_turn_is_no_end_of_one(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not said(agent, "", monkeypatch).terminal
    assert said(agent, "failed", monkeypatch).fault


@pytest.mark.parametrize("agent", ["claude", "gemini", "opencode"])
def test_a_call_that_the_agent_refused_itself_counts(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(agent, "denied", monkeypatch).denied == 1


def test_that_claude_asks_again_is_shown_and_ends_nothing() -> None:
    shown: list[bytes] = []
    events = EventLines(CLIS["claude"], lambda _, data: shown.append(data))
    events("stdout", b'{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"}\n')
    assert shown == [b"asks its model again: 401 authentication_failed\n"]
    assert not events.turn("free").terminal


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"null",
        b'{"type": []}',
        b'{"type": "result", "status": "success", "usage": 3, "permission_denials": null}',
        b'{"type": "assistant", "message": {"content": [1, {"type": "text"}]}}',
        b'{"type": "step_finish", "part": {"tokens": "many"}}',
        b"\xff" * 100,
        b'{"type": "' + b"x" * 5_000_000 + b'"}',
        b"[" * 200_000,
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
@pytest.mark.parametrize("agent", CLIS)
def test_a_line_that_is_no_event_of_it_ends_nothing(agent: str, line: bytes) -> None:
    events = EventLines(CLIS[agent], lambda _stream, _data: None)
    events("stdout", line + b"\n")
    turn = events.turn("free")
    assert not turn.fault
    assert (turn.usage.input_tokens, turn.denied) == (0, 0)
