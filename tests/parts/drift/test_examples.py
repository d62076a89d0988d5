"""The three examples of the versioning contract, acted out: what drift, replay and resume say, strict mode included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import VersionError
from tests.opened import OpenRemit, until_waiting

ALLOW = {"policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}
STRICT = {**ALLOW, "jobs.mismatch": "fail"}
SENT: list[str] = []


@tool("mail.send", level="L1", version="v1.0.0")
async def send(text: str) -> str:
    SENT.append(text)
    return "sent"


def letters(*, required: bool) -> Any:
    """The next version of the tool, with one more field."""
    if required:

        @tool("mail.send", level="L1", version="v1.2.0")
        async def wanted(text: str, subject: str) -> str:
            SENT.append(f"{subject}: {text}")
            return "sent anew"

        return wanted

    @tool("mail.send", level="L1", version="v1.2.0")
    async def optional(text: str, subject: str = "") -> str:
        SENT.append(f"{subject}: {text}")
        return "sent anew"

    return optional


@recipe("orders", version="v1.0.0")
async def orders(run: Run) -> str:
    found = await run.call(send, "hello")
    await run.wait_signal("go")
    return found


@recipe("orders", version="v1.2.0")
async def newer(run: Run) -> str:
    found = (await run.call("mail.send", {"text": "hello"})).value
    await run.wait_signal("go")
    return f"{found}!"


async def ran(remit_in: OpenRemit, *, ends: bool = True, flags: dict[str, Any] = ALLOW) -> str:
    SENT.clear()
    async with remit_in(tools=[send], recipes=[orders], flags=flags) as remit:
        job = await remit.start(orders())
        await until_waiting(remit, job.id)
        if ends:
            await job.signal("go")
            assert await job == "sent"
    assert SENT == ["hello"]
    return job.id


@pytest.mark.parametrize(("required", "drift"), [(False, "compatible"), (True, "breaking")])
async def test_example_1_a_tool_whose_schema_changed(remit_in: OpenRemit, required: bool, drift: str) -> None:
    job = await ran(remit_in)
    async with remit_in(tools=[letters(required=required)], recipes=[orders], flags=ALLOW) as remit:
        found = await remit.service.drift.report(job)
        (changed,) = found.tools
        assert (changed.tool, changed.drift, changed.version) == ("mail.send", drift, "v1.2.0")
        (variant,) = changed.variants
        assert (variant.version, variant.calls) == ("v1.0.0", 1)
        assert variant.changes[0] == "version: v1.0.0 → v1.2.0"
        assert f"subject: new, {'required' if required else 'optional'}" in variant.changes
        assert changed.refused == int(required)
        assert [call.code for call in changed.examples] == ["INVALID_TOOL_ARGS"] * required
        report = await remit.service.jobs.replay(job)
        assert report.verdict == "same"  # the recorded result; no letter is sent
        assert {one.about for one in report.drifts} >= {"tool", "request"}
    assert SENT == ["hello"]


async def test_example_1_strict_refuses_the_replay_and_drift_still_tells_why(remit_in: OpenRemit) -> None:
    job = await ran(remit_in)
    async with remit_in(tools=[letters(required=True)], recipes=[orders], flags=STRICT) as remit:
        with pytest.raises(VersionError) as caught:
            await remit.service.jobs.replay(job)
        assert caught.value.code is Code.TOOL_SCHEMA_DRIFT
        assert (await remit.service.jobs.replay(job, anyway=True)).verdict == "same"
        assert (await remit.service.drift.report(job)).differs


SAYS = {"a": "[{say: Approve payment}]", "b": "[{say: Reject payment}]"}


@recipe("judge", version="1")
async def judge(run: Run, script: str) -> str:
    return (await run.model("May it be paid?", model=f"scripted:{script}.yaml")).text


async def judged(remit_in: OpenRemit, folder: Path) -> list[str]:
    for name, said in SAYS.items():
        (folder / f"{name}.yaml").write_text(said, encoding="utf-8")
    async with remit_in(recipes=[judge], flags=ALLOW) as remit:
        return [await remit.run(judge(name)) for name in SAYS]


async def test_example_2_the_same_prompt_brought_another_answer_from_another_model(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    assert await judged(remit_in, tmp_path) == ["Approve payment", "Reject payment"]
    async with remit_in(recipes=[judge], flags=ALLOW) as remit:
        found = await remit.service.drift.report()
        (output,) = found.outputs
        assert (output.answers, output.different, output.models) == (2, 2, 2)
        assert [one.preview for one in output.examples] == ["Approve payment", "Reject payment"]
        assert {one.name for one in found.models} == {"scripted:a.yaml", "scripted:b.yaml"}
        assert not any(one.moved for one in found.models)


async def test_example_2_strict_refuses_the_replay_under_another_model(remit_in: OpenRemit, tmp_path: Path) -> None:
    for name, said in SAYS.items():
        (tmp_path / f"{name}.yaml").write_text(said, encoding="utf-8")

    @recipe("asks", version="1")
    async def asks(run: Run) -> str:
        return (await run.model("May it be paid?")).text

    def models(name: str, mismatch: str = "warn") -> dict[str, Any]:
        return {**ALLOW, "models.default": f"scripted:{name}.yaml", "jobs.mismatch": mismatch}

    async with remit_in(recipes=[asks], flags=models("a")) as remit:
        job = await remit.start(asks())
        assert await job == "Approve payment"
    async with remit_in(recipes=[asks], flags=models("b")) as remit:
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "same"
        assert [one.current for one in report.drifts if one.about == "model"] == ["scripted/b.yaml"]
    async with remit_in(recipes=[asks], flags=models("b", "fail")) as remit:
        with pytest.raises(VersionError) as caught:
            await remit.service.jobs.replay(job.id)
        assert caught.value.code is Code.MODEL_DRIFT


async def test_example_3_other_code_warns_and_strict_refuses_resume_and_replay(remit_in: OpenRemit) -> None:
    job = await ran(remit_in, ends=False)
    async with remit_in(tools=[send], recipes=[newer], flags=ALLOW, work=False) as remit:
        (code,) = (await remit.service.drift.report(job)).code
        assert (code.name, code.change, code.open, code.ended) == ("orders", "changed", 1, 0)
        assert code.recorded.startswith("v1.0.0+")
        assert code.current.startswith("v1.2.0+")
        assert (await remit.service.jobs.replay(job)).verdict == "incomplete"
    async with remit_in(tools=[send], recipes=[newer], flags=STRICT) as remit:
        with pytest.raises(VersionError) as caught:
            await remit.service.jobs.replay(job)
        assert caught.value.code is Code.EXECUTION_VERSION_MISMATCH
    async with remit_in(tools=[send], recipes=[newer], flags=ALLOW) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == "sent!"
    assert SENT == ["hello"]


async def test_a_job_whose_code_and_tools_are_gone_is_told_of(remit_in: OpenRemit) -> None:
    job = await ran(remit_in)
    async with remit_in(flags=ALLOW, work=False) as remit:
        found = await remit.service.drift.report()
        assert [(one.tool, one.drift, one.ended) for one in found.tools] == [("mail.send", "gone", 1)]
        assert [(one.name, one.change) for one in found.code] == [("orders", "gone")]
        assert found.differs
        assert (await told(remit, job)).tools == found.tools


async def told(remit: Remit, job: str) -> Any:
    return await remit.service.drift.report(job)
