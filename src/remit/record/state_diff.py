"""Changes that a call made outside the job: whether it happened, and the state before and after, as it says."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from remit.journal.blobs import BlobRef
from remit.journal.effects import Effect, effect_of
from remit.journal.kinds import OptionalRaw, OptionalRef, Sayer, StepCompensated, ToolInvocationFinished
from remit.journal.kinds import ToolInvocationStarted as Started
from remit.redact import mask, preview_of

_BEFORE: Final = "before"
_UNSAID: Final = "not recorded"
_DIFF: Final = 4_000
"""Characters of a change that are shown."""


class StateDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step changed outside the job."""

    side_effect: str
    """`read`, `write` or `unknown`, as the tool declares it."""
    effect: Literal["none", "committed", "undone", "unknown"]
    idempotency_key: str
    effect_by: Sayer = ""
    """The one who says so: `remit`, which did not send it or heard nothing; the `tool`, by its answer; a `person`."""
    before: str = ""
    """The state before, as far as the result says so: JSON on one line, with secrets masked, and cut."""
    after: str = ""
    """The same, afterwards."""
    diff: str = ""
    """The lines that went and came, as far as the result says so: masked and cut."""
    kept: BlobRef | None = None
    """The result, where it is too long for its event and was not read."""

    @property
    def words(self) -> str:
        """Return effect and who says so, for people."""
        if self.effect == "undone":
            return "it happened, and was undone"
        return Effect(self.effect, self.effect_by).words

    def told_by(self, recorded: bytes) -> StateDiff:
        """Return it with what a result says: `diff`, `before` and `after`, `NAME_before` and `NAME_after` or `NAME`."""
        try:
            result = msgspec.json.decode(recorded)
        except msgspec.DecodeError:  # it was changed since, as `remit verify` says: it tells nothing
            result = None
        before, after = _states(result) if isinstance(result, dict) else ({}, {})
        diff = result.get("diff") if isinstance(result, dict) else ""
        return msgspec.structs.replace(
            self,
            kept=None,
            before=preview_of(before) if before else "",
            after=preview_of(after) if before else "",
            diff=mask(diff)[:_DIFF] if isinstance(diff, str) else "",
        )


def state_diff(
    started: Started, finished: ToolInvocationFinished | None, undone: StepCompensated | None
) -> StateDiff | None:
    """Return what a call changed; None for one that only reads."""
    effect = effect_of(started, finished)
    if not effect.known:
        return None
    diff = StateDiff(
        side_effect=started.side_effect,
        effect="undone" if undone is not None and undone.outcome == "compensated" else effect.known,
        effect_by=effect.by,
        idempotency_key=started.idempotency_key,
    )
    return _with_result(diff, finished.result, finished.result_blob) if finished is not None else diff


def _with_result(diff: StateDiff, inline: OptionalRaw, ref: OptionalRef) -> StateDiff:
    if isinstance(inline, msgspec.Raw):
        return diff.told_by(bytes(inline))
    return msgspec.structs.replace(diff, kept=ref) if isinstance(ref, BlobRef) else diff


def _states(result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state before and after, by the same names."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for member, value in result.items():
        name = member.removesuffix(_BEFORE)
        if member == _BEFORE:
            before["state"], after["state"] = value, result.get("after", _UNSAID)
        elif member != name and name.endswith("_"):
            name = name.removesuffix("_")
            before[name], after[name] = value, result.get(f"{name}_after", result.get(name, _UNSAID))
    return before, after
