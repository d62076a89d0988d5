"""A program in the sandbox sees its project, where it lies or at another path, and has no proxy but the sandbox's."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.errors import UsageError
from remit.mcp_config.agent_ground import AgentNeeds, enclosed
from remit.process.enclosure import Program

ENV = {
    "HOME": "/home/ann",
    "HTTPS_PROXY": "http://proxy.example",
    "no_proxy": "127.0.0.1",
    "A_BASE_URL": "http://127.0.0.1:80/v1",
    "B_BASE_URL": "http://127.0.0.1:80/v2",
}


def quiet(_place: str, _reason: str) -> None:
    """Hear nothing."""


def of(folder: Path, *command: str, at: str = "", env: dict[str, str] = ENV) -> Program:
    return enclosed(command, env, folder, AgentNeeds(), quiet, at=at)


def test_any_program_has_its_project_and_a_home_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/config").touch()
    (below := tmp_path / "below").mkdir()
    program = of(below, "tool", "-x")
    assert (program.command, program.cwd, program.mounts) == (("tool", "-x"), below, ())
    assert {str(tmp_path / ".git/hooks"), str(tmp_path / ".git/config")} <= {*program.terms.roots}
    assert {*program.terms.writable} == {str(tmp_path), str(tmp_path / ".git")}
    assert program.env == {name: ENV[name] for name in ("A_BASE_URL", "B_BASE_URL")}
    assert program.terms.network == program.private == ("127.0.0.1:80",)


def test_a_copy_stands_at_another_path_with_what_it_cannot_change(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/config").touch()
    program = of(tmp_path, "./run", at="/recorded")
    assert (program.command, str(program.cwd)) == ((str(tmp_path / "run"),), "/recorded")
    assert not {*program.terms.roots, *program.terms.writable} & {str(tmp_path)}
    seen = {(str(mount.source.relative_to(tmp_path)), mount.target, mount.writable) for mount in program.mounts}
    assert seen == {
        (".", "/recorded", True),
        (".git", "/recorded/.git", True),
        (".git/hooks", "/recorded/.git/hooks", False),
        (".git/config", "/recorded/.git/config", False),
    }


def test_a_folder_above_a_copy_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (below := tmp_path / "below").mkdir()
    (mount,) = of(below, "tool", at="/recorded").mounts
    assert mount.source == below


def test_without_a_home_an_agents_files_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="HOME is not set"):
        of(tmp_path, "claude", env={})
