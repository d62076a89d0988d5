"""The trace of a job or session as one HTML file: times, a search, what led to what, and what effects changed.

Causes of the steps of a job or session, as far as they are recorded.

One HTML file that needs nothing else: for people who open it from a mail, in years, without Remit or a network.

Every value is escaped and made visible by the templates of the console. The policy of the file allows the style and the
script that stand in it, by their digests, and nothing else: no request, no form, no other script.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from remit.clock import isoformat
from remit.errors import JournalError
from remit.jobs.state import KIND
from remit.journal import kinds as k
from remit.journal.lineage import whole
from remit.models.message import Message, ToolMessage
from remit.models.message import decode as message_of
from remit.pages.page import PageView, visible
from remit.pages.renderer import Shell, render
from remit.record.heads import head_of, stream_named
from remit.record.job_story import beside, story_of, whole_step
from remit.record.states import shown_state
from remit.record.views import job_row
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remit.journal.journal import Journal
    from remit.record.step import StepNarrative
    from remit.record.story import Narrative


class Causes:
    """The earlier steps that each step goes back to."""

    def __init__(self, journal: Journal) -> None:
        self.of: dict[str, dict[tuple[str, str], None]] = {}
        """By step: the earlier steps, each with why."""
        self._journal = journal
        self._wanted: dict[str, str] = {}
        """By the identifier of a call: the step of the model that wanted it."""
        self._steps: dict[str, str] = {}
        """By the same: the step that made it."""
        self._ends: dict[int, str] = {}
        """By position in the stream at hand: the step that ended there."""

    async def read(self, job: str) -> None:
        """Read a job or session. Raise JournalError."""
        for stream in [stream_named(job), *await beside(self._journal, job)]:
            self._ends.clear()
            for event in await whole(self._journal, await self._journal.read(stream)):
                payload = k.decode(event.kind, event.data) if event.kind in _READ else None
                if isinstance(payload, k.ToolInvocationFinished):
                    self._ends[event.seq] = payload.step
                elif payload is not None:
                    await _READERS[event.kind](self, payload)

    def _add(self, step: str, earlier: str, reason: str) -> None:
        if earlier and earlier != step:
            self.of.setdefault(step, {})[earlier, reason] = None

    async def start(self, call: k.ToolInvocationStarted) -> None:
        """Take a call: the model that wanted it, and the results that rules looked at."""
        await self.refuse(call)
        for position in call.facts.seen.values() if call.facts is not msgspec.UNSET else ():
            self._add(call.step, self._ends.get(position, ""), "a rule looked at")

    async def refuse(self, call: k.ToolInvocationStarted | k.GateRefused) -> None:
        """Take a call that was refused: the model that wanted it."""
        self._steps[call.call_id] = call.step
        self._add(call.step, self._wanted.get(call.call_id, ""), "asked for by")

    async def ask(self, question: k.CommandStarted) -> None:
        """Take a question to a model: the results that it reads."""
        for added in question.added:
            message = _message(await self._bytes(added.body, added.body_blob))
            for block in message.blocks if message is not None else ():
                if isinstance(block, ToolMessage):
                    self._add(question.step, self._steps.get(block.id, ""), "read")

    async def answer(self, answer: k.CommandCommitted) -> None:
        """Take the answer of a model: the calls that it wants."""
        message = _message(await self._bytes(answer.result, answer.result_blob))
        for call in message.calls if message is not None else ():
            self._wanted[call.id] = answer.step

    async def undo(self, undone: k.StepCompensated) -> None:
        """Take that a step undid another."""
        self._add(undone.undo_step, undone.step, "undoes")

    async def _bytes(self, inline: k.OptionalRaw, ref: k.OptionalRef) -> bytes:
        try:
            return await self._journal.value(inline, ref) or b""
        except JournalError:
            return b""  # erased or gone: what else is recorded is told all the same


def _message(recorded: bytes) -> Message | None:
    try:
        return message_of(recorded) if recorded else None
    except msgspec.DecodeError:
        return None  # of an older Remit, or a value of another form


_READERS: Final[dict[str, Callable[[Causes, Any], Awaitable[None]]]] = {
    k.ToolInvocationStarted.KIND: Causes.start,
    k.GateRefused.KIND: Causes.refuse,
    k.CommandStarted.KIND: Causes.ask,
    k.CommandCommitted.KIND: Causes.answer,
    k.StepCompensated.KIND: Causes.undo,
}
_READ: Final = {*_READERS, k.ToolInvocationFinished.KIND}


_FOLDER: Final = Path(__file__).parent / "static"
_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{}'; script-src '{}'; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer"><title>{} · Remit</title>
<style>{}</style></head><body>
"""


def document(view: PageView, now: int) -> bytes:
    """Return a view as a file of its own, made at the moment `now`."""
    shell = Shell(
        items=(), links=(), who="", csrf="", can=frozenset(), now=now, zone=UTC, here="", listens=False, again=False
    )
    style, script = _text("document.css"), _text("document.js")
    head = _HEAD.format(_source(style), _source(script), html.escape(visible(view.title)), style)
    return b"".join((head.encode(), render(view, shell), f"\n<script>{script}</script></body></html>\n".encode()))


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()


def _source(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_PITCH: Final = 20
"""Height of a step in the graph."""
_FILE: Final = 1_000_000
"""Bytes that a file may have, and so many more for each thousand steps beyond the first."""
_LENGTHS: Final = (0, 80, 20)
"""Characters that values are cut to, one after the other, until the file is small enough; 0: as `remit trace` does."""
_DIFFS: Final = 200_000
"""Characters of all changes that are shown."""
_TONES: Final = {"failed": "f", "blocked": "f", "unknown": "k", "waiting": "k", "running": "w"}


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What a step goes back to, as it was recorded."""

    number: int
    """The number of the earlier step."""
    step: str
    reason: str
    is_untrusted: bool = False


class ChangeLine(msgspec.Struct, frozen=True):
    """A line of a change."""

    mark: str
    text: str


class StepItem(msgspec.Struct, frozen=True, kw_only=True):
    """A step as the file shows it."""

    number: int
    step: str
    name: str
    state: str
    tone: str
    offset: int
    """Microseconds since the beginning."""
    took: int
    left: int
    """Where its bar begins, and how long it is, in thousandths of the whole."""
    width: int
    facts: tuple[tuple[str, str], ...]
    """Names and texts, without what is not recorded."""
    causes: tuple[Cause, ...]
    change: tuple[ChangeLine, ...]
    """The lines that its effect took away and put in."""
    has_effect: bool
    """Return whether it changed something, or may have."""


class StepNode(msgspec.Struct, frozen=True, kw_only=True):
    """A step in the graph."""

    number: int
    y: int
    label: str


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the graph."""

    path: str
    reason: str
    is_untrusted: bool


class TraceView(PageView, frozen=True, kw_only=True):
    """A job or session."""

    template: ClassVar[str] = "trace.html"
    narrative: Narrative
    state: str
    items: tuple[StepItem, ...]
    nodes: tuple[StepNode, ...]
    edges: tuple[Edge, ...]
    height: int
    digests: tuple[tuple[str, str], ...]
    """Digests that steps name by their beginning, whole, and of what."""
    brief: int
    """The number of characters that values are cut to; 0: they are shown as everywhere."""
    made_at: int


async def trace(journal: Journal, job: str) -> bytes:
    """Return the trace of a job or session as an HTML file. Raise NotFoundError and JournalError."""
    head, story = await head_of(journal, job), await story_of(journal, job)
    state = shown_state(job_row(head)) if head.kind == KIND else "session"
    narrative = story.narrative(stopped=state == "stopped")
    steps = [await whole_step(journal, step) for step in narrative.steps]
    causes, data = Causes(journal), b""
    await causes.read(job)
    for most in _LENGTHS:
        data = document(_view(narrative, steps, causes, state, journal.clock.now(), most), journal.clock.now())
        if len(data) <= max(_FILE, len(steps) * _FILE // 1_000):
            break
    return data


def _view(
    narrative: Narrative, steps: list[StepNarrative], causes: Causes, state: str, now: int, most: int
) -> TraceView:
    items = _items(narrative, steps, causes, now, most)
    nodes, edges = _graph(items)
    return TraceView(
        title=f"{narrative.name or narrative.kind} {narrative.job}",
        narrative=narrative,
        state=state,
        items=items,
        nodes=nodes,
        edges=edges,
        height=len(nodes) * _PITCH + 8,
        digests=tuple(dict.fromkeys(pair for step in steps for pair in _digests(step))),
        brief=most,
        made_at=now,
    )


def _items(
    narrative: Narrative, steps: list[StepNarrative], recorded: Causes, now: int, most: int
) -> tuple[StepItem, ...]:
    begin = min([narrative.created_at, *(step.started_at for step in steps)])
    end = narrative.ended_at or max([begin + 1, *(step.ended_at or step.started_at for step in steps)])
    numbers = {step.step: number for number, step in enumerate(steps, 1)}
    room = _DIFFS // 10 if most else _DIFFS
    items = []
    for number, step in enumerate(steps, 1):
        until = step.ended_at or (now if step.state == "running" else step.started_at)
        left = (step.started_at - begin) * 1_000 // max(1, end - begin)
        effect = step.state_diff
        diff = effect.diff[:room] if effect is not None else ""
        room -= len(diff)
        items.append(
            StepItem(
                number=number,
                step=step.step,
                name=step.name.removeprefix("tool."),
                state=step.state,
                tone=_TONES.get(step.state, ""),
                offset=step.started_at - begin,
                took=until - step.started_at,
                left=left,
                width=max(2, min(1_000 - left, (until - step.started_at) * 1_000 // max(1, end - begin))),
                facts=tuple((name, _cut(text, most)) for name, text in _facts(step) if text),
                causes=tuple(_causes(step, recorded, numbers)),
                change=tuple(_lines(diff)),
                has_effect=effect is not None and (effect.effect != "none" or bool(diff or effect.before)),
            )
        )
    return tuple(items)


def _cut(text: str, most: int) -> str:
    return f"{text[:most]}…" if most and len(text) > most else text


def _lines(diff: str) -> Iterable[ChangeLine]:
    for text in diff.splitlines():
        mark = text[:1] if text[:1] in {"+", "-"} and text[:3] not in {"+++", "---"} else ""
        yield ChangeLine(mark, text)


def _causes(step: StepNarrative, recorded: Causes, numbers: dict[str, int]) -> Iterable[Cause]:
    for earlier, reason in recorded.of.get(step.step, ()):
        if earlier in numbers:
            yield Cause(number=numbers[earlier], step=earlier, reason=reason)
    arguments = step.untrusted.arguments if step.untrusted is not None else ()
    for earlier, path in dict.fromkeys((argument.step, argument.path) for argument in arguments):
        if earlier in numbers:
            reason = f"took {line(path)} from untrusted"
            yield Cause(number=numbers[earlier], step=earlier, reason=reason, is_untrusted=True)


def _facts(step: StepNarrative) -> Iterable[tuple[str, str]]:
    """Give what is told of a step, by name."""
    tool, model, effect = step.tool_invocation, step.llm_invocation, step.state_diff
    yield "arguments", step.args_preview
    yield "result", step.result_preview
    yield "why", line(" ".join(filter(None, (step.code, step.reason, step.remedy))))
    yield "for", line(step.principal)
    yield "decided by", f"{step.rule_id} of policy {_short(step.policy_hash)}" if step.policy_hash else step.rule_id
    if tool is not None:
        yield (
            "tool",
            " ".join(filter(None, (tool.provider, line(tool.version), step.capability_level, step.risk_level))),
        )
        yield "schemas", " → ".join(filter(None, map(_short, (tool.request_schema_hash, tool.response_schema_hash))))
    if model is not None:
        temperature = f", temperature {model.temperature:g}" if model.temperature is not None else ""
        yield "model", f"{model.provider}/{model.model}{temperature}, prompt {_short(model.prompt_hash)}"
        yield "took", model.words
    for attempt in step.attempts if len(step.attempts) > 1 else ():
        yield (
            f"attempt {attempt.number}",
            line(" ".join(filter(None, (attempt.outcome, attempt.code, attempt.message)))),
        )
    for question in step.confirmations:
        for answer in question.decisions:
            who = f"{line(answer.by) or 'no one'}: {answer.decision} {_short(answer.digest)}"
            yield f"question {question.confirmation}", f"{who} {line(answer.reason)}".rstrip()
    for waited in step.waits:
        came = "timed out" if waited.timed_out else "" if waited.until is None else f"came {line(waited.answer)}"
        yield f"waited for {waited.type}", line(" ".join(filter(None, (waited.key, waited.by, came))))
    if effect is not None:
        yield "effect", f"{effect.kind}: {effect.words}; key {_short(effect.idempotency_key)}"
        yield "before", effect.before
        yield "after", effect.after
    yield "repaired", step.repaired
    yield from _logged(step)
    for item in step.evidence:
        yield "evidence", line(f"{item.get('kind', '')} {item.get('source', '')} {_short(str(item.get('hash', '')))}")
    for drift in step.drifts:
        yield "drift", f"{drift.words}: {line(drift.recorded)} → {line(drift.current)}"
    yield "taken from", step.taken_from


def _logged(step: StepNarrative) -> Iterable[tuple[str, str]]:
    for each in step.log.lines if step.log is not None else ():
        yield "log", f"{isoformat(each.at)} {each.level}: {each.text}"


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]


def _digests(step: StepNarrative) -> Iterable[tuple[str, str]]:
    tool, model = step.tool_invocation, step.llm_invocation
    digests = {"policy": step.policy_hash}
    if tool is not None:
        digests |= {
            f"arguments of {tool.tool}": tool.request_schema_hash,
            f"result of {tool.tool}": tool.response_schema_hash,
        }
    if model is not None and model.prompt_hash:
        digests["prompt"] = model.prompt_hash
    return [(about, digest) for about, digest in digests.items() if digest]


def _graph(items: tuple[StepItem, ...]) -> tuple[tuple[StepNode, ...], tuple[Edge, ...]]:
    """The steps that lead to others or come from some, below one another, with an arc from each to each."""
    linked = {number for item in items for cause in item.causes for number in (item.number, cause.number)}
    nodes = [
        StepNode(number=item.number, y=place * _PITCH + 14, label=f"{item.step} {item.name}"[:40])
        for place, item in enumerate(item for item in items if item.number in linked)
    ]
    heights = {node.number: node.y for node in nodes}
    edges = []
    for item in items:
        for cause in item.causes:
            above, below = heights[cause.number], heights[item.number]
            bend = 84 - min(76, 8 + abs(below - above) // 4)
            path = f"M84,{above}C{bend},{above} {bend},{below} 84,{below}"
            edges.append(
                Edge(path=path, reason=f"{item.step} {cause.reason} {cause.step}", is_untrusted=cause.is_untrusted)
            )
    return tuple(nodes), tuple(edges)
