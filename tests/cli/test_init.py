from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Project
from tests.typechecked import mypy

GIT = shutil.which("git") or "/usr/bin/git"
TAPLO = Path(__file__).parents[2] / "build/peers-releases/bin/taplo"
WRITTEN = [".remit/.gitignore", ".remit/remit.schema.json", "desk.py", "test_desk.py", "remit.toml"]


@pytest.fixture
def empty(project: Project) -> Project:
    (project.folder / "remit.toml").unlink()
    del project.env["REMIT_TRUST"]
    return project


def test_a_new_project_runs_asks_and_passes_its_own_tests(empty: Project) -> None:
    done = empty.here("init", "shop", "--json")
    assert done.json["files"] == WRITTEN
    assert "remit run triage --customer grace" in " ".join(done.json["next"])
    shop = empty.folder / "shop"
    assert (shop / ".remit" / ".gitignore").read_text() == "*\n!*.schema.json\n"
    empty.folder = shop
    small = empty.apart("run", "triage", "--customer", "ada", "--json")
    assert small.json["result"] == "refunded 700 cents to ada"
    large = empty.apart("run", "triage", "--customer", "grace")
    assert large.status == 4
    assert "waits for approval of step 2" in large.err
    assert "3 of 3 tests passed" in empty.apart("policy", "test", "--live").out
    assert "ok 2 rules, no findings" in empty.apart("policy", "lint", "--live").out
    tested = subprocess.run(
        [sys.executable, "test_desk.py"], cwd=shop, env=empty.env, capture_output=True, text=True, check=False
    )
    assert (tested.returncode, tested.stdout) == (0, "ok\n"), tested.stderr


def test_git_keeps_the_schema_that_the_settings_name_and_no_journal(empty: Project) -> None:
    empty.here("init")
    (first, *_) = (empty.folder / "remit.toml").read_text().splitlines()
    (empty.folder / ".remit/journal.db").touch()
    subprocess.run([GIT, "init", "--quiet"], cwd=empty.folder, check=True)
    listed = subprocess.run(
        [GIT, "ls-files", "--others", "--exclude-standard", ".remit"],
        cwd=empty.folder, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert [f"#:schema ./{name}" for name in listed] == [first]


@pytest.mark.skipif(not TAPLO.exists(), reason="needs build/peers-releases: make peers")
def test_an_editors_checker_reads_the_settings_by_their_schemas(empty: Project) -> None:
    empty.here("init")
    subprocess.run([GIT, "init", "--quiet"], cwd=empty.folder, check=True)
    assert empty.here("work", "init").status == 0

    def faults(name: str, more: str) -> str:
        file = empty.folder / f"more-{name}"
        file.write_text((empty.folder / name).read_text(encoding="utf-8") + more, encoding="utf-8")
        lint = subprocess.run([TAPLO, "lint", file.name], cwd=empty.folder, capture_output=True, text=True, check=False)
        assert (lint.returncode == 0) is ("error:" not in lint.stderr)
        return lint.stderr

    assert "error:" not in faults("remit.toml", "") + faults("workflow.toml", "")
    assert "'comand' was unexpected" in faults("remit.toml", '\n[[mcp.servers]]\nname = "a"\ncomand = ["b"]\n')
    assert '"refuse" is not one of' in faults("remit.toml", '\n[[policy.rules]]\neffect = "refuse"\n')
    assert "0 is less than the minimum" in faults("workflow.toml", '\n[groups.a]\nrole = "b"\nmax_concurrent = 0\n')


@pytest.mark.slow
def test_the_example_passes_mypy_under_strict(empty: Project, tmp_path: Path) -> None:
    empty.here("init")
    checked = mypy(empty.folder, "desk.py", "test_desk.py", cache=tmp_path / "cache")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("taken", ["desk.py", "remit.toml"])
def test_nothing_is_overwritten_and_then_nothing_is_written(empty: Project, taken: str) -> None:
    (empty.folder / taken).write_text("# mine\n")
    done = empty.here("init", "--json")
    assert done.status == 2
    assert f"{taken} is already there" in done.error["message"]
    assert (empty.folder / taken).read_text() == "# mine\n"
    assert [one.name for one in empty.folder.iterdir()] == [taken]


def test_a_journal_that_was_there_is_left_alone(empty: Project) -> None:
    (empty.folder / ".remit").mkdir()
    (empty.folder / ".remit" / ".gitignore").write_text("mine\n")
    assert empty.here("init", "--json").json["files"] == WRITTEN[1:]
    assert (empty.folder / ".remit" / ".gitignore").read_text() == "mine\n"


def test_a_server_is_guarded_by_its_command(empty: Project) -> None:
    done = empty.here("init", "--no-tool", "--no-approvals", "--mcp", "python3 'my server.py'", "--json")
    assert done.json["next"] == ["remit mcp test guarded", "remit mcp pin guarded"]
    (server,) = tomllib.loads((empty.folder / "remit.toml").read_text())["mcp"]["servers"]
    assert server == {"name": "guarded", "command": ["python3", "my server.py"], "level": "L2"}
    assert "guarded" in empty.here("mcp", "list").out


def test_rules_without_a_tool_are_about_files(empty: Project) -> None:
    empty.here("init", "--no-tool")
    assert "2 of 2 tests passed" in empty.here("policy", "test").out
    assert "ok 1 rule, no findings" in empty.here("policy", "lint").out


def test_a_command_that_no_shell_reads_is_refused(empty: Project) -> None:
    assert empty.here("init", "--mcp", "python3 'x").status == 2
    assert list(empty.folder.iterdir()) == []


def test_a_terminal_is_asked_three_questions(empty: Project) -> None:
    with empty.terminal("init") as terminal:
        terminal.expect("Write an example")
        terminal.type("n\n")
        terminal.expect("MCP server to guard")
        terminal.type("\n")
        terminal.expect("Write rules")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (empty.folder / ".remit" / ".gitignore").exists()
    assert "small" not in (empty.folder / "remit.toml").read_text()
    assert not (empty.folder / "desk.py").exists()


def test_what_was_there_before_is_not_trusted_by_it(empty: Project) -> None:
    assert empty.here("init").status == 0
    assert empty.here("run", "triage", "--customer", "nobody", "--json").status == 0
    listed = empty.here("trust", "--list", "--json").json
    assert [(Path(one["file"]).name, one["edits"]) for one in listed] == [("remit.toml", True)]


def test_the_rules_of_a_guarded_server_are_about_it(empty: Project) -> None:
    done = empty.here("init", "--no-tool", "--mcp", "python3 server.py", "--json")
    written = (empty.folder / "remit.toml").read_text(encoding="utf-8")
    assert 'tools = ["mcp.guarded.*"]' in written
    assert "fs.write" not in written
    assert "remit policy rules" in done.json["next"]
    assert empty.here("policy", "rules").status == 0


def test_a_setting_of_a_part_in_the_environment_does_not_stop_it(empty: Project) -> None:
    empty.env |= {"REMIT_BROWSER_PAGES": "3", "WEB_SEARCH_BACKEND": "stub"}
    assert empty.apart("init").status == 0
    assert "nothing reads" not in empty.here("config").err
