"""A script of a skill: read as a text, run in the sandbox within what the skill leaves of it, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.parts.agents.recipes import agent
from remit.parts.sandbox.scratch import scratch
from remit.service.options import Options
from remit.settings import Settings
from tests.parts.skills.project import Ended, call, opened, record, settings, skill
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

ALLOW = {"id": "sandbox", "effect": "allow", "tools": ["sandbox.*", "fs.*", "notes.*"]}
SANDBOX = "sandbox.write_files sandbox.exec"


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder that the user of sandboxes can reach."""
    with scratch() as place:
        place.chmod(0o711)
        yield place


def given(folder: Path, work: Path, *steps: Any, toml: str = "", sandbox: str = "") -> Settings:
    """A project of these skills."""
    text = f"[skills]\nfolders = ['skills']\n{toml}[sandbox]\nfolder = '{work}'\n{sandbox}"
    return settings(folder, *steps, toml=text, rules=[ALLOW])


async def ran(found: Settings, task: str = "Run add.py with python.") -> Ended:
    """Run an agent under the skill for a task that names what it does, so that nobody is asked; its replay agrees."""
    async with opened(found) as remit:
        job = await remit.start(agent(task=task), options=Options(skills=("sums",)))
        await asyncio.wait_for(remit.settled(job.id), PATIENCE_S)
        assert not await remit.service.confirmations.pending(job.id)
        answer = await asyncio.wait_for(job.result(), PATIENCE_S)
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        return Ended(job.id, answer, *await record(remit, job.id))


def script(marker: Path) -> str:
    """A program that adds, and leaves a mark on the machine if it can."""
    return f"""try:
    open({str(marker)!r}, "w").write("ran")
except OSError:
    pass
print(sum(range(5)))
"""


async def test_an_agent_runs_a_script_in_the_sandbox(tmp_path: Path, work: Path) -> None:
    text = script(tmp_path / "marker")
    skill(tmp_path / "skills", "sums", "Run it.", tools=SANDBOX, files={"scripts/add.py": text})
    files = {"files": [{"path": "add.py", "text": text}]}
    steps = (
        call(("skill.read", {"name": "sums", "path": "scripts/add.py"})),
        call(("sandbox.write_files", files)),
        call(("sandbox.exec", {"command": ["python", "add.py"]})),
        {"say": "Done."},
    )
    ended = await ran(given(tmp_path, work, *steps))
    assert ended.called() == ["skill.read", "sandbox.write_files", "sandbox.exec"]
    assert "sum(range(5))" in ended.results[0]
    assert '"stdout":"10\\n"' in ended.results[2].replace(" ", "")
    assert not (tmp_path / "marker").exists()


async def test_without_the_sandbox_nothing_runs_a_script(tmp_path: Path, work: Path) -> None:
    text = script(tmp_path / "marker")
    place = skill(tmp_path / "skills", "sums", "Run it.", tools="notes.read", files={"scripts/add.py": text})
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("skill.read", {"name": "sums", "path": "scripts/add.py"}),
        ("sandbox.write_files", {"files": [{"path": "add.py", "text": text}]}),
        ("sandbox.exec", {"command": ["python", str(place / "scripts/add.py")]}),
        ("notes.read", {"name": "scripts/add.py"}),
    ]
    ended = await ran(given(tmp_path, work, *(call(one) for one in wanted), {"say": "Done."}))
    assert ended.called() == ["skill.read", "notes.read"]
    assert not (tmp_path / "marker").exists()


QUESTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"command": ["python", "-c", "1"]}, "with 5 s and 100 MB at most, without a network.", ""),
    ({"command": ["python", "1"], "policy": {"limits": {"wall_ms": 2_000}}}, "with 2 s and 100 MB at most", ""),
    ({"command": ["python", "1"], "policy": {"limits": {"wall_ms": 9_000}}}, "is unknown", "wall_ms"),
    ({"command": ["bash", "-c", "1"]}, "is unknown", "bash may not run (allowed: python"),
]


@pytest.mark.parametrize(("args", "what", "problem"), QUESTIONS)
async def test_a_question_shows_what_the_skill_leaves_of_the_sandbox(
    tmp_path: Path, work: Path, args: dict[str, Any], what: str, problem: str
) -> None:
    skill(tmp_path / "skills", "sums", tools=SANDBOX)
    left = "{limits = {wall_ms = 5000, memory_bytes = 104857600}, network = [], commands = ['python']}"
    toml = f"[skills.sums]\nsandbox = {left}\n"
    loose = "network = ['a.example']\n"
    project = given(tmp_path, work, call(("sandbox.exec", args)), {"say": "Done."}, toml=toml, sandbox=loose)
    asks = msgspec.structs.replace(project.policy, rules=({**ALLOW, "effect": "ask"},))
    async with opened(msgspec.structs.replace(project, policy=asks)) as remit:
        job = await remit.start(agent(task="Run it."), options=Options(skills=("sums",)))
        await asyncio.wait_for(remit.settled(job.id), PATIENCE_S)
        (question,) = await remit.service.confirmations.pending(job.id)
        preview = await remit.service.confirmations.preview(question.confirmation)
        assert preview is not None
        assert what in preview.what
        assert problem in preview.problem


LEFT = 'metadata:\n  remit-sandbox: \'{"limits": {"stdout_bytes": 4}, "commands": ["python"]}\''
RUNS: list[tuple[dict[str, Any], str]] = [
    ({"command": ["python", "-c", "print('0123456789')"]}, '"stdout":"0123"'),
    ({"command": ["python", "-c", "print('01')"], "policy": {"limits": {"stdout_bytes": 2}}}, '"stdout":"01"'),
    ({"command": ["python", "-c", "1"], "policy": {"limits": {"stdout_bytes": 5}}}, "Notallowed:"),
    ({"command": ["bash", "-c", "echo 1"]}, "Notallowed:"),
]


@pytest.mark.parametrize("whose", ["author", "operator"])
async def test_a_skill_leaves_less_of_the_sandbox(tmp_path: Path, work: Path, whose: str) -> None:
    words = "tools = ['sandbox.exec']\n"
    if whose == "operator":
        words += "sandbox = {limits = {stdout_bytes = 4}, commands = ['python', 'no-such']}\n"
    place = skill(tmp_path / "skills", "sums")
    if whose == "author":
        manifest = place / "SKILL.md"
        manifest.write_text(manifest.read_text().replace("description: A skill.", f"description: A skill.\n{LEFT}"))
    steps = [call(("sandbox.exec", args)) for args, _ in RUNS]
    found = given(tmp_path, work, *steps, {"say": "Done."}, toml=f"[skills.sums]\n{words}")
    ended = await ran(found, str([args for args, _ in RUNS]))
    for result, (args, told) in zip(ended.results, RUNS, strict=True):
        assert told in result.replace(" ", ""), args
    (pin,) = ended.created.skills
    assert [one["limits"] for one in pin.sandbox] == [{"stdout_bytes": 4}]
