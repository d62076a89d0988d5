"""The results and arguments that a fork gives steps in place of recorded ones. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import UsageError
from remit.journal import kinds as k
from remit.journal.blobs import pack
from remit.models.message import Message, Text, encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remit.journal.event import Blob, Event


class Change(msgspec.Struct, frozen=True):
    """An event that a fork begins with, and the bytes beside it."""

    payload: k.Payload
    blobs: tuple[Blob, ...] = ()


def args_given(step: str, args: dict[str, Any], by: str) -> Change:
    """Give a step that runs again other arguments."""
    packed = pack(as_json(args))
    return Change(k.StepArgsGiven(step=step, args=packed.inline, args_blob=packed.ref, by=by), packed.blobs)


def result_given(step: str, value: Any, events: Iterable[Event], by: str) -> Change:
    """Give a recorded step another result; `events` are those of the step. Raises UsageError (FORK_INVALID).

    What a model said is a text; a moment is in microseconds since the Unix epoch.
    """
    recorded = [k.decode(event.kind, event.data) for event in events]
    last = next((one for one in reversed(recorded) if isinstance(one, _RESULTS)), None)
    try:
        match last:
            case k.ToolInvocationFinished():
                packed = pack(as_json(value))
                return Change(_finished(last, packed.inline, packed.ref, by), packed.blobs)
            case k.CommandCommitted():
                return _said(last, msgspec.convert(value, str))
            case k.WaitCompleted():
                packed = pack(as_json(value))
                came = {"payload": packed.inline, "payload_blob": packed.ref, "timed_out": False, "by": by}
                return Change(msgspec.structs.replace(last, inbox_seq=0, **came), packed.blobs)
            case k.TimeRecorded():
                return Change(k.TimeRecorded(step=step, value=msgspec.convert(value, int)))
            case k.RandomRecorded():
                return Change(k.RandomRecorded(step=step, value=msgspec.convert(value, float)))
            case k.UuidRecorded():
                return Change(k.UuidRecorded(step=step, value=msgspec.convert(value, str)))
            case _:
                pass
    except msgspec.ValidationError as error:
        why = f"this is no result for step {step}: {error}"
        raise UsageError(
            why, code=Code.FORK_INVALID, remedy="Look at what it returned: remit show JOB STEP."
        ) from error
    why = f"step {step} has no result that another one could take the place of"
    raise UsageError(why, code=Code.FORK_INVALID, remedy=f"Run it again instead: --at {step}.")


def _finished(last: k.ToolInvocationFinished, inline: k.OptionalRaw, ref: k.OptionalRef, by: str) -> k.Payload:
    outcome = last.step_outcome if last.outcome == "success" else "success"
    given = {"outcome": "success", "step_outcome": outcome, "error": None, "evidence": 0, "decided_by": by}
    if last.effect and last.outcome != "success":
        given |= {"effect": "committed", "effect_by": "person"}
    return msgspec.structs.replace(last, result=inline, result_blob=ref, **given)


def _said(last: k.CommandCommitted, text: str) -> Change:
    message = Message("assistant", (Text(text),), f"{last.llm_provider}/{last.llm_model}")
    packed = pack(encode(message))
    given = {"outcome": "success", "error": None, "again_ms": None, "finish_reason": "stop"}
    return Change(msgspec.structs.replace(last, result=packed.inline, result_blob=packed.ref, **given), packed.blobs)


_RESULTS = (
    k.ToolInvocationFinished,
    k.CommandCommitted,
    k.WaitCompleted,
    k.TimeRecorded,
    k.RandomRecorded,
    k.UuidRecorded,
)
