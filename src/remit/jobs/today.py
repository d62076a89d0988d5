"""Verdicts of today on the calls that a job recorded, as the gateway judges them: nothing is called or asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import PayloadErasedError
from remit.gateway.today import CallJudge
from remit.jobs.caller import caller_of
from remit.jobs.state import stream_of
from remit.policy.decision import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remit.gateway.services import Services
    from remit.jobs.records import CallRecord
    from remit.jobs.state import History
    from remit.policy.overlay import Overlay

Change = Literal["refused", "asks", "runs"]
"""A call that ran would be refused, or would have to be approved; or one that was refused would run, or ask."""
_ORDER: Final[tuple[Change, ...]] = ("refused", "asks", "runs")
_decode: Final = msgspec.json.Decoder().decode
_JUDGED: Final = frozenset({"", "resolve", "authorize", "ready", "validate_arguments", "load_confirmation", "confirm"})
"""Stages whose refusals are judged again; the others look at origins, budgets and what else runs."""

_OF_POLICY: Final = frozenset({Code.POLICY_DENIED.name, Code.SANDBOX_REQUIRED.name})
"""Codes of `authorize` that are judged again; with the others the caller barred the call, or a limit was unproven."""


class CallToday(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that would end in another way today."""

    step: str
    tool: str
    change: Change
    code: str = ""
    reason: str = ""


def worst(calls: tuple[CallToday, ...]) -> Change | Literal["same"]:
    """The class of all changes: the worst one's; `same` if there is none."""
    found = {call.change for call in calls}
    return next((change for change in _ORDER if change in found), "same")


async def calls_today(
    services: Services, history: History, job: str, labels: Mapping[str, str], recipe: str
) -> tuple[CallToday, ...]:
    """The recorded calls of a job that would not end as recorded, by schema, policy and readiness of today."""
    job_caller = await caller_of(history, job, labels, recipe, services.journal)
    caller = Caller(
        principal=job_caller.principal, kind=job_caller.kind, recipe=job_caller.recipe, stream=stream_of(job)
    )
    return await calls_of(services, history, caller, job_caller.overlays)


async def calls_of(
    services: Services, history: History, caller: Caller, overlays: Sequence[Overlay] = ()
) -> tuple[CallToday, ...]:
    """Return those of one caller's recorded calls that would not end as recorded."""
    changes, judge = [], CallJudge(services, caller, overlays)
    for step, record in history.calls.items():
        recorded = record.started or record.refused
        if recorded is None:
            continue
        encoded: bytes | msgspec.Raw | None
        if isinstance(recorded.args, msgspec.Raw):
            encoded = recorded.args
        else:
            try:
                encoded = await services.journal.value(recorded.args, recorded.args_blob)
            except PayloadErasedError:
                continue  # nothing is left to judge
        if encoded is None and record.started is None:
            continue  # an older Remit did not record the arguments of refused calls
        judged = await judge.judge(recorded.tool_name, _decode(encoded) if encoded is not None else {})
        change = _change(record, judged.effect)
        if change is not None:
            changes.append(
                CallToday(step=step, tool=recorded.tool_name, change=change, code=judged.code, reason=judged.reason)
            )
    return tuple(changes)


def _change(record: CallRecord, effect: Change) -> Change | None:
    started, refused = record.started, record.refused
    if refused is None:
        by_approval = started is not None and bool(started.confirmation)
        return None if effect == "runs" or (effect == "asks" and by_approval) else effect
    if refused.stage == "authorize" and refused.code not in _OF_POLICY:
        return None
    if effect == "refused" or refused.stage not in _JUDGED or (effect == "asks" and refused.confirmation):
        return None
    return effect
