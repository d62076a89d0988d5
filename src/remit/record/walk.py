"""Walk over the whole journal, for reports on all of it.

A collector says which payloads it wants, and is given each with what is known of its stream by then. The walk reads
each event once, however many collectors there are, and keeps nothing of a stream but what the first events say of it.

Events of a stream come in their order. Those of two streams come in any: a copied journal has them stream by stream.
Only what others rest on comes first: remembered approvals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, runtime_checkable

from remit.gateway.approvals import KIND as APPROVAL
from remit.jobs.state import stream_of
from remit.journal import kinds as k
from remit.journal.event import HeadQuery
from remit.journal.lineage import forebears
from remit.journal.scan import every_head, every_page
from remit.record.heads import CALL, stream_named
from remit.record.job_story import beside

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.policy.decision import CallerKind

Thing = TypeVar("Thing", bound=Hashable)
Take = Callable[["RootOrigin", "Event", Any], object]
"""Takes a payload, with the stream and the event that it stands in."""
_PAGE: Final = 5_000
"""Events that are read at once."""
_FACES: Final[Mapping[str, CallerKind]] = {"mcp": "mcp", "http": "http"}
_ENDS: Final = (k.JobCompleted, k.JobFailed, k.JobCancelled)
_OF_STREAMS: Final = (k.JobCreated, k.JobForked, k.SessionOpened, k.CallOpened, k.CallContinued, *_ENDS)
_IN_SESSIONS: Final = frozenset({k.CallOpened.KIND, k.CallContinued.KIND})
_TELLING: Final = frozenset(kind.KIND for kind in _OF_STREAMS)


class RootOrigin:
    """A job, a session, or a call from outside, as far as it is known: the root of the streams that events stand in."""

    __slots__ = ("created", "ended", "kind", "name", "root", "scope", "shares", "taken_until")

    def __init__(self, root: str) -> None:
        self.root = root
        """The stream, such as `job/J`."""
        self.created: k.JobCreated | None = None
        """Creation of the job; None: it is no job."""
        self.kind: CallerKind = "session"
        self.name = ""
        """The recipe or plan of a job; empty: it is none."""
        self.scope = root
        """The stream that rules know the caller by: a call from outside belongs to the session that makes it."""
        self.taken_until = 0
        """Events up to this one were taken over from another job, or given by a person."""
        self.shares = False
        """True for a fork, which shares events of another job."""
        self.ended = False

    @property
    def id(self) -> str:
        """The identifier of the job, session or call."""
        return self.root.partition("/")[2]


class Collector(Protocol):
    """Makes a report of what it is given."""

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """The payloads that it wants, and what takes each."""
        ...


@runtime_checkable
class Settling(Collector, Protocol):
    """A collector that has something to wait for."""

    async def settle(self) -> None:
        """Do what waits: called after each page."""
        ...


def jobs_under(origins: Collection[RootOrigin], most: int) -> dict[str, Any]:
    """Return how many of these jobs are `open` and have `ended`, and the first few `open_jobs`."""
    open_jobs = [origin.id for origin in origins if not origin.ended]
    return {
        "open": len(open_jobs),
        "ended": len(origins) - len(open_jobs),
        "open_jobs": tuple(open_jobs[:most]),
    }


class Shares(Generic[Thing]):
    """Remembers where things stand in jobs, and which of them a fork shares."""

    def __init__(self) -> None:
        self._places: dict[str, dict[Thing, tuple[list[int], list[int]]]] = {}
        """Positions and moments of each thing, by root and thing."""

    def note(self, origin: RootOrigin, event: Event, thing: Thing) -> None:
        """Remember that a thing stands at an event."""
        things = self._places.get(origin.root)
        if things is None:
            things = self._places[origin.root] = {}
        places = things.get(thing)
        if places is None:
            places = things[thing] = [], []
        places[0].append(event.seq)
        places[1].append(event.at)

    def of(self, fork: RootOrigin, payload: k.JobForked) -> list[tuple[Thing, list[int]]]:
        """Return what a fork shares, each with the moments (µs) at which it was recorded; forks of it share it too."""
        shared: list[tuple[Thing, list[int]]] = []
        if payload.shared:
            own = self._places.setdefault(fork.root, {})
            for thing, (positions, moments) in self._places.get(stream_of(payload.job), {}).items():
                times = moments[: bisect_right(positions, payload.seq)]
                if times:
                    own[thing] = [0] * len(times), list(times)
                    shared.append((thing, times))
        return shared


async def walk(journal: Journal, collectors: Sequence[Collector], job: str = "") -> None:
    """Give every event of the journal to the collectors that want it; of one job or session, what it rests on alone.

    That is its own streams, the jobs whose events it shares, and the remembered approvals. Raises JournalError.
    """
    takers: dict[str, list[Take]] = {kind.KIND: [] for kind in _OF_STREAMS}
    for collector in collectors:
        for kind, take in collector.takers.items():
            takers.setdefault(kind.KIND, []).append(take)
    origins = _Origins()
    async for events in _pages_of(journal, job, takers) if job else _pages(journal, takers):
        for event in events:
            payload = k.decode(event.kind, event.data)
            origin = origins.of(event, payload)
            for take in takers[event.kind]:
                take(origin, event, payload)
        for collector in collectors:
            if isinstance(collector, Settling):
                await collector.settle()


async def _pages(journal: Journal, kinds: Collection[str]) -> AsyncIterator[list[Event]]:
    """Yield every event of these kinds, remembered approvals first."""
    yield [
        event
        async for head in every_head(journal, HeadQuery(kind=APPROVAL))
        async for page in journal.pages(head)
        for event in page
        if event.kind in kinds
    ]
    async for page in every_page(journal, 0, kinds, _PAGE):
        yield [placed.event for placed in page.events if not placed.event.stream.startswith(f"{APPROVAL}/")]


async def _pages_of(journal: Journal, job: str, kinds: Collection[str]) -> AsyncIterator[list[Event]]:
    """The events of these kinds that a job or session rests on, approvals first, then in the order of their times.

    Streams have no common order but the journal's, which only a look at all of it tells. A time that goes back within
    a stream counts as the one before.
    """
    own = stream_named(job)
    heads = [head async for head in every_head(journal, HeadQuery(kind=APPROVAL))]
    for root in (own, *await beside(journal, job), *await forebears(journal, own)):
        head = await journal.head(root)
        heads += filter(None, [head])
        heads += [below async for below in every_head(journal, HeadQuery(prefix=f"{root}/"))]
    events: list[tuple[int, Event]] = []
    for head in {head.stream: head for head in heads}.values():
        at = 0
        async for page in journal.pages(head):
            for event in page:
                at = max(at, event.at)
                if event.kind in kinds:
                    events.append((0 if head.kind == APPROVAL else at, event))
    events = [*await _begins(journal, [event for _, event in events]), *events]
    events.sort(key=itemgetter(0))
    for first in range(0, len(events), _PAGE):
        yield [event for _, event in events[first : first + _PAGE]]


async def _begins(journal: Journal, events: Sequence[Event]) -> list[tuple[int, Event]]:
    """Return the first events of the sessions that these calls were made in, which say over which face."""
    payloads = [k.decode(event.kind, event.data) for event in events if event.kind in _IN_SESSIONS]
    sessions = {
        stream_named(payload.session) for payload in payloads if isinstance(payload, k.CallOpened | k.CallContinued)
    }
    missing = sorted(sessions - {event.stream for event in events})
    return [(event.at, event) for stream in missing for event in await journal.page(stream, 0, 1)]


class _Origins:
    """Roots, as far as they are known."""

    def __init__(self) -> None:
        self._known: dict[str, RootOrigin] = {}
        self._by_stream: dict[str, RootOrigin] = {}

    def of(self, event: Event, payload: k.Payload | None) -> RootOrigin:
        """The origin of an event, which may itself tell of it."""
        origin = self._by_stream.get(event.stream)
        if origin is None:
            root = root_of(event.stream)
            origin = self._by_stream[event.stream] = self._known.setdefault(root, RootOrigin(root))
        if event.kind in _TELLING and payload is not None:
            self._tell(origin, event, payload)
        return origin

    def _tell(self, origin: RootOrigin, event: Event, payload: k.Payload) -> None:
        match payload:
            case k.JobCreated():
                origin.created, origin.name = payload, payload.name
                origin.kind = "plan" if payload.kind == "plan" else "job"
            case k.JobForked():
                origin.taken_until = event.seq + payload.taken + payload.changes
                origin.shares = payload.shared
            case k.SessionOpened():
                origin.kind = _FACES.get(payload.face, "session")
            case k.CallContinued() if not origin.root.startswith(CALL):
                pass  # the session says so as well
            case k.CallOpened() | k.CallContinued():
                session = self._known.get(f"session/{payload.session}")
                origin.scope = f"session/{payload.session}"
                origin.kind = session.kind if session is not None else "session"
            case _:
                origin.ended = True


def root_of(stream: str) -> str:
    """The stream that a stream lies below, such as `job/J` of `job/J/confirmation/C`."""
    first = stream.find("/")
    second = stream.find("/", first + 1)
    return stream if second < 0 else stream[:second]
