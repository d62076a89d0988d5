"""remit journal prune: what it says, and what it refuses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Project, project

__all__ = ["project"]


def aged(project: Project) -> str:
    """A job that ended long ago, as its head says."""
    job = project.job("report")
    with closing(sqlite3.connect(project.folder / ".remit/journal.db")) as db:
        db.execute("UPDATE heads SET updated_at = updated_at - 400 * 86400 * 1000000, created_at = created_at - 1")
        db.commit()
    return job


@pytest.mark.slow
def test_old_records_are_archived_and_pruned_and_every_command_says_so(project: Project, tmp_path: Path) -> None:
    job = aged(project)
    words = ("journal", "prune", "--before", "365d", "--kind", "job", "--archive", str(tmp_path / "kept"))
    dry = project.here(*words, "--dry-run", "--json").json
    assert (dry["dry_run"], [unit["stream"] for unit in dry["pruned"]]) == (True, [f"job/{job}"])
    assert not (tmp_path / "kept").exists()
    assert "--yes" in project.here(*words).err
    done = project.here(*words, "--vacuum", "--yes")
    assert (done.status, f"job/{job}  completed" in done.out, "1 record pruned" in done.out) == (0, True, True)
    package = str(tmp_path / "kept" / f"job-{job}.zip")
    assert project.here("verify", package).status == 0
    for reader in (("show", job), ("trace", job), ("artifacts", job), ("retry", job), ("export", job)):
        refused = project.here(*reader)
        assert (refused.status, "RECORD_PRUNED" in refused.err) == (2, True), reader
    (row,) = project.here("jobs", "--json").json
    assert (row["job"], row["state"], row["code"]) == (job, "completed", "RECORD_PRUNED")
    report = project.here("verify", "--json").json
    assert (report["ok"], report["pruned"] > 0, report["removed"] > 1) == (True, True, True)
    assert "the stub of each continues its chain" in project.here("verify").out
    assert project.here("audit", "--json").status == 0
    assert project.here("usage").status == 0
    assert project.here("versions").status == 0


def test_nothing_is_pruned_unasked(project: Project) -> None:
    job = aged(project)
    words = ("journal", "prune", "--before", "365d", "--kind", "job")
    for refused in (project.here(*words), project.here(*words, "--json")):
        assert (refused.status, "--yes" in refused.err) == (2, True)
    assert project.here("show", job).status == 0


@pytest.mark.parametrize("words", [(), ("--before", "1y"), ("--before", "1d", "--rules"), ("--rules", "--kind", "job")])
def test_what_is_not_clear_is_refused(project: Project, words: tuple[str, ...]) -> None:
    job = aged(project)
    assert project.here("journal", "prune", *words).status == 2
    assert project.here("show", job).status == 0


@pytest.mark.slow
def test_rules_of_the_settings_apply_and_doctor_names_short_ones(project: Project) -> None:
    job = aged(project)
    project.configure(
        '[[retention]]\nkeep = "30d"\nkinds = ["job"]\n[[retention]]\nkeep = "3000d"\nstates = ["failed"]\n'
    )
    checks = [one for one in project.here("doctor", "--json").json if one["name"] == "retention"]
    assert [one["verdict"] for one in checks] == ["warn", "ok"]
    assert "six months" in checks[0]["detail"]
    done = project.here("journal", "prune", "--rules", "--yes", "--json").json
    assert [unit["stream"] for unit in done["pruned"]] == [f"job/{job}"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [('keep = "x"', "keep must be"), ('kept = "1d"', "there is no key kept"), ('keep = "1d"\nkinds = ["x"]', "kinds")],
)
def test_a_rule_that_is_not_understood_is_named(project: Project, rule: str, says: str) -> None:
    aged(project)
    project.configure(f"[[retention]]\n{rule}\n")
    refused = project.here("journal", "prune", "--rules", "--yes")
    assert (refused.status, says in refused.err, "retention number 1" in refused.err) == (2, True, True)
