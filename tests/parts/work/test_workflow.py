"""workflow.toml that breaks its form, each in its own way: refused with a code, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from remit import Remit
from remit.codes import Code
from remit.errors import PolicyError, UsageError
from remit.parts.work.executors.registry import faults_of, hand_of, hands_of
from remit.parts.work.workflow import MAX_FILE, Workflow, read_workflow, repository_of, require_workflow
from remit.settings import load

BAD: Final = {
    "no TOML": b"[",
    "no text": b"\xff\xfe\x00",
    "half of a pair": b'[labels]\nx = "\\ud800"',
    "an unknown table": b"[executers.x]\nprogram = 'sh'",
    "a key twice": b"[flow]\n[flow]",
    "a repository that is not named": b"[role_repo]\nwork = 'nowhere'",
    "a group without a role": b"[groups.x]\nlisten_labels = ['a']",
    "no room in a group": b"[groups.x]\nrole = 'work'\nmax_concurrent = 0",
    "a command that is text": b"[[constraints.commands]]\nargs = 'make test'",
    "a time that was lost": b"[[constraints.commands]]\nargs = ['make']\ntimeout_seconds = -1",
    "an outbox that is not known": b"[outbox]\nbackend = 'jira'",
    "too deep": b"x = " + b"[" * 50_000,
    "too large": b"#" * (MAX_FILE + 1),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_workflow_that_breaks_its_form_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "workflow.toml").write_bytes(data)
    with pytest.raises(UsageError) as refused:
        read_workflow(load(env={}, cwd=tmp_path))
    assert refused.value.code is Code.WORK_INVALID
    assert refused.value.message.startswith("workflow.toml")


BAD_TABLES = {
    "an unknown key": b"program = 'sh'\nshell = true",
    "no program": b"args = ['x']",
    "an agent of another name": b"agent = 'cursor'",
    "a shell string": b"program = 'sh'\nargs = 'work.sh'",
    "no time": b"program = 'sh'\ntimeout_seconds = 0",
    "more time than there is": b"program = 'sh'\ntimeout_seconds = 99999999999999999999",
    "an isolation of another name": b"program = 'sh'\nisolation = 'docker'",
    "a protocol of another name": b"program = 'sh'\nprotocol = 'lsp'",
    "a mode that the agent has not": b"agent = 'aider'\nmode = 'governed'",
}


@pytest.mark.parametrize("data", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_of_an_executor_takes_down_itself_alone(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "workflow.toml").write_bytes(b"[executors.good]\nprogram = 'sh'\n[executors.bad]\n" + data)
    workflow = read_workflow(load(env={}, cwd=tmp_path))
    assert "good" in {hand.name for hand in hands_of(workflow)}
    (fault,) = faults_of(workflow)
    assert "[executors.bad]" in fault
    with pytest.raises(UsageError) as refused:
        hand_of(workflow, "bad")
    assert refused.value.code is Code.WORK_INVALID


def test_what_is_wrong_is_said_by_its_key_with_the_values_that_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_bytes(b"[executors.bad]\nprogram = 'sh'\nisolation = 'docker'")
    assert read_workflow(load(env={}, cwd=tmp_path)).faults["bad"] == (
        "[executors.bad] isolation: Invalid enum value 'docker'; it may be 'sandbox', 'none'"
    )


def test_a_folder_in_its_place_is_refused_and_none_is_the_defaults(tmp_path: Path) -> None:
    assert read_workflow(load(env={}, cwd=tmp_path)) == Workflow()
    with pytest.raises(UsageError):
        require_workflow(load(env={}, cwd=tmp_path))
    (tmp_path / "workflow.toml").mkdir()
    with pytest.raises(UsageError) as refused:
        read_workflow(load(env={}, cwd=tmp_path))
    assert refused.value.code is Code.WORK_INVALID


def test_a_role_works_in_its_repository_or_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_text("[repos]\napi = '../api'\n[role_repo]\nbackend = 'api'\n")
    workflow = read_workflow(load(env={}, cwd=tmp_path))
    assert repository_of(workflow, tmp_path, "backend") == (tmp_path / "../api").resolve()
    assert repository_of(workflow, tmp_path, "qa") == tmp_path.resolve()


async def test_the_rule_of_governed_runs_is_the_only_one_of_its_id(tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_text("")
    rules = [{"id": "work-run", "effect": "allow", "tools": ["fs.read"]}]
    settings = load(env={}, cwd=tmp_path, flags={"journal.url": str(tmp_path / "j.db"), "policy.rules": rules})
    with pytest.raises(PolicyError, match="work-run") as refused:
        async with Remit(settings=settings):
            pass
    assert refused.value.code is Code.POLICY_INVALID
