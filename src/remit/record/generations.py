"""Requests to models as rows, newest first: paged by their places in the journal, and never by a look at all of it."""

from __future__ import annotations

from collections import OrderedDict
from math import ceil
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from remit.jobs.state import ENDED
from remit.journal.kinds import CommandCommitted, CommandStarted, JobCreated, JobForked, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remit.gateway.sums import ModelSums
    from remit.journal.event import Event, Placed
    from remit.journal.journal import Journal

_KINDS: Final = (CommandStarted.KIND, CommandCommitted.KIND)
_STRETCH: Final = 512
"""Positions that are read first, and twice as many each time after that, up to the longest stretch."""
_LONGEST: Final = 8_192
_LOOKED_AT: Final = 2_000
"""Events that one page looks at; a longer search goes on from where it ended."""
_POSITIONS: Final = 100_000
"""Positions that one page goes back over."""
_ORIGINS: Final = 300
"""Jobs whose beginnings one page reads."""
_KEPT: Final = 20_000
"""Jobs whose beginnings stay in memory."""
_NEAR: Final = 200
"""Events of its job behind a request, among which its answer is looked for."""
State = Literal["ok", "failed", "running", "unknown"]


class GenerationSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests; every condition has to hold, and what is empty is none."""

    model: str = ""
    """A part of the model's name, asked or answered."""
    recipe: str = ""
    principal: str = ""
    state: Literal["", "ok", "failed", "running", "unknown"] = ""
    before: int = 0
    """Only requests before this place in the journal; 0: the newest."""
    limit: int = 100


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model: each attempt is one."""

    job: str
    """The job or session that it belongs to."""
    step: str
    position: int
    """Its place in the journal."""
    at: int
    """When it was made, in microseconds since the Unix epoch."""
    recipe: str
    principal: str
    asked: str
    """The model's one name, as it was asked for."""
    answered: str = ""
    """The model that answered, in its provider's words; empty: none did."""
    state: State
    """`running`: it has no answer yet; `unknown`: its job ended without one."""
    code: str = ""
    attempt: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    """US dollars, estimated; None: no price is known."""
    took_us: int | None = None
    first_us: int | None = None
    """Time to the first piece of the answer."""


class Generations(msgspec.Struct, frozen=True, kw_only=True):
    """A page of requests."""

    rows: list[Generation]
    next: int
    """`before` of the next page; 0: there is no more. A page may be short and still have a next one."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that have something in common."""

    name: str
    number: int
    failed: int
    took_us: tuple[int, int, int] | None
    """The 50th, 90th and 99th percentile of the time that answers took; None: none came."""
    first_us: tuple[int, int, int] | None
    tokens: tuple[int, int, int] | None
    cost: float | None


def spreads(rows: Iterable[Generation], name: Callable[[Generation], str]) -> tuple[Spread, ...]:
    """Sum up requests by a name of each, those with the most first."""
    groups: dict[str, list[Generation]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return tuple(_spread(key, group) for key, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item)))


def _spread(name: str, rows: list[Generation]) -> Spread:
    answers = [row for row in rows if row.state == "ok"]
    costs = [row.cost for row in rows if row.cost is not None]
    return Spread(
        name=name,
        number=len(rows),
        failed=sum(row.state == "failed" for row in rows),
        took_us=percentiles([row.took_us for row in answers if row.took_us is not None]),
        first_us=percentiles([row.first_us for row in answers if row.first_us is not None]),
        tokens=percentiles([row.input_tokens + row.output_tokens for row in answers]),
        cost=sum(costs) if costs else None,
    )


def percentiles(values: list[int]) -> tuple[int, int, int] | None:
    """Return the values that 50, 90 and 99 of a hundred do not exceed (nearest rank); None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    low, middle, high = (ordered[ceil(len(ordered) * part / 100) - 1] for part in (50, 90, 99))
    return low, middle, high


class _Origin(NamedTuple):
    """The beginning of a job."""

    recipe: str
    taken_until: int
    """Events up to this one were taken over from another job, which made the requests in them."""


class GenerationReader:
    """Finds requests in one journal."""

    def __init__(self, journal: Journal, sums: ModelSums) -> None:
        self._journal = journal
        self._sums = sums
        self._origins: OrderedDict[str, _Origin] = OrderedDict()

    async def page(self, wanted: GenerationSearch) -> Generations:
        """The newest requests that are wanted."""
        await self._sums.refresh()
        newest = self._sums.position
        look, stretch = _Look(wanted, min(wanted.before - 1, newest) if wanted.before else newest), _STRETCH
        while not look.over:
            low = max(0, look.at - stretch)
            stretch = min(2 * stretch, _LONGEST)
            for placed in reversed(await self._between(low, look.at)):
                look.at = placed.position
                if await self._takes(placed, look):
                    break
            else:
                look.at = low + 1
            look.at -= 1
        return Generations(rows=look.rows, next=look.at + 1 if look.at > 0 else 0)

    async def _between(self, after: int, until: int) -> list[Placed]:
        """Requests and answers at positions > `after`, up to `until`."""
        events: list[Placed] = []
        more = True
        while more:
            page = await self._journal.scan(after, _KINDS, _LONGEST)
            events += [placed for placed in page.events if placed.position <= until]
            more, after = page.more and after < page.position < until, page.position
        return events

    async def _takes(self, placed: Placed, look: _Look) -> bool:
        """Take an event; return whether the page is full."""
        event = placed.event
        payload = decode(event.kind, event.data)
        look.events += 1
        if isinstance(payload, CommandCommitted):
            look.answers[event.stream, payload.invocation_id] = payload
        elif isinstance(payload, CommandStarted):
            answer = look.answers.pop((event.stream, payload.invocation_id), None)
            if look.wanted.principal in {"", payload.principal}:
                await self._started(placed, payload, answer, look)
        return look.over

    async def _started(
        self, placed: Placed, started: CommandStarted, answer: CommandCommitted | None, look: _Look
    ) -> None:
        wanted, event = look.wanted, placed.event
        if wanted.model and not any(
            wanted.model in name for name in (started.name, answer.llm_model if answer else "")
        ):
            return
        origin = await self._origin(event.stream, look)
        if event.seq <= origin.taken_until or wanted.recipe not in {"", origin.recipe}:
            return
        answer = answer or await self._answer(event, started.invocation_id)
        row = _row(placed, started, answer, origin.recipe)
        if answer is None and await self._ended(event.stream):
            row = msgspec.structs.replace(row, state="unknown")
        if wanted.state in {"", row.state}:
            look.rows.append(row)

    async def _origin(self, stream: str, look: _Look) -> _Origin:
        if stream not in self._origins:
            look.origins += 1
            self._origins[stream] = _origin_of(await self._journal.page(stream, 0, 2))
            if len(self._origins) > _KEPT:
                self._origins.popitem(last=False)
        return self._origins[stream]

    async def _answer(self, event: Event, invocation: str) -> CommandCommitted | None:
        """Return an answer that came after the newest event of the page."""
        for later in await self._journal.page(event.stream, event.seq, _NEAR):
            payload = decode(later.kind, later.data) if later.kind == CommandCommitted.KIND else None
            if isinstance(payload, CommandCommitted) and payload.invocation_id == invocation:
                return payload
        return None

    async def _ended(self, stream: str) -> bool:
        head = await self._journal.head(stream)
        return head is not None and (head.closed or head.state in ENDED)


class _Look:
    """State of a page while it is made."""

    def __init__(self, wanted: GenerationSearch, at: int) -> None:
        self.wanted = wanted
        self.at = self._first = at
        """The position up to which nothing was looked at yet."""
        self.rows: list[Generation] = []
        self.answers: dict[tuple[str, str], CommandCommitted] = {}
        self.events = self.origins = 0

    @property
    def over(self) -> bool:
        """Return whether the page ends here."""
        full = len(self.rows) >= self.wanted.limit or self.events >= _LOOKED_AT or self.origins >= _ORIGINS
        return full or self.at <= 0 or self._first - self.at >= _POSITIONS


def _origin_of(first: list[Event]) -> _Origin:
    recipe, taken_until = "", 0
    for event in first:
        payload = decode(event.kind, event.data)
        if isinstance(payload, JobCreated):
            recipe = payload.name
        elif isinstance(payload, JobForked):
            taken_until = event.seq + payload.taken
    return _Origin(recipe, taken_until)


def _row(placed: Placed, started: CommandStarted, answer: CommandCommitted | None, recipe: str) -> Generation:
    row = Generation(
        job=placed.event.stream.partition("/")[2].partition("/")[0],
        step=started.step,
        position=placed.position,
        at=placed.event.at,
        recipe=recipe,
        principal=started.principal,
        asked=started.name,
        state="running",
        attempt=started.attempt,
    )
    if answer is None:
        return row
    first = answer.first_token_ms
    return msgspec.structs.replace(
        row,
        answered=answer.llm_model,
        state="failed" if answer.error is not None else "ok",
        code=answer.error.code if answer.error is not None else "",
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        cost=answer.cost,
        took_us=round(answer.duration_ms * 1_000),
        first_us=round(first * 1_000) if first is not None else None,
    )
