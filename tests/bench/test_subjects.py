"""Every measurement measures what it says; how long anything takes is asserted nowhere."""

from __future__ import annotations

import json
import random
from pathlib import Path

import apsw
import pytest

from bench import agents, first_token, floors, follow, lab, memory, postgres, scale, size, slow, steps, work
from bench.disk import inserted
from bench.flushes import flushed, slow_disk
from bench.lab import ROOT, Lab, heard
from bench.listened import listened
from bench.measure import PeerMissingError, Watch
from bench.peers.postgres import database
from bench.policy import RULES, thirty_rules
from bench.subject import nothing, reads, remit_in, writes
from remit.journal.event import HeadQuery

pytestmark = pytest.mark.slow


async def test_the_floors_write_what_they_count(tmp_path: Path) -> None:
    assert (await floors.one_transaction_each(tmp_path, 8, "FULL")).value > 0
    assert (await floors.grouped(tmp_path, 8, 4)).value > 0


async def test_the_subjects_run(tmp_path: Path) -> None:
    async with remit_in(tmp_path) as remit:
        assert await remit.run(reads(2)) == 2
        assert await remit.run(writes(2)) == 2
        assert await remit.run(nothing()) is None  # type: ignore[func-returns-value]


async def test_the_disk_is_under_everything_opened_meanwhile_and_counts_flushes(tmp_path: Path) -> None:
    before = apsw.vfs_names()
    flushes = []
    for rows in (8, 16):
        with inserted() as disk:
            await floors.one_transaction_each(tmp_path, rows, "FULL")
        flushes.append(disk.flushes)
    few, many = flushes
    assert many - few == 16 - 8
    assert apsw.vfs_names() == before


async def test_a_slow_disk_makes_every_flush_last(tmp_path: Path) -> None:
    try:
        reading = await slow.rate_on(tmp_path, "floor", 20_000, 5)
    except PeerMissingError as why:
        pytest.skip(str(why))
    # Each of the five commits flushes, and waits for no less than that long.
    assert 0 < reading.value <= 1e6 / 20_000


async def test_what_cannot_be_slowed_down_here_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (result,) = await slow_disk(Lab(tmp_path))
    assert result.note.startswith("skipped: ")
    assert result.met is None


async def test_a_side_effecting_step_is_one_flush(tmp_path: Path) -> None:
    (result,) = await flushed(Lab(tmp_path))
    assert (result.value, result.met) == (1, True)


async def test_a_follower_in_another_process_sees_every_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "EVENTS", 3)
    waits = await follow._followed(str(tmp_path / "journal.db"))
    assert len(waits) == 3
    assert min(waits) > 0


async def test_following_on_postgresql_and_its_floor_see_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "EVENTS", 3)
    with database() as found:
        for waits in (await follow._followed(found.url), await listened(found.url, 3, 0.01)):
            assert len(waits) == 3
            assert min(waits) > 0


async def test_many_jobs_run_on_postgresql_and_the_server_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "JOBS", 2)
    with database() as found:
        before = found.server.cpu()
        async with remit_in(tmp_path, flags={"journal.url": found.url}) as remit:
            assert (await steps.at_once(remit, Watch(found.server.cpu))).value > 0
        assert (await postgres.grouped(found, 8, 4)).value > 0
        assert found.server.cpu() > before


async def test_the_filled_journal_can_be_appended_to_claimed_from_and_listed(tmp_path: Path) -> None:
    chance = random.Random(5)
    async with scale.filled(tmp_path / "journal.db", 200) as journal:
        assert len(await journal.heads(HeadQuery(limit=1_000))) == 200
        assert len(await journal.read("job/job_" + "0" * 26)) == scale.EVENTS
        for one in (scale.appended, scale.claimed, scale.listed):
            assert (await one(journal, 200, chance)).value > 0
        # What was claimed is due again.
        assert (await scale.claimed(journal, 200, chance)).value > 0
        assert await journal.leases("job") == []


async def test_the_disk_floor_is_what_the_events_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "STEPS", 20)
    used, said = await size._written(tmp_path)
    assert 20 * 100 < said < used


async def test_memory_is_measured_over_the_work(tmp_path: Path) -> None:
    assert memory.resident() > 1_000_000
    async with remit_in(tmp_path, recipes=[memory.noted]) as remit:
        await memory.steps(remit, 10)
        assert len(memory._noted) == 2


def test_thirty_rules_are_thirty() -> None:
    assert len(thirty_rules().rules) == RULES == 30


def test_a_peers_program_is_heard_through_what_libraries_print() -> None:
    said = heard(b'warning\n{"rate": 10.5, "cpu_us": 3}\nbye\n')
    assert said is not None
    assert (said.rate, said.cpu_us, said.missing) == (10.5, 3, "")
    assert heard(b"Traceback\n") is None


async def test_peers_are_only_measured_where_asked_for_and_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Lab(tmp_path).rivals("sequential") == []
    monkeypatch.setattr(lab, "_PYTHON", tmp_path / "none")
    peers = Lab(tmp_path, peers=True).rivals("sequential")
    assert [peer.name for peer in peers] == [lab.LANGGRAPH, lab.DBOS_SQLITE, lab.DBOS_POSTGRES, lab.RESTATE]
    with pytest.raises(PeerMissingError, match="make bench PEERS=1"):
        await peers[0].sample()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('echo \'{"missing": "no server"}\'', "^no server$"),
        ("echo some; echo trouble >&2; exit 3", "ended with 3: trouble$"),
    ],
)
async def test_a_peer_that_cannot_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, message: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n", encoding="ascii")
    python.chmod(0o755)
    monkeypatch.setattr(lab, "_PYTHON", python)
    with pytest.raises(PeerMissingError, match=message):
        await Lab(tmp_path, peers=True).rivals("sequential")[0].sample()


def test_every_peer_has_its_program() -> None:
    assert [name for name in lab._PROGRAMS.values() if not (ROOT / f"bench/peers/{name}.py").exists()] == []


def test_the_lock_of_the_peers_server_pins_by_digest_and_names_no_registry() -> None:
    lock = json.loads((ROOT / "bench/peers/package-lock.json").read_text(encoding="utf-8"))
    packages = [package for name, package in lock["packages"].items() if name]
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert not any("resolved" in package for package in packages)


async def test_agents_take_the_turns_that_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TURNS", 2), ("MANY", 4), ("AGENTS", 2), ("EACH", 2)):
        monkeypatch.setattr(agents, name, value)
    here = Lab(tmp_path)
    results = [
        *await agents.turns_three_calls(here),
        *await agents.turns_one_call(here),
        *await agents.agents_at_once(here),
        *await agents.journal_of_turns(here),
    ]
    assert [result.name for result in results] == [
        "agent turn with 3 tool calls",
        "agent turn with 1 tool call",
        "64 agents, turns with 3 tool calls",
        "journal, agent turn of 1,000",
    ]
    assert all(result.value for result in results)


async def test_an_empty_run_takes_longer_than_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "RUNS", 1)
    (found,) = await work.empty_run(Lab(tmp_path))
    assert found.mark == "≤ 150 ms"


async def test_conversations_are_parked_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BATCH", 2)
    assert isinstance(await memory._main("conversations", 2, tmp_path), float)


async def test_the_first_pieces_of_agents_that_stream_at_once_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_token, "AGENTS", 2)
    monkeypatch.setattr(first_token, "EACH", 2)
    monkeypatch.setattr(first_token, "TOKENS", 2)
    monkeypatch.setattr(first_token, "ROUNDS", 1)
    (found,) = await first_token.first_token_of_64(Lab(tmp_path))
    assert found.floor is not None
    assert min(found.value, found.floor) > 0
