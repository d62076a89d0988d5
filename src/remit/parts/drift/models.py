"""Drift of models: which one answered under a name, and prompts that brought different answers.

Drift of skills: those that jobs took up, against the skills of this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import PayloadErasedError
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.models.message import answer_digest
from remit.models.names import ModelInfo, info_of
from remit.record.step import said
from remit.record.walk import Shares, jobs_under

if TYPE_CHECKING:
    from remit.jobs.skills import Skills
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.record.walk import RootOrigin, Take


_EXAMPLES: Final = 5
_PROMPTS: Final = 50
"""Prompts with several answers that are told."""


class AnsweredBy(msgspec.Struct, frozen=True, kw_only=True):
    """A model that answered questions to a name."""

    model: ModelInfo
    answers: int
    first_at: int
    """Microseconds since the Unix epoch."""
    last_at: int


class ModelDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it was asked, and those that answered."""

    asked: ModelInfo
    name: str
    """Name as it was asked, `provider:model`."""
    moved: bool
    """Whether other versions answered one after the other, or another model did."""
    answered: tuple[AnsweredBy, ...]
    """Models that answered, in the order of their first answers."""
    open: int
    """Jobs that asked it and have not ended."""
    ended: int


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a prompt."""

    job: str
    step: str
    at: int
    """Microseconds since the Unix epoch."""
    model: str
    """The model that answered, `provider/model`."""
    temperature: float | None
    digest: str
    """Digest of the answer without its model and the identifiers of its calls."""
    preview: str


class OutputDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that brought different answers."""

    prompt_hash: str
    answers: int
    different: int
    models: int
    """The number of models among them."""
    examples: tuple[ModelAnswer, ...]
    """The first of each different answer, the first few."""


Asked = tuple[str, str, str]
"""Provider, model and address, as a model was asked."""


class _Name:
    """The answers to one name."""

    def __init__(self, provider: str, model: str, url: str) -> None:
        self.info = info_of(provider, model)
        self.text = f"{provider}:{f'{url}#{model}' if url else model}"
        self.answered: dict[tuple[str, str], list[int]] = {}
        """Answers, the first and the last moment, by provider and model."""
        self.origins: dict[str, RootOrigin] = {}


class _Kept(msgspec.Struct, frozen=True, gc=False):
    origin: RootOrigin
    event: Event
    payload: k.CommandCommitted


class ModelCollector:
    """Collects who answered, and prompts with several answers."""

    def __init__(self, journal: Journal, model: str = "", since: int = 0, job: str = "") -> None:
        self._journal = journal
        self._model = model
        self._since = since
        self._job = job
        self._names: dict[Asked, _Name] = {}
        self._requests: dict[str, tuple[Asked, _Name | None]] = {}
        """Name that was asked, by invocation; no answers are counted of what another job asked."""
        self._shares: Shares[tuple[Asked, tuple[str, str] | None]] = Shares()
        """Questions, and answers with the model that gave them."""
        self._first: dict[str, _Kept] = {}
        self._prompts: dict[str, list[_Kept]] = {}

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """Questions and answers, and forks."""
        return {k.CommandStarted: self._ask, k.CommandCommitted: self._answer, k.JobForked: self._fork}

    def _ask(self, origin: RootOrigin, event: Event, payload: k.CommandStarted) -> None:
        if event.seq <= origin.taken_until or event.at < self._since:
            return
        key = payload.llm_provider, payload.llm_model, payload.llm_url
        self._shares.note(origin, event, (key, None))
        wanted = not self._job or origin.id == self._job
        self._requests[payload.invocation_id] = key, self._name(origin, key) if wanted else None

    def _name(self, origin: RootOrigin, key: Asked) -> _Name:
        """A name, with one more job that asked it."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = _Name(*key)
        name.origins.setdefault(origin.root, origin)
        return name

    def _fork(self, origin: RootOrigin, _event: Event, payload: k.JobForked) -> None:
        """Count a fork among those that asked; of one job, the answers that it shares count as its own."""
        for (key, answered), times in self._shares.of(origin, payload):
            if self._job and origin.id != self._job:
                continue
            name = self._name(origin, key)
            if self._job and answered is not None:
                name.answered[answered] = [len(times), times[0], times[-1]]

    def _answer(self, origin: RootOrigin, event: Event, payload: k.CommandCommitted) -> None:
        key, name = self._requests.pop(payload.invocation_id, (None, None))
        if key is None or payload.outcome != "success":
            return
        answered = payload.llm_provider, payload.llm_model
        self._shares.note(origin, event, (key, answered))
        if name is None:
            return
        spans = name.answered.setdefault(answered, [0, event.at, event.at])
        spans[0], spans[2] = spans[0] + 1, event.at
        if not payload.prompt_hash:
            return
        answer = _Kept(origin, event, payload)
        first = self._first.setdefault(payload.prompt_hash, answer)
        if first is not answer:
            self._prompts.setdefault(payload.prompt_hash, [first]).append(answer)

    def models(self) -> list[ModelDrift]:
        """Return every name that was asked, those that moved first."""
        models = [_told(name) for name in self._names.values() if self._is_wanted(name)]
        return sorted(models, key=lambda drift: (not drift.moved, drift.name))

    async def outputs(self) -> list[OutputDrift]:
        """Prompts with different answers, those with most of them first. Raises JournalError."""
        drifts = []
        for prompt, records in self._prompts.items():
            answers = [answer for record in records if (answer := await self._read(record)) is not None]
            if self._model and not any(self._model in answer.model for answer in answers):
                continue
            first: dict[str, ModelAnswer] = {}
            for answer in answers:
                first.setdefault(answer.digest, answer)
            if len(first) > 1:
                drifts.append(
                    OutputDrift(
                        prompt_hash=prompt,
                        answers=len(answers),
                        different=len(first),
                        models=len({answer.model for answer in answers}),
                        examples=tuple(first.values())[:_EXAMPLES],
                    )
                )
        return sorted(drifts, key=lambda drift: (-drift.models, -drift.different, drift.prompt_hash))[:_PROMPTS]

    def _is_wanted(self, name: _Name) -> bool:
        answered = (f"{provider}/{model}" for provider, model in name.answered)
        return not self._model or self._model in name.text or any(self._model in variant for variant in answered)

    async def _read(self, record: _Kept) -> ModelAnswer | None:
        """An answer with its digest; None if it was erased."""
        payload = record.payload
        try:
            encoded = await self._journal.value(payload.result, payload.result_blob)
        except PayloadErasedError:
            return None
        hidden = isinstance(payload.result_blob, BlobRef) and bool(payload.result_blob.key)
        return ModelAnswer(
            job=record.origin.id,
            step=payload.step,
            at=record.event.at,
            model=f"{payload.llm_provider}/{payload.llm_model}",
            temperature=payload.llm_temperature,
            digest=answer_digest(encoded or b"null"),
            preview="" if hidden else said(payload.result, payload.result_blob),
        )


def _told(name: _Name) -> ModelDrift:
    answered = tuple(
        AnsweredBy(model=info_of(provider, model), answers=count, first_at=first, last_at=last)
        for (provider, model), (count, first, last) in name.answered.items()
    )
    own = [origin for origin in name.origins.values() if origin.created is not None]
    still = sum(not origin.ended for origin in own)
    moved = len(answered) > 1 or any(not name.info.is_same(variant.model) for variant in answered)
    return ModelDrift(
        asked=name.info, name=name.text, moved=moved, answered=answered, open=still, ended=len(own) - still
    )


class SkillDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a skill that jobs took up, and that is another today. They keep to it."""

    name: str
    recorded: str
    """The digest of its folder then."""
    current: str
    """Today's; empty: this process has no such skill, or cannot use it."""
    open: int
    """Jobs under it that have not ended."""
    ended: int
    open_jobs: tuple[str, ...]
    """The first few of those."""


class SkillCollector:
    """Collects the skills that jobs took up."""

    def __init__(self, since: int = 0, job: str = "") -> None:
        self._since = since
        self._job = job
        self._origins: dict[tuple[str, str], list[RootOrigin]] = {}

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """The beginning of jobs."""
        return {k.JobCreated: self._create}

    def _create(self, origin: RootOrigin, event: Event, payload: k.JobCreated) -> None:
        if event.at >= self._since and (not self._job or origin.id == self._job):
            for pin in payload.skills:
                self._origins.setdefault((pin.name, pin.digest), []).append(origin)

    async def drifts(self, skills: Skills) -> list[SkillDrift]:
        """Return every version that differs, those of open jobs first."""
        names = sorted({name for name, _ in self._origins})
        today = await skills.digests(names) if names else {}
        drifts = [
            SkillDrift(name=name, recorded=recorded, current=today.get(name, ""), **jobs_under(origins, _EXAMPLES))
            for (name, recorded), origins in self._origins.items()
            if today.get(name) != recorded
        ]
        return sorted(drifts, key=lambda drift: (-drift.open, -drift.ended, drift.name))
