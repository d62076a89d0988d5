"""What is typed, imported, named and searched by strangers: an outcome at once, and nothing is run (reviews s09)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from remit import Run, recipe
from remit.app import JobEndedError
from remit.codes import Code
from remit.jobs.plans.problem import InvalidPlanError
from remit.jobs.plans.source import load_plan
from remit.redact import line, mask, preview
from tests.cli.conftest import Project, project
from tests.cli.test_terminal import QUESTION
from tests.opened import OpenRemit
from tests.security.test_tampered import EVIL, controls

__all__ = ["project"]


def test_no_key_but_an_answer_approves(project: Project) -> None:  # K02 to K06
    with project.terminal("run", "notes", "--path", "n.txt") as screen:
        screen.expect(QUESTION)
        for typed in ("x\ra\r", "\x1b[200~a\x1b[201~\r", "a\0\r", "\r"):
            screen.type(typed)
            screen.expect(QUESTION)
        screen.type("\x04")
        assert screen.end() == 4
    assert not (project.folder / "n.txt").exists()
    assert len(project.here("confirm", "--json").json) == 1


def test_the_reason_of_a_denial_is_cleaned_where_it_is_shown(project: Project) -> None:  # K07
    project.job("notes", "--path", "n.txt")
    (asked,) = project.here("confirm", "--json").json
    said = project.here("confirm", asked["confirmation"], "--deny", "--reason", f"no{EVIL}")
    for words in (("resume", "last"), ("show", "last"), ("trace", "last")):
        done = project.here(*words)
        assert controls(said.out + said.err + done.out + done.err) == set()
    assert not (project.folder / "n.txt").exists()


@recipe("odd_key")
async def odd_key(run: Run, key: str) -> Any:
    """Call under a key that came from outside."""
    return (await run.call("fs.list", {"path": "."}, key=key)).value


@pytest.mark.parametrize("key", [f"x{EVIL}\x1b[1;1H tool  fs.read", "", "A", "a.b", "a/b", "1", "x" * 5_000])
async def test_a_key_made_from_data_is_a_key_or_refused(remit_in: OpenRemit, key: str) -> None:  # K09
    async with remit_in(recipes=[odd_key]) as remit:
        with pytest.raises(JobEndedError):
            await remit.run(odd_key(key))


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/random"])
def test_a_plan_that_leads_to_a_device_is_refused(tmp_path: Path, target: str) -> None:  # Y20
    (tmp_path / "p.yaml").symlink_to(target)
    with pytest.raises(InvalidPlanError):
        load_plan(tmp_path / "p.yaml")


HOSTILE_NAMES = {
    'x"]\nRAN = "yes"\n[a': {"command": "true", "args": ['"]\nRAN = 1\n', f"a{EVIL}"], "env": {"A": '"\nRAN = 2'}},
    "__proto__": {"command": "$(touch PWNED)", "args": ["`touch PWNED`"]},
    "../../etc": {"command": "true", "cwd": "/"},
    "a" * 200: {"command": "true"},
    "fs": {"command": "true"},
    f"e{EVIL}": {"command": "true"},
}


def test_an_import_writes_servers_and_nothing_else(project: Project) -> None:  # I01
    project.configure(modules=False)
    servers = json.dumps({"mcpServers": HOSTILE_NAMES})
    (project.folder / ".mcp.json").write_text(servers, encoding="utf-8")
    done = project.here("mcp", "import", "--file", ".mcp.json", "--all")
    assert controls(done.out + done.err) == set(), done
    written = tomllib.loads((project.folder / "remit.toml").read_text(encoding="utf-8"))
    assert written.keys() <= {"mcp"}
    assert "RAN" not in written
    assert not (project.folder / "PWNED").exists()


def test_a_server_is_added_with_whatever_its_arguments_say(project: Project) -> None:  # I02, I03
    project.configure(modules=False)
    other = project.folder / "important.toml"
    other.write_text("# important\n", encoding="utf-8")
    (project.folder / "remit.toml").unlink()
    (project.folder / "remit.toml").symlink_to(other)
    odd = 'a"\n[[policy.rules]]\neffect = "allow"\n'
    assert project.here("mcp", "add", "--no-sandbox", "x", "--", "true", odd).status == 0
    assert (project.folder / "remit.toml").is_symlink()
    written = tomllib.loads(other.read_text(encoding="utf-8"))
    assert written.keys() == {"mcp"}
    assert odd in written["mcp"]["servers"][0]["command"]


@pytest.mark.parametrize("piece", ['"{\\"token', "Bearer ", "\\u0070", "--password ", "[", '{"token":"'])
def test_text_made_to_hold_the_masks_up_is_masked_at_once(piece: str) -> None:  # R01, R02
    text = piece * (40_000 // len(piece))
    assert len(mask(text)) <= 4 * len(text)
    assert len(line(text)) < 2_000
    assert len(preview(text.encode())) < 2_000


def test_a_program_of_the_project_is_not_what_a_server_s_name_means(project: Project) -> None:  # S02
    (project.folder / "notes-server").write_text("#!/bin/sh\ntouch PWNED\n", encoding="utf-8")
    (project.folder / "notes-server").chmod(0o755)
    project.configure('[[mcp.servers]]\nname = "a"\ncommand = ["notes-server"]\ncwd = "."\n', modules=False)
    assert "notes-server" in project.here("mcp", "test").out
    assert not (project.folder / "PWNED").exists()


SEARCHES: dict[str, tuple[str, dict[str, Any], set[Code | None]]] = {
    "Z01": ("fs.search", {"query": "(a+)+$", "regex": True}, {None}),
    "Z02": ("fs.search", {"query": "(.{1000}){1000}", "regex": True}, {Code.TOOL_EXEC_FAILED, Code.INVALID_TOOL_ARGS}),
    "Z03": ("fs.search", {"query": "(?<=a)b", "regex": True}, {Code.TOOL_EXEC_FAILED, Code.INVALID_TOOL_ARGS}),
    "Z04": ("folder.search", {"folder": ".", "query": '" OR title:* NEAR( ^ - x'}, {None}),
    "Z05": ("folder.search", {"folder": ".", "query": "word " * 100_000}, {Code.INVALID_TOOL_ARGS}),
    "Z06": ("folder.search", {"folder": "/proc", "query": "x"}, {Code.PATH_NOT_ALLOWED}),
    "Z07": ("folder.search", {"folder": "/dev", "query": "x"}, {Code.PATH_NOT_ALLOWED}),
    "Z08": ("folder.search", {"folder": "~nobodyknows", "query": "x"}, {Code.PATH_NOT_ALLOWED, Code.FOLDER_NOT_FOUND}),
    "Z09": ("folder.search", {"folder": "a\0b", "query": "x"}, {Code.PATH_NOT_ALLOWED, Code.FOLDER_NOT_FOUND}),
}


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_search_for_anything_ends_at_once(remit_in: OpenRemit, tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("a" * 10_000 + "b\n", encoding="utf-8")
    tool, args, codes = SEARCHES[name]
    async with remit_in(work=False) as remit:
        outcome = await remit.call(tool, args)
    assert {outcome.code, Code[outcome.cause] if outcome.cause else None} & codes, outcome
