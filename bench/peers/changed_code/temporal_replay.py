"""Temporal's `Replayer`: a history of two activities, and workflows whose code has changed since."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer

_QUEUE = "changed"
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


async def _activity(name: str, cents: int) -> str:
    result: str = await workflow.execute_activity(
        name, cents, start_to_close_timeout=timedelta(seconds=10), result_type=str
    )
    return result


@workflow.defn(name="run")
class Same:
    """The code that the history is of."""

    @workflow.run
    async def run(self) -> list[str]:
        """Pay, then mail."""
        return [await _activity("pay", 1), await _activity("mail", 1)]


@workflow.defn(name="run")
class Reorder:
    """Two activities in the other order."""

    @workflow.run
    async def run(self) -> list[str]:
        """Mail, then pay."""
        return [await _activity("mail", 1), await _activity("pay", 1)]


@workflow.defn(name="run")
class Rename:
    """The first activity under another name."""

    @workflow.run
    async def run(self) -> list[str]:
        """Pay, then mail."""
        return [await _activity("pay_now", 1), await _activity("mail", 1)]


@workflow.defn(name="run")
class Arguments:
    """The first activity with another argument."""

    @workflow.run
    async def run(self) -> list[str]:
        """Pay, then mail."""
        return [await _activity("pay", 2), await _activity("mail", 1)]


@workflow.defn(name="run")
class Insert:
    """One activity more, before the others."""

    @workflow.run
    async def run(self) -> list[str]:
        """Pay twice, then mail."""
        return [await _activity("pay_now", 1), await _activity("pay", 1), await _activity("mail", 1)]


def _payload(value: Any) -> dict[str, Any]:
    def encode(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return {"payloads": [{"metadata": {"encoding": encode("json/plain")}, "data": encode(json.dumps(value))}]}


class History:
    """Events as a server keeps them, numbered from 1."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, kind: str, attributes: dict[str, Any]) -> str:
        number = str(len(self.events) + 1)
        words = kind.split("_")
        field = words[0].lower() + "".join(word.title() for word in words[1:]) + "EventAttributes"
        event = {
            "eventId": number,
            "eventTime": (_BEGAN + timedelta(milliseconds=int(number))).isoformat(timespec="milliseconds"),
            "eventType": f"EVENT_TYPE_{kind}",
        }
        self.events.append({**event, field: attributes})
        return number

    def task(self, **completed: Any) -> str:
        """A workflow task from its schedule to its end."""
        queue = {"name": _QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"}
        scheduled = self.add(
            "WORKFLOW_TASK_SCHEDULED", {"taskQueue": queue, "startToCloseTimeout": "10s", "attempt": 1}
        )
        began = self.add("WORKFLOW_TASK_STARTED", {"scheduledEventId": scheduled, "identity": "worker"})
        ids = {"scheduledEventId": scheduled, "startedEventId": began, "identity": "worker"}
        return self.add("WORKFLOW_TASK_COMPLETED", {**ids, **completed})

    def begin(self) -> str:
        """The start of a run, and its first task. The flags are those of workers of today."""
        self.add(
            "WORKFLOW_EXECUTION_STARTED",
            {
                "workflowType": {"name": "run"},
                "taskQueue": {"name": _QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
                "workflowTaskTimeout": "10s",
                "originalExecutionRunId": "7f0c2f6e-0000-4000-8000-000000000001",
                "firstExecutionRunId": "7f0c2f6e-0000-4000-8000-000000000001",
                "attempt": 1,
            },
        )
        return self.task(sdkMetadata={"coreUsedFlags": [1, 2, 3]})

    def activity(self, number: int, name: str, cents: int, after: str, result: Any) -> None:
        """An activity from its schedule to its result."""
        scheduled = self.add(
            "ACTIVITY_TASK_SCHEDULED",
            {
                "activityId": str(number),
                "activityType": {"name": name},
                "taskQueue": {"name": _QUEUE, "kind": "TASK_QUEUE_KIND_NORMAL"},
                "input": _payload(cents),
                "startToCloseTimeout": "10s",
                "workflowTaskCompletedEventId": after,
            },
        )
        began = self.add("ACTIVITY_TASK_STARTED", {"scheduledEventId": scheduled, "identity": "worker", "attempt": 1})
        ids = {"scheduledEventId": scheduled, "startedEventId": began, "identity": "worker"}
        self.add("ACTIVITY_TASK_COMPLETED", {**ids, "result": _payload(result)})

    def whole(self) -> WorkflowHistory:
        """Return it as the SDK takes it."""
        return WorkflowHistory.from_json("run", json.dumps({"events": self.events}))


def history() -> WorkflowHistory:
    """A run that paid and mailed; without the flags of its first task other activities pass."""
    run = History()
    run.activity(1, "pay", 1, run.begin(), "pay 1")
    run.activity(2, "mail", 1, run.task(), "mail 1")
    run.task()
    return run.whole()


async def main() -> None:
    """Replay the history with each version of the code."""
    quiet = Runtime(telemetry=TelemetryConfig(logging=None))
    versions = {"same": Same, "reorder": Reorder, "rename": Rename, "other arguments": Arguments, "insert": Insert}
    for change, version in versions.items():
        try:
            await Replayer(workflows=[version], runtime=quiet).replay_workflow(history())
        except workflow.NondeterminismError as error:
            print(f"{change}: {str(error).partition('message: ')[2].partition(', source')[0]}")
        else:
            print(f"{change}: accepted")


if __name__ == "__main__":
    asyncio.run(main())
