"""Decisions on steps over HTTP: a person resolves a call whose outcome is unknown (rule 3)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from remit.api.route import ApiRequest, Route
from remit.codes import Code


class StepDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The outcome of a step."""

    decision: Literal["done", "retry", "fail"]
    value: Any = None
    """What the call returned, if it is `done`."""
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The attempt that was shown; null: the one that waits now."""
    reason: str = ""
    replace: bool = False
    """Correct the decision that stands, as long as no worker has continued it."""


async def decide(asked: ApiRequest) -> None:
    """Resolve a step whose end is not recorded; the first decision on an attempt counts."""
    body: StepDecision = asked.body
    await asked.service.steps.decide(
        asked.path["job"],
        asked.path["step"],
        body.decision,
        body.value,
        attempt=body.attempt,
        by=asked.principal,
        reason=body.reason,
        replace=body.replace,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/jobs/{job}/steps/{step}/decide",
        name="steps.decide",
        scope="decide",
        summary="Decide a step in doubt.",
        handler=decide,
        body=StepDecision,
        status=204,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.JOB_FINISHED,
            Code.STEP_NOT_FOUND,
            Code.STEP_NOT_WAITING,
            Code.STEP_DECIDED,
        ),
        example={"decision": "done", "value": {"sent": True}},
    ),
)
