"""Files (reviews s02) and plans as callers (s04/W41): what an agent may not see, change or call itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.codes import Code
from remit.gateway.outcome import Outcome
from remit.jobs.plans.source import parse_plan
from tests.opened import OpenRemit, until_waiting

ALLOW = {"policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with notes, a module, Remit's own files and hidden ones."""
    for name in ("docs/a.txt", ".remit/cache/x", ".git/config", ".ssh/id_rsa", "tools.py", "pkg/mod.py", "remit.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("" if name == "remit.toml" else "# needle\n", encoding="utf-8")
    return tmp_path


async def called(remit: Remit, tool: str, **args: Any) -> Outcome:
    return await remit.call(tool, args)


async def test_search_and_list_pass_over_what_belongs_to_remit(project: Path, remit_in: OpenRemit) -> None:  # F21, F22
    async with remit_in(flags=ALLOW) as remit:
        found = await called(remit, "fs.search", path=".", query="needle")
        assert found.ok
        assert "docs/a.txt" in [one["path"] for one in found.value["matches"]]
        assert not [one for one in found.value["matches"] if one["path"].startswith(".remit")]
        listed = await called(remit, "fs.list", path=".", recursive=True)
        assert not [one for one in listed.value["items"] if one["path"].startswith(".remit")]


@pytest.mark.parametrize("path", ["tools.py", "TOOLS.py", "pkg/mod.py", "pkg/new.py", "remit.toml"])
async def test_nothing_that_decides_is_written(project: Path, remit_in: OpenRemit, path: str) -> None:  # F24
    flags = {**ALLOW, "app.modules": ["tools.py", "pkg"]}
    (project / "pkg/__init__.py").write_text("", encoding="utf-8")
    async with remit_in(flags=flags) as remit:
        refused = await called(remit, "fs.write", path=path, content="import os")
        assert refused.cause == Code.PATH_NOT_ALLOWED.name
        assert (await called(remit, "fs.write", path="docs/b.txt", content="x")).ok


@pytest.mark.parametrize(
    "folder", [".git", ".remit", ".ssh", "docs/../.git", "~/.ssh", "/etc", "/proc/self", "/var/log"]
)
async def test_hidden_and_system_folders_are_not_read(
    project: Path, remit_in: OpenRemit, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # S01 to S06
    monkeypatch.setenv("HOME", str(project))
    async with remit_in(flags=ALLOW) as remit:
        for tool, more in (("folder.read", {"path": "config"}), ("folder.search", {"query": "needle"})):
            refused = await called(remit, tool, folder=folder, **more)
            assert not refused.ok
            assert refused.cause in {Code.PATH_NOT_ALLOWED.name, Code.FOLDER_NOT_FOUND.name}


async def test_a_hidden_root_that_the_operator_named_is_read(project: Path, remit_in: OpenRemit) -> None:
    async with remit_in(flags={**ALLOW, "fs.roots": [str(project / ".ssh")]}) as remit:
        assert (await called(remit, "folder.search", folder=str(project / ".ssh"), query="needle")).ok


@pytest.mark.parametrize(("callers", "writes"), [("job:*", False), ("job:triage", False), ("plan:triage", True)])
async def test_a_plan_has_no_recipe_s_rights_by_its_name(
    project: Path, remit_in: OpenRemit, callers: str, writes: bool
) -> None:  # W41
    rules = [{"id": "triage", "effect": "allow", "tools": ["fs.write"], "callers": [callers]}]
    plan = parse_plan(
        "version: taskgraph-v1\nname: triage\nnodes:\n"
        "  - {id: a, tool: fs.write, args: {path: out.txt, content: x}}\noutput: done\n"
    )
    async with remit_in(flags={"policy.rules": rules}) as remit:
        job = await remit.start_plan(plan)
        if writes:
            await remit.ended(job.id)
        else:
            await until_waiting(remit, job.id)
    assert (project / "out.txt").exists() == writes
