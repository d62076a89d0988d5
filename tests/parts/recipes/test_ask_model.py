from __future__ import annotations

from pathlib import Path

from remit import Remit
from remit.jobs.plans.source import parse_plan
from remit.parts.agents.recipes import ask_model
from remit.settings import load

PLAN = """
version: taskgraph-v1
name: triage
nodes:
  - id: urgent
    recipe: ask_model
    input: {prompt: Is it urgent?, output: {type: object, properties: {urgent: {type: boolean}}, required: [urgent]}}
  - id: act
    recipe: agent
    input: {task: Go on., turns: 3}
    when: ${urgent.value.urgent}
output: ${act.value.answer}
"""


async def test_a_question_is_a_job_and_a_node_of_a_plan_and_so_is_an_agent(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("""[{say: '{"urgent": true}'}]""")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:"}
    async with Remit(settings=load(cwd=tmp_path, file=None, env={}, flags=flags)) as remit:
        assert await remit.run(ask_model(prompt="?")) == '{"urgent": true}'
        plan = parse_plan(PLAN, "triage.yaml", recipes=remit.service.recipes.names())
        job = await remit.start_plan(plan)
        assert await job == '{"urgent": true}'
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
