"""Temporal's `Replayer`: gives the recorded results of a history back to a workflow, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from bench.peers.changed_code.temporal_replay import History
from bench.peers.program import STEPS, Meter, asked


@workflow.defn(name="run")
class Run:
    """Activities, one after the other."""

    @workflow.run
    async def run(self) -> int:
        """Give the number of the last one back."""
        number = 0
        for each in range(STEPS):
            number = await workflow.execute_activity(
                "step", each, start_to_close_timeout=timedelta(seconds=10), result_type=int
            )
        return number


def recorded(steps: int) -> WorkflowHistory:
    """The history of a run of so many activities that has not ended."""
    run = History()
    task = run.begin()
    for number in range(steps):
        run.activity(number + 1, "step", number, task, number)
        task = run.task()
    return run.whole()


def replay(meter: Meter) -> None:
    """A replay with the runner that is fastest: the one without a sandbox."""
    quiet = Runtime(telemetry=TelemetryConfig(logging=None))
    history = recorded(STEPS)

    async def measured() -> None:
        replayer = Replayer(workflows=[Run], runtime=quiet, workflow_runner=UnsandboxedWorkflowRunner())
        await replayer.replay_workflow(recorded(STEPS))  # warm
        meter.start()
        await replayer.replay_workflow(history)
        meter.stop(STEPS)

    asyncio.run(measured())


def main(workload: Callable[[Meter], None], _folder: Path) -> None:
    """Measure."""
    workload(Meter())


if __name__ == "__main__":
    asked({"replay": replay}, main)
