"""AEL with a recorder: its checkpoints are heartbeats, and what none of them covers claims none."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, SECOND
from remit.parts.audit.formats import catalog
from remit.parts.audit.formats.account import Bundle, ExportAccount
from remit.parts.audit.sessions import beat_of
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit
from tests.parts.audit.formats.errands import account_of, key_in, ran, recorder_of, remit_of

CHECKER = os.environ.get("REMIT_TEST_AELCHECK", "")
"""The reference checker of AEL, to run over what is written."""


async def exported(remit_in: OpenRemit, folder: Path, job: str) -> Path:
    """The artifact of a job, and the key beside it in `keys`."""
    place, whole = folder / "one.ael.zip", BytesIO()
    async with remit_of(remit_in, folder, work=False, flags={"audit.key": str(key_in(folder))}) as remit:
        await remit.service.audit.package(job, whole, form="ael")
        (folder / "keys").mkdir(exist_ok=True)
        for name, data in (await remit.service.audit.published()).items():
            (folder / "keys" / name).write_bytes(data)
    place.write_bytes(whole.getvalue())
    return place


def runs(place: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each run."""
    bundle = Bundle(place)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(bundle.read("manifest.json"))["recorders"]:
        lines = bundle.read(row["file"]).splitlines()
        found[row["run"]] = [json.loads(base64.urlsafe_b64decode(line.partition(b".")[0] + b"===")) for line in lines]
    return found


async def test_checkpoints_of_a_session_are_the_heartbeats_of_its_runs(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await ran(remit_in, tmp_path, recorded=True)
    place = await exported(remit_in, tmp_path, job)
    found = runs(place)
    assert [*found] == ["recorder/1:decisions", "recorder/1:events"]
    for records in found.values():
        kinds = [row["type"] for row in records]
        assert (kinds[0], kinds[-1], records[0]["hmax"]) == ("open", "close", 60)
        assert kinds.count("heartbeat") >= 3
        assert all(row["ext"]["remit"]["signature"] for row in records if row["type"] == "heartbeat")
    answer = catalog.check(place, tmp_path / "keys")
    assert answer is not None
    assert (answer.verdict, answer.code) == ("valid", None)


async def test_what_was_recorded_before_or_after_the_recorder_claims_no_heartbeat(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    job = await ran(remit_in, tmp_path)
    async with remit_of(remit_in, tmp_path, work=False) as remit:
        recorder = recorder_of(remit, tmp_path)
        await recorder.look(at_once=True)
        await recorder.cover()
        await recorder.end()
    found = runs(await exported(remit_in, tmp_path, job))
    assert [*found] == [f"job/{job}:decisions", f"job/{job}:events"]
    assert {records[0]["hmax"] for records in found.values()} == {0}


async def test_a_session_that_goes_on_has_no_close(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_of(remit_in, tmp_path, work=False) as remit:
        recorder = recorder_of(remit, tmp_path)
        await recorder.look(at_once=True)
        job = await ran(remit_in, tmp_path)
        await recorder.look(at_once=True)
        found = runs(await exported(remit_in, tmp_path, job))
    assert {name: records[-1]["type"] for name, records in found.items()} == {
        "recorder/1:decisions": "heartbeat",
        "recorder/1:events": "heartbeat",
    }


async def test_each_event_stands_in_one_run_only(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await ran(remit_in, tmp_path, recorded=True)
    account: ExportAccount = await account_of(remit_in, tmp_path, job)
    rows = [row for records in runs(await exported(remit_in, tmp_path, job)).values() for row in records]
    places = [(row["ext"]["remit"]["stream"], row["ext"]["remit"]["seq"]) for row in rows if row["type"] == "activity"]
    assert sorted(places) == sorted((entry.stream, entry.seq) for entry in account.entries)


@pytest.mark.skipif(not CHECKER, reason="REMIT_TEST_AELCHECK names no checker")
@pytest.mark.parametrize(("recorded", "level"), [(False, "AEL-0"), (True, "AEL-1")])
async def test_the_reference_checker_grants_what_the_page_says(
    remit_in: OpenRemit, tmp_path: Path, recorded: bool, level: str
) -> None:
    place = await exported(remit_in, tmp_path, await ran(remit_in, tmp_path, recorded=recorded))
    folder, bundle = tmp_path / "artifact", Bundle(place)
    for name in bundle.names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bundle.read(name))
    command = [CHECKER, "--keys", str(tmp_path / "keys"), str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: ASYNC221 - alone here
    assert f":decisions: {level} +R" in said, said
    assert f":events: {level} R-pending" in said, said


async def test_what_came_before_the_end_of_a_session_is_signed_in_it(remit_in: OpenRemit, tmp_path: Path) -> None:
    clock = ManualClock()
    async with remit_of(remit_in, tmp_path, work=False, clock=clock) as remit:
        recorder, journal = recorder_of(remit, tmp_path), remit.runtime.journal
        await recorder.look()
        opened = await remit.service.sessions.open("mcp", principal="ann")
        clock.advance(DAY / SECOND)
        assert await recorder.look()
        *_, checkpoint, closed = await journal.read("recorder/1")
        assert (checkpoint.kind, closed.kind) == ("recorder_checkpoint", "recorder_closed")
        assert f"session/{opened}" in (await beat_of(journal, checkpoint)).ends
        await recorder.look()
        assert await journal.head("recorder/2") is not None
