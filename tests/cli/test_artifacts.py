from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.cli.file_writer import place_below
from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import UsageError
from remit.parts.sandbox.scratch import scratch
from tests.cli.conftest import Project

CODE = "mkdir -p sub; echo one > sub/one.txt; printf two > two.bin; echo said; echo wrong >&2"


@pytest.fixture
def coded(project: Project) -> Iterator[Project]:
    """A project with a snippet that has run."""
    rule = '[[policy.rules]]\nid = "code"\neffect = "allow"\ntools = ["sandbox.*"]\n'
    with scratch() as folder:
        folder.chmod(0o711)
        project.configure(f'{rule}[sandbox]\nfolder = "{folder}"\n', modules=False)
        assert project.here("run", "run_code_snippet", "--language", "bash", "--code", CODE).status == 0
        yield project


def test_they_are_listed_by_step(coded: Project) -> None:
    rows = coded.here("artifacts", "last", "--json").json
    assert [(row["step"], row["path"]) for row in rows] == [
        ("2", "stdout"),
        ("2", "stderr"),
        ("3", "sub/one.txt"),
        ("3", "two.bin"),
    ]
    assert "sub/one.txt" in coded.here("artifacts", "last").out
    assert [row["path"] for row in coded.here("artifacts", "last", "*.txt", "--json").json] == ["sub/one.txt"]
    assert "it has no such files" in coded.here("artifacts", "last", "none").err


def test_they_are_saved_and_never_over_something_unasked(coded: Project) -> None:
    assert coded.here("artifacts", "last", "--step", "3", "--save", "out").status == 0
    assert (coded.folder / "out/sub/one.txt").read_text() == "one\n"
    assert (coded.folder / "out/two.bin").read_bytes() == b"two"
    refused = coded.here("artifacts", "last", "two.bin", "--save", "out")
    assert (refused.status, "exists" in refused.err) == (2, True)
    assert coded.here("artifacts", "last", "two.bin", "--save", "out", "--force").status == 0


def test_one_is_shown_as_it_is(coded: Project) -> None:
    shown = coded.apart("artifacts", "last", "stderr", "--cat")
    assert (shown.status, shown.out) == (0, "wrong\n")
    assert coded.here("artifacts", "last", "*", "--cat").status == 2


def test_workspaces_of_jobs_that_ended_are_listed_and_deleted(coded: Project) -> None:
    [row] = coded.here("sandbox", "workspaces", "--json").json
    assert (row["state"], Path(row["folder"]).is_dir()) == ("completed", True)
    moment_ns = SystemClock().now() * 1_000  # files have the machine's time, also where the tests have another date
    for place in Path(row["folder"]).iterdir():
        os.utime(place, ns=(moment_ns, moment_ns))
    assert coded.here("sandbox", "clean", "--json").json == []
    assert coded.here("sandbox", "clean", "--days", "0", "--dry-run").out.startswith("1 workspaces of ")
    assert Path(row["folder"]).is_dir()
    assert [one["job"] for one in coded.here("sandbox", "clean", "--days", "0", "--json").json] == [row["job"]]
    assert not Path(row["folder"]).exists()
    assert coded.here("artifacts", "last", "two.bin", "--save", "again").status == 0  # what was collected stays


def test_a_workspace_of_a_job_that_can_go_on_stays(coded: Project) -> None:
    waiting = '[[policy.rules]]\nid = "ask"\neffect = "ask"\ntools = ["sandbox.exec"]\n'
    config = coded.folder / "remit.toml"
    config.write_text(waiting + config.read_text())
    assert coded.here("run", "run_code_snippet", "--language", "bash", "--code", "echo 1").status == 4
    states = {row["state"] for row in coded.here("sandbox", "workspaces", "--json").json}
    assert states == {"completed", "waiting"}
    assert len(coded.here("sandbox", "clean", "--days", "0", "--unknown", "--json").json) == 1


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "a//b", "a\nb", ""])
def test_a_name_that_leads_elsewhere_is_not_saved(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a plain relative path"):
        place_below(tmp_path, name, force=True)


def test_no_link_is_followed_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.sep)
    with pytest.raises(UsageError, match="is a link"):
        place_below(tmp_path, "link/x", force=True)
    with pytest.raises(UsageError, match="exists"):
        place_below(tmp_path, "link", force=True)


@pytest.mark.parametrize(
    "name",
    [
        ".bashrc",
        ".ssh/authorized_keys",
        "sub/.envrc",
        ".git/hooks/pre-commit",
        ".vscode/tasks.json",
        ".remit/journal.db",
        "sub/conftest.py",
        "SiteCustomize.py",
        "x.pth",
        "hooks/post-checkout",
        "Makefile",
        "remit.toml",
    ],
)
def test_a_name_that_programs_run_or_obey_is_saved_only_if_it_is_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        place_below(tmp_path, name, force=True)
    assert refused.value.code is Code.ARTIFACT_NAME_REFUSED
    assert place_below(tmp_path, name, force=False, named=True) == tmp_path / name


@pytest.mark.parametrize("name", ["report.pdf", "sub/data.csv", "src/main.py", "hooks.txt", "a.b/c"])
def test_other_names_are_saved(name: str, tmp_path: Path) -> None:
    assert place_below(tmp_path, name, force=False) == tmp_path / name


def test_a_pattern_does_not_ask_for_hidden_names(coded: Project) -> None:
    code = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo y > conftest.py; echo z > data.csv"
    assert coded.here("run", "run_code_snippet", "--language", "bash", "--code", code).status == 0
    for names in ([], ["*"], [".*"], ["conf*"]):
        refused = coded.here("artifacts", "last", *names, "--step", "3", "--save", "out")
        assert (refused.status, "ARTIFACT_NAME_REFUSED" in refused.err) == (2, True), names
        assert not (coded.folder / "out").exists()
    assert coded.here("artifacts", "last", "conftest.py", "data.csv", "--save", "out").status == 0
    assert coded.here("artifacts", "last", "--step", "3", "--save", "all", "--force-names").status == 0
    assert (coded.folder / "all/.git/hooks/pre-commit").read_text() == "x\n"
