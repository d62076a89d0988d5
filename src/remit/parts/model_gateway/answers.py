"""The answers of a recorded run, given again: by what is asked and how often it was asked before, never by order.

Titles and summaries need no care then: their time does not matter. Numbers count the questions that offer tools.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError
from remit.jobs.state import stream_of
from remit.journal.blobs import BlobRef
from remit.journal.kinds import JobCreated, decode
from remit.parts.model_gateway.canonical import Identity, RequestDifference, first_difference, identity
from remit.parts.model_gateway.kinds import ModelGatewayAnswered, ModelGatewayAsked

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.parts.model_gateway.canonical import Results
    from remit.parts.model_gateway.wires import Request


class Recorded(NamedTuple):
    """A request of a recorded run, and its answer."""

    question: ModelGatewayAsked
    answered: ModelGatewayAnswered | None
    body: bytes
    answer: bytes


class Recording(NamedTuple):
    """A recorded run."""

    job: str
    calls: tuple[Recorded, ...]
    args: dict[str, Any]
    """The arguments of its call: the command, the folder."""

    @property
    def folder(self) -> str:
        """Return the folder as the program saw it: its path stands in the answers."""
        return str(self.args.get("at") or self.args.get("folder", ""))


class ReplayFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a replay and its record differ."""

    number: int
    """The question, counted among those that offer tools; 0: one that offers none."""
    step: str
    """The recorded question; empty: nothing like it is recorded."""
    path: str
    recorded: str
    now: str


async def recording_of(journal: Journal, job: str) -> Recording:
    """Read a recorded run. Raise NotFoundError if no model call is recorded in the job."""
    questions, answered, args = dict[str, ModelGatewayAsked](), dict[str, ModelGatewayAnswered](), dict[str, Any]()
    for event in await journal.read(stream_of(job)):
        payload = decode(event.kind, event.data)
        if isinstance(payload, ModelGatewayAsked):
            questions[payload.step] = payload
        elif isinstance(payload, ModelGatewayAnswered):
            answered[payload.step] = payload
        elif isinstance(payload, JobCreated):
            args = msgspec.json.decode(await journal.value(payload.input, payload.input_blob) or b"{}")
    if not questions:
        remedy = f"Record one: remit record -- COMMAND. `remit trace {job}` shows what this job did."
        raise NotFoundError(f"no model call of a program is recorded in {job}", code=Code.STEP_NOT_FOUND, remedy=remedy)
    segments: dict[str, list[bytes]] = {}
    calls = []
    for step, request in questions.items():
        segments[step] = await _segments(journal, request, segments)
        end = answered.get(step)
        answer = await _bytes(journal, end.answer_blob) if end is not None else b""
        calls.append(Recorded(request, end, b"".join(segments[step]), answer))
    return Recording(job, tuple(calls), args)


async def _segments(journal: Journal, request: ModelGatewayAsked, before: Mapping[str, list[bytes]]) -> list[bytes]:
    base = before.get(request.base, [])
    fresh = [await _bytes(journal, segment.body_blob) for segment in request.segments]
    return [*base[: request.first], *fresh, *(base[len(base) - request.last :] if request.last else ())]


async def _bytes(journal: Journal, ref: BlobRef | msgspec.UnsetType) -> bytes:
    if not isinstance(ref, BlobRef):
        return b""
    return await journal.value(msgspec.UNSET, ref) or b""


class Answers:
    """Gives the recorded answers of one run.

    From question `fork_at` on it gives none: models are asked; 0: every question has to be recorded.
    """

    def __init__(self, recording: Recording, *, fork_at: int = 0, results: Results = "aside") -> None:
        self.recording = recording
        self.matched = 0
        self.live = False
        """Whether the fork has come: what is asked now goes to models."""
        self.drifts: list[ReplayFinding] = []
        """Results of tools that differ; the recorded answers were given all the same."""
        self.first: ReplayFinding | None = None
        """The first question that is not recorded."""
        self.rules: set[str] = set()
        self._fork_at = fork_at
        self._results: Results = results
        self._number = 0
        self._then = roots_of(recording.folder, recording.args.get("home", ""))
        self._now = roots_of(recording.folder, os.environ.get("HOME", ""))
        self._open: dict[str, list[Recorded]] = {}
        for call in recording.calls:
            self._open.setdefault(self._recorded(call, results).digest, []).append(call)

    def take(self, request: Request, *, main: bool) -> Recorded | None:
        """Return the answer to a question; None: there is none, and `live` or `first` says why."""
        self._number += main
        number = self._number if main else 0
        if self.live or (self._fork_at and self._number >= self._fork_at):
            self.live = True
            return None
        wanted = self._identity(request, self._results)
        self.rules |= wanted.rules
        calls = self._open.get(wanted.digest)
        if not calls:
            self.first = self._worse(self.first, self._unmatched(request, number, main=main))
            return None
        call = calls.pop(0)
        self.matched += 1
        self._drift(request, call, number)
        return call

    def left(self) -> list[Recorded]:
        """Return the recorded questions that were not asked."""
        return [call for calls in self._open.values() for call in calls]

    def _drift(self, request: Request, call: Recorded, number: int) -> None:
        if self._results == "strict":
            return
        difference = first_difference(self._recorded(call, "strict").value, self._identity(request, "strict").value)
        if difference is not None:
            self.drifts.append(_finding(number, call.question.step, difference))

    def _unmatched(self, request: Request, number: int, *, main: bool) -> ReplayFinding:
        """Compare a question with the recorded one that it most likely is: the first of its kind that is left."""
        unused = [
            call for call in self.left() if call.question.main == main and call.question.route == request.route.path
        ]
        now = self._identity(request, self._results)
        if not unused:
            return ReplayFinding(
                number=number, step="", path="$", recorded="nothing", now=f"a question to {request.route.path}"
            )
        call = min(unused, key=self.recording.calls.index)
        difference = first_difference(self._recorded(call, self._results).value, now.value)
        return _finding(number, call.question.step, difference or RequestDifference("$", "its bytes", "other bytes"))

    def _worse(self, finding: ReplayFinding | None, other: ReplayFinding) -> ReplayFinding:
        """Of two findings the first, unless it is of a side call."""
        return other if finding is None or (not finding.number and other.number) else finding

    def _recorded(self, call: Recorded, results: Results) -> Identity:
        return identity(call.question.method, call.question.route, call.body, roots=self._then, results=results)

    def _identity(self, request: Request, results: Results) -> Identity:
        return identity(request.method, request.route.path, request.body, roots=self._now, results=results)


def roots_of(folder: str, home: str) -> dict[str, str]:
    """Return the folders of a run, each with the name that stands for it."""
    return {folder: "<work>", **({home: "<home>"} if home not in {"", "/"} else {})}


def _finding(number: int, step: str, difference: RequestDifference) -> ReplayFinding:
    return ReplayFinding(
        number=number, step=step, path=difference.path, recorded=difference.recorded, now=difference.now
    )
