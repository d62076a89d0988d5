from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.app import JobEndedError
from remit.codes import Code
from remit.parts.sandbox.recipe import run_code_snippet
from remit.parts.sandbox.scratch import scratch
from tests.opened import OpenRemit

ALLOWED = [{"id": "sandbox", "effect": "allow", "tools": ["sandbox.*"]}]


@pytest.fixture
def flags() -> Iterator[dict[str, Any]]:
    with scratch() as work:
        work.chmod(0o711)
        yield {"policy.rules": ALLOWED, "sandbox.folder": str(work)}


@pytest.mark.slow
async def test_code_runs_and_its_output_and_files_come_back(remit_in: OpenRemit, flags: dict[str, Any]) -> None:
    async with remit_in(flags=flags) as remit:
        code = "print(input()); open('made.txt', 'w').write(open('given.txt').read())"
        job = await remit.start(run_code_snippet("python", code, {"given.txt": "given"}, "asked"))
        found = await job
        assert (found["status"], found["stdout"]) == ("SUCCEEDED", "asked\n")
        assert [(one["path"], one["bytes"]) for one in found["artifacts"]] == [("made.txt", 5)]
        events = await remit.runtime.journal.read(f"job/{job.id}", 0)
        kept = b"".join(event.data for event in events if event.kind == "evidence_attached").decode()
        assert found["artifacts"][0]["sha256"] in kept


async def test_code_that_fails_is_a_result_and_replays(remit_in: OpenRemit, flags: dict[str, Any]) -> None:
    async with remit_in(flags=flags) as remit:
        job = await remit.start(run_code_snippet("python", "raise SystemExit(3)"))
        found = await job
        assert (found["status"], found["exit_code"]) == ("FAILED", 3)
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "same"


@pytest.mark.slow
async def test_files_with_names_that_are_not_utf_8_are_kept_and_replay(
    remit_in: OpenRemit, flags: dict[str, Any]
) -> None:
    async with remit_in(flags=flags) as remit:
        code = "import os; os.mkdir(b'd\\xff'); open(b'd\\xff/caf\\xe9.txt', 'w').write('x'); "
        code += "os.symlink(b'\\xfe', b'\\xfd')"
        job = await remit.start(run_code_snippet("python", code))
        found = await job
        assert [(one["path"], one["bytes"]) for one in found["artifacts"]] == [("d\\xff/caf\\xe9.txt", 1)]
        assert found["left_out"] == [{"path": "\\xfd", "why": "a symbolic link"}]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


@pytest.mark.slow
async def test_what_cannot_be_taken_is_listed_with_the_reason(remit_in: OpenRemit, flags: dict[str, Any]) -> None:
    async with remit_in(flags=flags) as remit:
        code = "ln -s /etc/passwd link; mkfifo pipe; echo x > one; ln one two; echo y > kept; mkdir d; ln -s .. d/up"
        found = await (await remit.start(run_code_snippet("bash", code)))
        assert [one["path"] for one in found["artifacts"]] == ["kept"]
        assert {one["path"]: one["why"] for one in found["left_out"]} == {
            "link": "a symbolic link",
            "d/up": "a symbolic link",
            "pipe": "a named pipe",
            "one": "it has more than one name (hard link)",
            "two": "it has more than one name (hard link)",
        }


@pytest.mark.slow
async def test_code_that_takes_too_long_is_ended(remit_in: OpenRemit, flags: dict[str, Any]) -> None:
    async with remit_in(flags=flags) as remit:
        found = await (await remit.start(run_code_snippet("bash", "echo so far; sleep 60", timeout_ms=300)))
        assert (found["status"], found["limit"], found["stdout"]) == ("TIMEOUT", "wall_ms", "so far\n")


async def test_without_a_sandbox_the_job_fails_in_words(remit_in: OpenRemit, flags: dict[str, Any]) -> None:
    async with remit_in(flags={**flags, "sandbox.bwrap": "/no/bwrap"}) as remit:
        job = await remit.start(run_code_snippet("bash", "echo x"))
        with pytest.raises(JobEndedError, match="Install bubblewrap") as failed:
            await job
        assert failed.value.code is Code.SANDBOX_UNAVAILABLE


async def test_where_a_rule_forbids_it_nothing_is_run(
    remit_in: OpenRemit, flags: dict[str, Any], tmp_path: Path
) -> None:
    rules = [{"id": "no-code", "effect": "deny", "tools": ["sandbox.exec"], "reason": "No code here."}, *ALLOWED]
    async with remit_in(flags={**flags, "policy.rules": rules}) as remit:
        job = await remit.start(run_code_snippet("bash", "echo x"))
        with pytest.raises(JobEndedError, match="No code here") as failed:
            await job
        assert failed.value.code is Code.POLICY_DENIED
