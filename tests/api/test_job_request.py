"""What files a job goes from options to a request and back, and nothing on the way is dropped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from remit.client.connection import ServerConnection
from remit.client.service import RemoteJobs
from remit.parts.agents.remote import RemoteConversations
from remit.service.options import Options

GIVEN = Options(
    title="Refund",
    labels={"team": "red"},
    priority=3,
    policy=({"effect": "deny", "tools": ["bank.*"]},),
    tools=("fs.read",),
    skills=("triage",),
    budget={"max_steps": 4},
    job="job_01jz8b9zafje0087wj5b222k6v",
    untrusted=True,
    delay_s=5.0,
    subject="ada",
)
SET_HERE = {"principal", "schedule"}
"""What no request can say: who asks is in the token, and a schedule starts its jobs itself."""
OF_A_NEW_JOB = {"delay_s", "subject"}
"""What an answer in a conversation has no place for."""


class Kept(ServerConnection):
    """Keeps the body of what it is asked, as it is sent, and answers that there is such a job."""

    async def ask(self, name: str, *path: str, body: Any = None, **more: Any) -> Any:
        self.body = msgspec.json.decode(msgspec.json.encode(body), type=type(body))
        return SimpleNamespace(job="job_1")


@pytest.mark.parametrize(
    ("ask", "left"),
    [
        (lambda one: RemoteJobs(one).start_named("r", {}, GIVEN), set()),
        (lambda one: RemoteConversations(one).say("job_1", "And last week?", GIVEN), OF_A_NEW_JOB),
    ],
    ids=["start", "say"],
)
async def test_a_request_of_a_twin_carries_every_option(ask: Any, left: set[str]) -> None:
    connection = Kept("http://127.0.0.1:1")
    await ask(connection)
    names = set(Options.__struct_fields__) - SET_HERE - left
    assert {name: getattr(connection.body, name) for name in names} == {name: getattr(GIVEN, name) for name in names}
    default = Options()
    assert [name for name in names if getattr(GIVEN, name) == getattr(default, name)] == []
