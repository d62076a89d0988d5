"""Commands and requests on shards, one of which is down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remit import Remit, ids
from remit.cli import job_worker
from remit.clock import SystemClock
from remit.jobs.state import stream_of
from remit.journal.sharded import placement
from remit.journal.sharded.placement import shard_of
from remit_testing.journal.storage import job
from tests.api.conftest import Served
from tests.cli.conftest import Project, project
from tests.journal.sharded.conftest import Cluster

__all__ = ["project"]
DOWN = 1


def remit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "remit", *words]
    env = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, text=True)


async def test_the_command_lists_shards_and_says_which_is_down(cluster: Cluster, tmp_path: Path) -> None:
    async with cluster.storage.open(SystemClock()) as journal:
        for number in range(8):
            await job(journal, f"job/{number}")
    url = " ".join(cluster.urls)
    done = remit(tmp_path, "--journal", url, "journal", "shards", "--json")
    rows = json.loads(done.stdout)
    expected = [[shard_of(f"job/{number}", 4) for number in range(8)].count(shard) for shard in range(4)]
    assert (done.returncode, [row["state"] for row in rows]) == (0, ["up"] * 4)
    assert [row["streams"] for row in rows] == expected
    assert all(row["bytes"] > 0 and "remit@" not in row["place"] for row in rows)

    cluster.servers[DOWN].stop()
    done = remit(tmp_path, "--journal", url, "journal", "shards", "--json")
    assert (done.returncode, [row["state"] for row in json.loads(done.stdout)]) == (1, ["up", "down", "up", "up"])
    listed = remit(tmp_path, "--journal", url, "jobs")
    assert listed.returncode == 0
    assert f"shard {DOWN} of the journal is down" in listed.stderr


@pytest.mark.slow
def test_a_journal_without_shards_has_none_to_list(tmp_path: Path) -> None:
    done = remit(tmp_path, "--journal", str(tmp_path / "journal.db"), "journal", "shards")
    assert (done.returncode, "has no shards" in done.stderr) == (2, True)
    urls = "postgresql://one/a postgresql://two/a"
    done = remit(tmp_path, "journal", "copy", urls, "postgresql://three/a")
    assert (done.returncode, "not copied as one" in done.stderr) == (2, True)


async def test_answers_of_the_api_say_that_a_shard_is_missing(cluster: Cluster, served: Served) -> None:
    async with Remit(journal=" ".join(cluster.urls), work=False) as opened, served(opened) as client:
        whole = await client.ask("GET", "/v1/jobs")
        assert (whole.status, "x-journal-missing" in whole.headers) == (200, False)
        cluster.servers[DOWN].stop()
        await client.ask("GET", "/v1/jobs")
        partial = await client.ask("GET", "/v1/jobs")
        assert (partial.status, partial.headers["x-journal-missing"]) == (200, f"shard {DOWN}")


@pytest.mark.parametrize(
    "words",
    [("run", "greet", "--name", "ann"), ("run", "greet", "--name", "ann", "--detach"), ("conversation", "import", "-")],
)
def test_a_new_job_of_a_command_begins_where_a_shard_answers(
    words: tuple[str, ...], cluster: Cluster, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first name that is drawn is on the shard that is down, which nobody has asked yet."""
    project.env["REMIT_JOURNAL"] = " ".join(cluster.urls)
    assert project.here("journal", "shards").status == 0
    cluster.servers[DOWN].stop()
    new_id, drawn = ids.new_id, list[str]()

    def draw(prefix: str) -> str:
        name = new_id(prefix)
        while prefix == "job" and not drawn and shard_of(stream_of(name), 4) != DOWN:
            name = new_id(prefix)
        drawn.extend([name] if prefix == "job" else [])
        return name

    for module in (ids, placement, job_worker):
        monkeypatch.setattr(module, "new_id", draw)
    done = project.here(*words, "--json", stdin='[{"role": "user", "content": "hi"}]')
    assert (done.status, shard_of(stream_of(drawn[0]), 4)) == (0, DOWN), done.err
    assert shard_of(stream_of(done.json["job"]), 4) != DOWN


@pytest.mark.parametrize("place", ["", "shard.db", ":memory:", "postgresql://one/a postgresql://two/a"])
def test_a_shard_moves_to_one_place_in_postgresql(place: str, tmp_path: Path) -> None:
    urls = "postgresql://one/a postgresql://two/a"
    done = remit(tmp_path, "--journal", urls, "journal", "move", "1", place)
    assert (done.returncode, "the one place of a shard" in done.stderr) == (2, True), done.stderr
