"""Files that a job edits: each change is shown as a diff, and made once somebody has approved it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit import Code, Remit
from remit.app import JobEndedError
from remit.canonical import sha256
from remit.parts.documents.edit_docs import Edit, edit_docs
from remit.settings import load
from tests.opened import until_waiting

ALLOWED = [{"id": "edits", "effect": "allow", "tools": ["doc.apply_edit"]}]
PLAN = "Budget\n\nThe rent is 900 euros.\n"
EDIT = [Edit(search="900 euros", replace="950 euros")]


def opened(folder: Path, **flags: Any) -> Remit:
    (folder / "plan.md").write_text(PLAN)
    (folder / "other.txt").write_text("We pay 900 euros.\n")
    flags = {"journal.url": ":memory:", "fs.roots": [str(folder)], **flags}
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags))


async def test_each_file_is_asked_about_with_its_diff_and_only_what_is_approved_is_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as remit:
        job = await remit.start(edit_docs(["plan.md", "other.txt"], EDIT))
        await until_waiting(remit, job.id)
        questions = {one.args["path"]: one for one in await remit.service.confirmations.pending() if one.args}
        assert sorted(questions) == ["other.txt", "plan.md"]
        preview = await remit.service.confirmations.preview(questions["plan.md"].confirmation)
        assert preview is not None
        assert "-The rent is 900 euros.\n+The rent is 950 euros.\n" in preview.diff
        assert (tmp_path / "plan.md").read_text() == PLAN
        plan, other = questions["plan.md"], questions["other.txt"]
        await remit.service.confirmations.decide(plan.confirmation, "approve", digest=plan.digest)
        await remit.service.confirmations.decide(other.confirmation, "deny", digest=other.digest)
        found = await job
        assert (found["edited"], [(one["path"], one["state"]) for one in found["files"]]) == (
            1,
            [("plan.md", "edited"), ("other.txt", "denied")],
        )
        assert (tmp_path / "plan.md").read_text() == PLAN.replace("900", "950")
        assert (tmp_path / "other.txt").read_text() == "We pay 900 euros.\n"
        assert found["files"][0]["sha256_before"] == sha256(PLAN.encode())
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_file_that_changes_while_somebody_decides_is_not_edited(tmp_path: Path) -> None:
    async with opened(tmp_path) as remit:
        job = await remit.start(edit_docs(["plan.md", "other.txt"], [*EDIT, Edit(search="Bud", replace="B", path="x")]))
        await until_waiting(remit, job.id)
        (tmp_path / "plan.md").write_text("Somebody else wrote 900 euros.\n")
        for one in await remit.service.confirmations.pending():
            await remit.service.confirmations.decide(one.confirmation, "approve", digest=one.digest, reason="")
        states = {one["path"]: (one["state"], one["reason"]) for one in (await job)["files"]}
        assert states["other.txt"] == ("edited", "")
        assert states["plan.md"][0] == "failed"
        assert "changed since" in states["plan.md"][1]
        assert (tmp_path / "plan.md").read_text() == "Somebody else wrote 900 euros.\n"


async def test_a_model_writes_the_edits_and_is_told_what_does_not_fit(tmp_path: Path) -> None:
    wrong = {"edits": [{"search": "800 euros", "replace": "950 euros"}]}
    right = {"edits": [{"search": "900 euros", "replace": "950 euros"}]}
    script = [{"say": json.dumps(wrong)}, {"say": json.dumps(right)}]
    (tmp_path / "model.yaml").write_text(json.dumps(script))
    flags = {"models.default": "scripted:model.yaml", "policy.rules": ALLOWED}
    async with opened(tmp_path, **flags) as remit:
        job = await remit.start(edit_docs(["plan.md"], instruction="The rent is 950 euros now."))
        found = await job
        assert (found["edited"], (tmp_path / "plan.md").read_text()) == (1, PLAN.replace("900", "950"))
        events = await remit.runtime.journal.read(f"job/{job.id}", 0)
        announced = [json.loads(event.data) for event in events if event.kind == "tool_invocation_started"]
        assert [one["tool_name"] for one in announced] == [
            "doc.read",
            "doc.propose_edit",
            "doc.propose_edit",
            "doc.apply_edit",
        ]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_model_that_changes_nothing_leaves_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(json.dumps([{"say": json.dumps({"edits": []})}]))
    async with opened(tmp_path, **{"models.default": "scripted:model.yaml"}) as remit:
        found = await remit.run(edit_docs(["plan.md"], instruction="Nothing."))
        assert [(one["state"], found["edited"]) for one in found["files"]] == [("unchanged", 0)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"paths": ["plan.md"]}, "give either edits or an instruction"),
        ({"paths": ["gone.md"], "edits": EDIT}, "gone.md"),
        ({"paths": ["plan.md"], "edits": [Edit(search="e", replace="x")]}, "occurs more than once"),
        ({"paths": ["../x"], "edits": EDIT}, "climbs"),
    ],
)
async def test_where_no_file_can_be_edited_the_job_fails(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    async with opened(tmp_path) as remit:
        with pytest.raises(JobEndedError, match=words) as caught:
            await remit.run(edit_docs(**given))
        assert caught.value.code is (Code.TOOL_EXEC_FAILED if "edits" in given else Code.INVALID_INPUT)
