"""Two runs laid beside each other: the steps that were put in, left out, or went otherwise. Pure.

Aligns the steps of two runs by place, tool and arguments.

A run is a tree: steps in order, and gathers of branches that run side by side. The items of one branch are laid beside
those of the same branch of the other run, so that a step that was put in moves none that follows it: first those that
are equal in tool and arguments, then between these the ones of the same tool, whose arguments differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.jobs.state import CallRecord
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.record.step import shown

if TYPE_CHECKING:
    from remit.record.step import StepNarrative
    from remit.record.story import EventStory


_MOST: Final = 3_000
"""Items between two equal beginnings and ends that are compared each with each; more are taken as they come."""


class StepMark(NamedTuple):
    """The marks of a step that it is found again by."""

    step: str
    what: str
    """Tool of it, or its kind of effect."""
    input_digest: str
    """Digest of what it was given; empty: not known, or nothing."""


class _Item(NamedTuple):
    """Item of a branch: a step with what lies below it, or the steps of a gather or of one of its branches."""

    key: tuple[str, int]
    place: str
    marks: tuple[StepMark, ...]

    @property
    def name(self) -> str:
        """Return its name within its branch."""
        return self.place.rpartition(".")[2]

    @property
    def own(self) -> bool:
        """Return whether it is a step itself."""
        return self.marks[0].step == self.place


def aligned(left: Sequence[StepMark], right: Sequence[StepMark]) -> list[tuple[str, str]]:
    """Return pairs of steps, in order; an empty one has no counterpart."""
    return list(_laid(_items("", left), _items("", right)))


def _items(prefix: str, marks: Sequence[StepMark]) -> list[_Item]:
    """The items of a branch, in the order of their first steps."""
    items: dict[str, list[StepMark]] = {}
    for mark in marks:
        items.setdefault(prefix + mark.step[len(prefix) :].partition(".")[0], []).append(mark)
    return [_Item(_key(place, below), place, tuple(below)) for place, below in items.items()]


def _key(place: str, marks: Sequence[StepMark]) -> tuple[str, int]:
    first = marks[0]
    if first.step == place:
        return first.what, hash(first.input_digest)
    return "gather", hash(tuple((mark.what, mark.input_digest) for mark in marks))


def _laid(left: Sequence[_Item], right: Sequence[_Item]) -> Iterator[tuple[str, str]]:
    begin = 0
    while begin < min(len(left), len(right)) and left[begin].key == right[begin].key:
        yield from _pair(left[begin], right[begin])
        begin += 1
    end = 0
    while end < min(len(left), len(right)) - begin and left[-1 - end].key == right[-1 - end].key:
        end += 1
    mine, its = left[begin : len(left) - end], right[begin : len(right) - end]
    if max(len(mine), len(its)) > _MOST:
        yield from _changed(mine, its)
    else:
        matcher = SequenceMatcher(None, [step.key for step in mine], [step.key for step in its], autojunk=False)
        for tag, step, two, three, four in matcher.get_opcodes():
            if tag == "equal":
                for first, second in zip(mine[step:two], its[three:four], strict=True):
                    yield from _pair(first, second)
            else:
                yield from _changed(mine[step:two], its[three:four])
    for first, second in zip(left[len(left) - end :], right[len(right) - end :], strict=True):
        yield from _pair(first, second)


def _changed(left: Sequence[_Item], right: Sequence[_Item]) -> Iterator[tuple[str, str]]:
    """Items that are not equal: those of the same kind in order, at the same place if there is one; others alone."""
    at = 0
    places = {(item.key[0], item.name): index for index, item in enumerate(right)}
    taken = {places.get((item.key[0], item.name)) for item in left}
    for item in left:
        place = places.get((item.key[0], item.name))
        if place is None or place < at:
            later = (index for index in range(at, len(right)) if index not in taken)
            place = next((index for index in later if right[index].key[0] == item.key[0]), None)
        if place is None:
            yield from ((mark.step, "") for mark in item.marks)
            continue
        yield from (("", mark.step) for other in right[at:place] for mark in other.marks)
        yield from _pair(item, right[place])
        at = place + 1
    yield from (("", mark.step) for other in right[at:] for mark in other.marks)


def _pair(left: _Item, right: _Item) -> Iterator[tuple[str, str]]:
    """Two items that belong together, and what lies below them."""
    if left.own and right.own:
        yield left.place, right.place
    mine, its = left.marks[left.own :], right.marks[right.own :]
    if mine or its:
        yield from _laid(_items(f"{left.place}.", mine), _items(f"{right.place}.", its))


Change = Literal["same", "changed", "removed", "added"]
"""`removed`: only the first run has it; `added`: only the second."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that differs."""

    about: str
    """`tool`, `input`, `result`, `state`, `version`, `model`, `approval`, `rule` or `cost` of a step; of a run also
    `code` and `recipe`."""
    a: str
    b: str


class StepDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of one run or of both."""

    change: Change
    name: str
    """As in the story: `tool.<name>`, or the kind of effect."""
    a: str = ""
    """Its place in the first run."""
    b: str = ""
    differences: tuple[Difference, ...] = ()
    a_ms: float = 0.0
    """Milliseconds that its newest attempt took."""
    b_ms: float = 0.0
    shared: bool = False
    """Whether it is one and the same event: the runs share it."""


class RunTotals(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    job: str
    name: str
    state: str
    steps: int
    approvals: int
    """Questions to people that its steps asked."""
    tokens: int
    cost: float | None
    """US dollars; null: no price is known of a model it asked, or it asked none."""
    ms: float
    """From its first to its last event."""


class RunDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, compared."""

    a: RunTotals
    b: RunTotals
    same: int
    """The number of steps that are the same; time is no difference."""
    changed: int
    removed: int
    added: int
    differences: tuple[Difference, ...]
    """Those of the runs as a whole."""
    steps: tuple[StepDiff, ...]
    """Those that differ, in order; with `every`, all."""


class Side(NamedTuple):
    """The knowledge of one run."""

    job: str
    story: EventStory
    state: str


def diff(a: Side, b: Side, *, every: bool = False) -> RunDiff:
    """Compare two runs."""
    mine, its = _told(a.story), _told(b.story)
    rows = []
    for left, right in aligned(_marks(a.story, mine), _marks(b.story, its)):
        rows.append(_row(a, mine.get(left), b, its.get(right)))
    counts = {change: sum(row.change == change for row in rows) for change in ("same", "changed", "removed", "added")}
    return RunDiff(
        a=_totals(a, mine),
        b=_totals(b, its),
        **counts,
        differences=tuple(_between(_run(a.story), _run(b.story))),
        steps=tuple(row for row in rows if every or row.change != "same"),
    )


def _told(story: EventStory) -> dict[str, StepNarrative]:
    return {step.step: step for step in story.tell()}


def _marks(story: EventStory, narratives: dict[str, StepNarrative]) -> list[StepMark]:
    return [StepMark(place, step.name, _given(story, place)) for place, step in narratives.items()]


def _given(story: EventStory, place: str) -> str:
    """Digest of what a step was given."""
    history = story.history
    if place in history.calls:
        record = history.calls[place]
        ended = record.started or record.refused
        return ended.arguments_hash if ended is not None else ""
    if place in history.models:
        return history.models[place].hash
    if place in history.children:
        return history.children[place].request_hash
    return next((key for (step, key) in history.waits if step == place and not key.startswith("c_")), "")


def _row(a: Side, left: StepNarrative | None, b: Side, right: StepNarrative | None) -> StepDiff:
    if right is None and left is not None:
        lines = tuple(Difference(about=about, a=text, b="") for about, text in _said(a.story, left))
        return StepDiff(change="removed", name=left.name, a=left.step, a_ms=_ms(left), differences=lines)
    if left is None and right is not None:
        lines = tuple(Difference(about=about, a="", b=text) for about, text in _said(b.story, right))
        return StepDiff(change="added", name=right.name, b=right.step, b_ms=_ms(right), differences=lines)
    if left is None or right is None:
        raise AssertionError((a.job, b.job))
    differences = tuple(_between(_facts(a.story, left), _facts(b.story, right)))
    taken = a.job == b.job or bool(left.taken_from or right.taken_from)
    shared = taken and (left.started_at, left.ended_at) == (right.started_at, right.ended_at)
    return StepDiff(
        change="changed" if differences else "same",
        name=right.name,
        a=left.step,
        b=right.step,
        differences=differences,
        a_ms=_ms(left),
        b_ms=_ms(right),
        shared=shared and not differences,
    )


def _said(story: EventStory, step: StepNarrative) -> list[tuple[str, str]]:
    """Return the input, the result and the state of a step without a counterpart."""
    facts = _facts(story, step)
    return [(about, facts[about][1]) for about in ("input", "result", "state") if facts[about][1]]


def _between(first: dict[str, tuple[str, str]], two: dict[str, tuple[str, str]]) -> Iterator[Difference]:
    for about in dict.fromkeys((*first, *two)):
        left, right = first.get(about, ("", "")), two.get(about, ("", ""))
        if left[0] != right[0]:
            yield Difference(about=about, a=left[1], b=right[1])


def _run(story: EventStory) -> dict[str, tuple[str, str]]:
    created, end = story.history.created, story.history.end
    facts = {}
    if created is not None:
        facts["recipe"] = (created.name, created.name)
        facts["code"] = (created.execution_version, created.execution_version)
        facts["input"] = _value(created.input, created.input_blob)
    if isinstance(end, k.JobCompleted):
        facts["result"] = _value(end.result, end.result_blob)
    if isinstance(end, k.JobFailed):
        text = f"{end.error.code}: {end.error.message}"
        facts["error"] = (text, text)
    return facts


def _facts(story: EventStory, step: StepNarrative) -> dict[str, tuple[str, str]]:
    history, place = story.history, step.step
    facts = {
        "tool": (step.name, step.name.removeprefix("tool.")),
        "input": (_given(story, place), step.args_preview),
        "result": _result(story, step),
        "state": (f"{step.state} {step.code}", f"{step.state} {step.code}".strip()),
    }
    record = history.calls.get(place)
    if record is not None:
        facts |= _of_call(record, step)
    if step.llm_invocation is not None:
        invocation = step.llm_invocation
        facts["model"] = (f"{invocation.provider} {invocation.model}",) * 2
        committed = history.models[place].committed
        if committed is not None and committed.cost is not None:
            facts["cost"] = (f"{committed.cost:.9f}", f"${committed.cost:.6f}")
    return facts


def _of_call(record: CallRecord, step: StepNarrative) -> dict[str, tuple[str, str]]:
    """The version, rule and approval of a call; which question that was does not count."""
    tool = step.tool_invocation
    decided = [decision for confirmation in step.confirmations for decision in confirmation.decisions]
    approval = ", ".join(f"{decision.decision} by {decision.by}" for decision in decided) or (
        "asked" if step.confirmation else ""
    )
    facts = {"approval": (approval, approval), "rule": (step.rule_id, step.rule_id)}
    if tool is not None and record.started is not None:
        schemas = (tool.request_schema_hash, tool.response_schema_hash)
        words = " ".join(filter(None, (tool.provider, tool.version, *(decision[7:19] for decision in schemas))))
        facts["version"] = ("|".join((tool.provider, tool.version, *schemas)), words)
    return facts


def _result(story: EventStory, step: StepNarrative) -> tuple[str, str]:
    history, place = story.history, step.step
    call, model = history.calls.get(place), history.models.get(place)
    ended: Any = call.finished if call is not None else model.committed if model is not None else None
    ended = ended or history.returned.get(place)
    if ended is not None:
        return _value(ended.result, ended.result_blob)[0], step.result_preview
    answer = step.result_preview or "; ".join(wait.answer for wait in step.waits if wait.answer)
    return answer, answer


def _value(inline: Any, ref: Any) -> tuple[str, str]:
    """Return the text that a recorded value is compared by, and the one that is shown."""
    if isinstance(ref, BlobRef):
        # In a run about a subject the digest is another one each time.
        return (f"{ref.bytes} {ref.preview}" if ref.key else ref.digest), shown(inline, ref)
    return (bytes(inline).decode(), shown(inline, ref)) if isinstance(inline, msgspec.Raw) else ("", "")


def _ms(step: StepNarrative) -> float:
    return step.duration_us / 1_000


def _totals(side: Side, narratives: dict[str, StepNarrative]) -> RunTotals:
    story, spent = side.story, side.story.history.spending.spent
    return RunTotals(
        job=side.job,
        name=story.name,
        state=side.state,
        steps=len(narratives),
        approvals=sum(len(step.confirmations) for step in narratives.values()),
        tokens=spent.tokens,
        cost=spent.cost if spent.calls and not spent.unpriced else None,
        ms=((story.ended_at or story.updated_at) - story.created_at) / 1_000,
    )
