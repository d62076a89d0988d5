"""Generations: requests to models, newest first; one of them as a conversation; two of them side by side."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.errors import PayloadErasedError
from remit.gateway.budget import Spent
from remit.pages.chart import Chart, largest, over_days
from remit.pages.page import Page, PageRequest, PageView
from remit.pages.talk import TalkMessage, talk_of
from remit.record.generations import Generation, GenerationSearch, Spread, spreads
from remit.record.step import StepNarrative
from remit.service.reach import check_reach

_ROWS: Final = 50
_LOOKED_AT: Final = 100
"""Requests that percentiles are made of; the page shows the newest of them."""
_NEWEST: Final = 100
"""Messages of a prompt that a page shows; the step's page has all."""
_PAIR: Final = 2


class GenerationsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests."""

    model: str = ""
    recipe: str = ""
    principal: str = ""
    state: Literal["", "ok", "failed", "running", "unknown"] = ""
    before: int = 0
    """Continue before this place in the journal."""
    days: Literal["7", "30", "90"] = "7"
    """The days of the charts."""


class GenerationPair(msgspec.Struct, frozen=True, kw_only=True):
    """Which two."""

    call: tuple[str, ...] = ()
    """Job and step of each, with a space between."""


class GenerationList(PageView, frozen=True, kw_only=True):
    """Requests, newest first, and sums of them."""

    template: ClassVar[str] = "generations.html"
    query: GenerationsQuery
    rows: tuple[Generation, ...]
    next: int
    """Continue before this place; 0: this is the last page."""
    looked_at: int
    """Requests that the percentiles are made of."""
    spreads: tuple[tuple[str, tuple[Spread, ...]], ...]
    """By model and by recipe."""
    models: tuple[str, ...]
    """The names of the charts' colours, in their order."""
    cost: Chart | None
    """Cost by day and model; None: no price is known."""
    tokens: Chart | None


class GenerationTalk(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model and its answer."""

    job: str
    step: str
    recipe: str
    narrative: StepNarrative
    prompt: tuple[TalkMessage, ...]
    """The prompt; the newest messages if they are many."""
    before: int
    """Messages before these."""
    answer: TalkMessage | None
    erased: bool

    @property
    def asked(self) -> str:
        """The model that was asked."""
        return self.narrative.name.removeprefix("model.")


class GenerationPage(PageView, frozen=True, kw_only=True):
    """One question."""

    template: ClassVar[str] = "generation.html"
    talk: GenerationTalk


class Pair(PageView, frozen=True, kw_only=True):
    """Two questions side by side."""

    template: ClassVar[str] = "generation_pair.html"
    selected: int
    talks: tuple[GenerationTalk, ...]
    """None, unless two are selected."""
    same: int
    """Messages at the beginning of both prompts that are the same."""


async def generations(request: PageRequest) -> GenerationList:
    """A page of requests."""
    query: GenerationsQuery = request.query
    wanted = GenerationSearch(
        model=query.model,
        recipe=query.recipe,
        principal=query.principal,
        state=query.state,
        before=query.before,
        limit=_LOOKED_AT,
    )
    page = await request.service.usage.generations(wanted)
    rows = page.rows[:_ROWS]
    days = await _days(request, query) if not query.recipe and not query.before else []
    models, budgets = largest(days), request.service.usage.of_a_day(request.now)
    return GenerationList(
        title="Generations",
        query=query,
        rows=tuple(rows),
        next=rows[-1].position if len(page.rows) > _ROWS else page.next,
        looked_at=len(page.rows),
        spreads=(
            ("Model", spreads(page.rows, lambda row: row.asked)),
            ("Recipe", spreads(page.rows, lambda row: row.recipe or "session")),
        ),
        models=models,
        cost=over_days(days, models, request.now, "cost", budgets),
        tokens=over_days(days, models, request.now, "tokens", budgets),
    )


async def _days(request: PageRequest, query: GenerationsQuery) -> list[dict[str, Spent]]:
    """Sums by model of each day, of the requests that the query names."""
    days: list[dict[str, Spent]] = []
    for sums in await request.service.usage.by_day(int(query.days), request.now):
        day: dict[str, Spent] = {}
        for (principal, model), spent in sums.items():
            if query.model in model and query.principal in {"", principal}:
                day.setdefault(model, Spent()).add(spent)
        days.append(day)
    return days


async def generation(request: PageRequest) -> GenerationPage:
    """The page of one question. Raises NotFoundError."""
    talk = await _talk(request, request.path["job"], request.path["step"])
    return GenerationPage(title=f"{talk.asked} {talk.job[-6:]} {talk.step}", talk=talk)


async def pair(request: PageRequest) -> Pair:
    """Two questions side by side. Raises NotFoundError."""
    places = [call.partition(" ") for call in request.query.call]
    if len(places) != _PAIR:
        return Pair(title="Two generations", selected=len(places), talks=(), same=0)
    for job, _, _ in places:  # they stand in no path
        await check_reach(request.service, request.access, {"job": job})
    a, b = [await _talk(request, job, step) for job, _, step in places]
    return Pair(title="Two generations", selected=_PAIR, talks=(a, b), same=_same(a, b))


def _same(a: GenerationTalk, b: GenerationTalk) -> int:
    """Count the messages at the beginning of both prompts that are the same; none where a beginning is left out."""
    if a.before or b.before:
        return 0
    pairs = zip(a.prompt, b.prompt, strict=False)
    return next(
        (number for number, (left, other) in enumerate(pairs) if left != other), min(len(a.prompt), len(b.prompt))
    )


async def _talk(request: PageRequest, reference: str, step: str) -> GenerationTalk:
    service = request.service
    job = await service.jobs.find(reference)
    story = await service.streams.story(job)
    erased = False
    try:
        messages = await service.steps.conversation(story, job, step)
    except PayloadErasedError:
        messages, erased = [], True
    narrative = story.told(step)
    assert narrative is not None  # noqa: S101 - it has a conversation
    talk = talk_of(messages)
    answered = (
        bool(talk) and talk[-1].role == "assistant" and bool(narrative.llm_invocation) and narrative.state == "ok"
    )
    prompt = talk[:-1] if answered else talk
    return GenerationTalk(
        job=job,
        step=step,
        recipe=story.name,
        narrative=narrative,
        prompt=prompt[-_NEWEST:],
        before=max(0, len(prompt) - _NEWEST),
        answer=talk[-1] if answered else None,
        erased=erased,
    )


PAGES: Final = (
    Page(
        path="/generations",
        scope="read",
        handler=generations,
        name="Generations",
        key="n",
        under="Agents",
        about="requests to models: tokens, cost, latency, and what was said",
        query=GenerationsQuery,
    ),
    Page(path="/generations/compare", scope="read", handler=pair, query=GenerationPair),
    Page(path="/generations/{job}/{step}", scope="read", handler=generation),
)
