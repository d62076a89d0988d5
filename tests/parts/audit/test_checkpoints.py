"""Packages bring the checkpoints along that a recorder signed, and nothing else passes for them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import canonical
from remit.clock import DAY
from remit.errors import ChainBrokenError
from remit.evidence import verify
from remit.evidence.merkle import Subtrees, Tree
from remit.evidence.note import WITNESS, Checkpoint, NoteKey, encoded
from remit.evidence.proofs import leaf_of
from remit.parts.audit.package import Reached, checkpoint_files
from remit.parts.recorder.keys import RecordSigner
from remit.parts.recorder.publisher import Publisher
from remit.parts.recorder.recorder import LogRecorder, RecorderTerms
from remit.parts.recorder.settings import RecorderSettings
from remit_testing.clock import ManualClock
from tests.evidence.test_verify import chained
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, bought, export, repacked
from tests.parts.recorder.test_stamps import OPENSSL, Served, authorities  # noqa: F401 - a fixture
from tests.parts.recorder.world import WitnessServer, signer

OWN = signer("log.example/agents", 7)
STRANGER = signer("log.example/agents", 8)


async def sign(remit_in: OpenRemit, folder: Path, by: RecordSigner = OWN, **places: Any) -> None:
    """Sign what is recorded, in a session of its own."""
    async with remit_in(**GIVEN, work=False) as remit:
        journal = remit.runtime.journal
        publisher = Publisher(journal, RecorderSettings(origin=by.key.name, **places), {}, folder)
        terms = RecorderTerms(origin=by.key.name, every_events=1_000, every_seconds=60, settings=b"{}")
        recorder = LogRecorder(journal, terms, [by], publisher)
        await recorder.look(at_once=True)
        await publisher.publish(last=True)
        assert publisher.failures == {}
        await recorder.end()


def rows(place: Path) -> Any:
    """What a package's checkpoints.json says."""
    with zipfile.ZipFile(place) as package:
        return json.loads(package.read("checkpoints.json"))


@pytest.mark.slow
async def test_a_package_shows_which_events_a_recorder_signed(remit_in: OpenRemit, tmp_path: Path) -> None:
    for _ in range(3):
        await bought(remit_in)
    await sign(remit_in, tmp_path)
    job = await bought(remit_in)
    await export(remit_in, job, tmp_path / "before.zip")
    assert "checkpoints.json" not in zipfile.ZipFile(tmp_path / "before.zip").namelist()
    await sign(remit_in, tmp_path)
    verdict = await export(remit_in, job, tmp_path / "one.zip")
    (log,) = verdict.checkpoints
    assert (verdict.state, log.keys, log.events) == ("whole", "named", verdict.events)
    (log,) = verify.check(str(tmp_path / "one.zip"), keys=[STRANGER.key, OWN.key]).checkpoints
    assert (log.keys, log.cosigned_at, log.stamps) == ("given", "", ())
    await bought(remit_in)
    await sign(remit_in, tmp_path)
    await export(remit_in, job, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


async def test_events_after_the_last_checkpoint_are_not_said_to_be_signed(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(**GIVEN) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
    await sign(remit_in, tmp_path)
    async with remit_in(**GIVEN) as remit:
        await remit.service.sessions.call(session, "desk.look", {"text": "a"})
    verdict = await export(remit_in, session, tmp_path / "one.zip")
    assert verdict.checkpoints[0].events == 1 < verdict.events
    assert verdict.state == "prefix"
    verdict = verify.check(str(tmp_path / "one.zip"), keys=[OWN.key])
    assert (verdict.state, verdict.reason) == ("undecidable", _PARTIAL)
    assert sum(there - signed for _, signed, there in verdict.uncovered) == verdict.events - 1
    await sign(remit_in, tmp_path)
    await export(remit_in, session, tmp_path / "two.zip")
    assert verify.check(str(tmp_path / "two.zip"), keys=[OWN.key]).state == "prefix"


@pytest.mark.slow
async def test_it_is_checked_with_python_alone(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    await export(remit_in, job, tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as package:
        package.extract("verify.py", tmp_path)
    for keys, status, words in (
        ([], 0, "leaves, not checked: give its key with --key"),
        (["--key", str(OWN.key)], 0, "signed by a key that you gave"),
        (["--key", str(STRANGER.key)], 1, "checkpoint_unproven"),
        (["--key", "x"], 64, "--key: it is not name+id+key"),
    ):
        command = [sys.executable, "-I", "-S", "verify.py", "one.zip", *keys]
        ended = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, check=False, text=True, cwd=tmp_path
        )
        assert (ended.returncode, words in ended.stdout + ended.stderr) == (status, True), ended


@pytest.mark.slow
async def test_a_witness_and_an_authority_say_when(
    remit_in: OpenRemit,
    tmp_path: Path,
    authorities: list[Served],  # noqa: F811 - a fixture
) -> None:
    clock, job = ManualClock(), await bought(remit_in)
    with WitnessServer.running(tmp_path, clock) as witness:
        witness.logs.append(OWN.key)
        places: dict[str, Any] = {
            "witness": witness.url,
            "witness_key": str(witness.signer.key),
            "stamp_url": authorities[0].url,
        }
        await sign(remit_in, tmp_path, **places)
        key = witness.signer.key
    await export(remit_in, job, tmp_path / "one.zip")
    (log,) = verify.check(str(tmp_path / "one.zip"), keys=[key]).checkpoints
    assert (log.keys, log.cosigned_at[:10], log.stamps) == ("given", "2026-01-01", ("stamps/1.tsr",))
    later = verify.check(str(tmp_path / "one.zip"), keys=[key, STRANGER.key])  # the recorder has another key now
    assert (later.state, later.checkpoints) == ("whole", (log,))
    unknown = verify.check(str(tmp_path / "one.zip"), keys=[STRANGER.key]).problem
    assert f"by {str(OWN.key).rpartition('+')[0]}" in unknown
    assert verify.check(str(tmp_path / "one.zip"), keys=[NoteKey(key.name, STRANGER.key.public, WITNESS)]).reason
    with zipfile.ZipFile(tmp_path / "one.zip") as package:
        package.extractall(tmp_path)
    command = [OPENSSL, *["ts", "-verify", "-in", "stamps/1.tsr", "-data", "stamps/1.checkpoint", "-CAfile"]]
    ended = await asyncio.to_thread(
        subprocess.run, [*command, authorities[0].authority.roots], cwd=tmp_path, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


# --- forgeries


def edited(change: Callable[[Any], None]) -> Callable[[Path, Path], None]:
    """A package whose checkpoints say something else."""

    def edit(data: bytes) -> bytes:
        said = json.loads(data)
        change(said[0])
        return canonical(said)

    return lambda source, target: repacked(source, target, {"checkpoints.json": edit})


def _without(source: Path, target: Path) -> None:
    """Leave the checkpoints out."""
    with zipfile.ZipFile(source) as package, zipfile.ZipFile(target, "w") as rest:
        for name in package.namelist():
            if name != "checkpoints.json":
                rest.writestr(name, package.read(name))

    def edit(data: bytes) -> bytes:
        manifest = json.loads(data)
        for rows in ("artifacts", "checks"):
            manifest[rows] = [row for row in manifest[rows] if "checkpoints.json" not in row.values()]
        return canonical(manifest)

    repacked(target, target, {"manifest.json": edit})


def _cut(source: Path, target: Path) -> None:
    """Leave out the last event of the job, which ended with it."""
    with zipfile.ZipFile(source) as package:
        lines = package.read("events.ndjson").splitlines(keepends=True)
        proof = json.loads(package.read("proof.json"))
    events = [json.loads(line) for line in lines]
    last = max(place for place, event in enumerate(events) if event["stream"].startswith("job/"))
    row = next(row for row in proof["streams"] if row["stream"] == events[last]["stream"])
    row |= {"events": row["events"] - 1, "hash": events[last - 1]["hash"]}
    repacked(
        source,
        target,
        {
            "events.ndjson": lambda _: b"".join(lines[:last] + lines[last + 1 :]),
            "proof.json": lambda _: canonical(proof),
        },
    )


def unsigned(source: Path, target: Path) -> None:
    """Leave out the leaf of the job's own stream, as a forger does after changing it."""
    edited(lambda log: log.update(leaves=[one for one in log["leaves"] if "/confirmation/" in one["stream"]]))(
        source, target
    )


def paid_another(source: Path, target: Path) -> None:
    """Change what a payment came to, chain its stream again, and leave its leaf out."""
    with zipfile.ZipFile(source) as package:
        events = chained("tool_invocation_finished", "result", "paid 500 to eve")(package.read("events.ndjson"))
        said = json.loads(package.read("proof.json"))
    ends = {event["stream"]: event["hash"] for event in map(json.loads, events.splitlines())}
    streams = [row | {"hash": ends[row["stream"]]} for row in said["streams"]]
    unsigned(source, target)
    changes = {"events.ndjson": lambda _: events, "proof.json": lambda _: canonical(said | {"streams": streams})}
    repacked(target, target, changes)


def signed_again(by: RecordSigner) -> Callable[[Path, Path], None]:
    """A package whose streams stand in a log that somebody made up for it."""

    def write(source: Path, target: Path) -> None:
        with zipfile.ZipFile(source) as package:
            ends = {row["stream"]: row["hash"] for row in json.loads(package.read("proof.json"))["streams"]}

        def change(log: Any) -> None:
            hashes = [leaf_of(canonical([one["stream"], one["seq"], ends[one["stream"]]])) for one in log["leaves"]]
            tree, subtrees = Tree().grown(hashes), Subtrees(Tree(), hashes)
            checkpoint = Checkpoint(by.key.name, tree.size, tree.root)
            log["checkpoints"] = [{"note": checkpoint.signed([by.line(checkpoint)])}]
            for index, leaf in enumerate(log["leaves"]):
                leaf |= {"index": index, "proof": [encoded(one) for one in subtrees.path(index, tree.size)]}

        edited(change)(source, target)

    return write


def note(change: Callable[[str], str]) -> Callable[[Path, Path], None]:
    """A package whose checkpoint has another text."""
    return edited(lambda log: log["checkpoints"][0].update(note=change(log["checkpoints"][0]["note"])))


_PARTIAL = "checkpoint_partial"
FORGERIES: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a payment to somebody else, its leaf left out": (paid_another, _PARTIAL),
    "a leaf left out": (unsigned, _PARTIAL),
    "left out": (_without, "checkpoint_unproven"),
    "a log of somebody else by the same name": (signed_again(STRANGER), "checkpoint_unproven"),
    "a log of somebody else": (signed_again(signer("log.example/other", 8)), "checkpoint_unproven"),
    "a stream that was cut": (_cut, "checkpoint_mismatch"),
    "another proof": (edited(lambda log: log["leaves"][0]["proof"].reverse()), "checkpoint_mismatch"),
    "no proof": (edited(lambda log: log["leaves"][0]["proof"].clear()), "checkpoint_mismatch"),
    "another place": (edited(lambda log: log["leaves"][0].update(index=0)), "checkpoint_mismatch"),
    "another event": (edited(lambda log: log["leaves"][0].update(seq=1)), "checkpoint_mismatch"),
    "a stream that is not there": (edited(lambda log: log["leaves"][0].update(stream="job/x")), "checkpoint_mismatch"),
    "no checkpoint": (edited(lambda log: log["checkpoints"].clear()), "form_invalid"),
    "another text": (note(lambda text: text.replace("agents", "agent2")), "checkpoint_unproven"),
    "a text after it": (note(lambda text: text + "x\n"), "form_invalid"),
    "a stamp that is not there": (edited(lambda log: log["checkpoints"][0].update(stamp="stamps/1")), "form_invalid"),
}


@pytest.mark.slow
async def test_no_forgery_passes_for_the_recorders_word(remit_in: OpenRemit, tmp_path: Path) -> None:
    for _ in range(2):
        await bought(remit_in)
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    good = tmp_path / "good.zip"
    await export(remit_in, job, good)
    assert verify.check(str(good), keys=[OWN.key]).state == "whole"
    for number, (name, (change, reason)) in enumerate(FORGERIES.items()):
        bad = tmp_path / f"{number}.zip"
        change(good, bad)
        verdict = verify.check(str(bad), keys=[OWN.key])
        state = "undecidable" if reason == _PARTIAL else "rejected"
        assert (verdict.state, verdict.reason) == (state, reason), (name, verdict.problem)
        assert verify.main([str(bad), "--key", str(OWN.key), "--decisions"]) == verify.STATUSES[state]


@pytest.mark.slow
async def test_checkpoints_of_another_journal_do_not_fit(remit_in: OpenRemit, tmp_path: Path) -> None:
    places = []
    for number in range(2):
        job = await bought(remit_in)
        await sign(remit_in, tmp_path, signer("log.example/agents", number + 1))
        places.append(tmp_path / f"{number}.zip")
        await export(remit_in, job, places[-1])
    with zipfile.ZipFile(places[1]) as package:
        other = package.read("checkpoints.json")
    repacked(places[0], tmp_path / "bad.zip", {"checkpoints.json": lambda _: other})
    assert verify.check(str(tmp_path / "bad.zip")).reason == "checkpoint_mismatch"


async def test_a_record_that_was_written_again_is_not_exported(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    await sign(remit_in, tmp_path)
    async with remit_in(**GIVEN, work=False) as remit:
        journal = remit.runtime.journal
        head = await journal.head(f"job/{job}")
        assert head is not None
        ends = {head.stream: Reached(head.seq, "0" * 64, head.updated_at)}
        with pytest.raises(ChainBrokenError, match="written again"):
            await checkpoint_files(journal, ends, {head.created_at // DAY})
