"""workflow.toml that breaks its form, each in its own way: refused with a code, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from remit import Remit
from remit.codes import Code
from remit.errors import PolicyError, UsageError
from remit.settings import load
from remit.work.workflow import MAX_FILE, Workflow, read_workflow, repository_of, require_workflow

BAD: Final = {
    "no TOML": b"[",
    "no text": b"\xff\xfe\x00",
    "half of a pair": b'[labels]\nx = "\\ud800"',
    "an unknown table": b"[executers.x]\nprogram = 'sh'",
    "an unknown key": b"[executors.x]\nprogram = 'sh'\nshell = true",
    "a key twice": b"[flow]\n[flow]",
    "no program": b"[executors.x]\nargs = ['x']",
    "a shell string": b"[executors.x]\nprogram = 'sh'\nargs = 'work.sh'",
    "a name in capitals": b"[executors.X]\nprogram = 'sh'",
    "a name that leads elsewhere": b"[executors.'../x']\nprogram = 'sh'",
    "no time": b"[executors.x]\nprogram = 'sh'\ntimeout_seconds = 0",
    "more time than there is": b"[executors.x]\nprogram = 'sh'\ntimeout_seconds = 99999999999999999999",
    "an isolation of another name": b"[executors.x]\nprogram = 'sh'\nisolation = 'docker'",
    "a protocol of another name": b"[executors.x]\nprogram = 'sh'\nprotocol = 'lsp'",
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
        read_workflow(tmp_path)
    assert refused.value.code is Code.WORK_INVALID
    assert refused.value.message.startswith("workflow.toml")


def test_a_folder_in_its_place_is_refused_and_none_is_the_defaults(tmp_path: Path) -> None:
    assert read_workflow(tmp_path) == Workflow()
    with pytest.raises(UsageError):
        require_workflow(tmp_path)
    (tmp_path / "workflow.toml").mkdir()
    with pytest.raises(UsageError) as refused:
        read_workflow(tmp_path)
    assert refused.value.code is Code.WORK_INVALID


def test_a_role_works_in_its_repository_or_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_text("[repos]\napi = '../api'\n[role_repo]\nbackend = 'api'\n")
    workflow = read_workflow(tmp_path)
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
