"""A page: its path, what it needs, and the function that makes its view.

A handler gets the service and what the request asks, already decoded and checked, and returns a View, which names its
template, a See, which sends the browser to another page, or a File. What it raises becomes a page that says what to do.

The form of foreign values in pages: nothing hides in it, and nothing in it turns a line around.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple
from urllib.parse import quote, unquote, urlencode
from zoneinfo import ZoneInfo

import msgspec

from remit.canonical import sha256
from remit.clock import SECOND, isoformat
from remit.codes import Code
from remit.http.access import Access, Scope
from remit.http.problem import HttpProblem
from remit.pages.chart import BOUNDS, HOUR, first_hour
from remit.record.job_story import JobStory
from remit.redact import preview_of
from remit.redact.visible import visible as visible_as
from remit.regex import regex

if TYPE_CHECKING:
    from remit.journal.event import StreamTally
    from remit.service.jobs import Jobs
    from remit.service.service import Service

KEPT: Final = 16
"""Stories kept at once; the one that was asked for longest ago goes first."""
BYTES: Final = 64 * 1024 * 1024
"""Of the events that kept stories were read from, at most."""


RECENT: Final = 12
"""Pages of one reader that are remembered."""
READERS: Final = 1_000
"""Readers whose pages are; those who looked longest ago go first."""


class Recent(NamedTuple):
    """A page that someone looked at."""

    title: str
    path: str


class Memory:
    """The stories of the jobs that were looked at last, the counts of the day, and who looked at which page."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.day = Day(jobs)
        self._stories: OrderedDict[str, JobStory] = OrderedDict()
        self._recent: OrderedDict[str, deque[Recent]] = OrderedDict()

    def note(self, reader: str, title: str, here: str) -> None:
        """Remember that someone looked at a page."""
        recent = self._recent.setdefault(reader, deque(maxlen=RECENT))
        path = here.partition("?")[0]
        for visit in [visit for visit in recent if visit.path == path]:
            recent.remove(visit)
        recent.appendleft(Recent(title, path))
        self._recent.move_to_end(reader)
        while len(self._recent) > READERS:
            self._recent.popitem(last=False)

    def recent(self, reader: str) -> tuple[Recent, ...]:
        """The pages that someone looked at last, newest first, until the server ends."""
        return tuple(self._recent.get(reader, ()))

    async def story(self, job: str) -> JobStory:
        """A job as it is now. Raises NotFoundError."""
        story = await self._jobs.story(job, self._stories.get(job))
        self._stories[job] = story
        self._stories.move_to_end(job)
        while len(self._stories) > KEPT or (self._stories and self._size() > BYTES):
            self._stories.popitem(last=False)
        return story

    def _size(self) -> int:
        return sum(story.story.size for story in self._stories.values())


FRESH: Final = 60 * SECOND
"""Microseconds for which counts are not made again."""
OLD: Final = 10 * FRESH
"""Microseconds after which a page waits for new counts; until then it shows the old ones while they are made."""


class Day:
    """The number of jobs that were created in each of the last hours."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._tallies: tuple[int, list[StreamTally]] = 0, []
        self._at = -OLD
        self._making: asyncio.Task[None] | None = None

    async def tallies(self, now: int) -> tuple[int, list[StreamTally]]:
        """Return when the first hour began, and the counts."""
        age = now - self._at
        if not 0 <= age < OLD:
            await asyncio.shield(self._make(now))
        elif age >= FRESH:
            _ = self._make(now)  # no page waits for it
        return self._tallies

    def _make(self, now: int) -> asyncio.Task[None]:
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._count(now), name="remit:day")
            self._making.add_done_callback(_seen)
        return self._making

    async def _count(self, now: int) -> None:
        since = first_hour(now)
        self._tallies = since, await self._jobs.tallies(since, HOUR, BOUNDS)
        self._at = now


def _seen(task: asyncio.Task[None]) -> None:
    """A count that failed is made again with the next page, and fails that page once the old counts are too old."""
    if not task.cancelled():
        task.exception()


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a template shows, as plain values; it finds them as `view`."""

    template: ClassVar[str]
    """The template's file in `templates/`."""
    title: str
    """The page's title, and its first heading."""
    status: int = 200
    """The HTTP status."""


class See(NamedTuple):
    """The page that the browser goes to, after a form was taken."""

    path: str
    cookie: str = ""
    """Value of the header by which the browser keeps something; empty: nothing."""


class PageFile(NamedTuple):
    """Bytes to keep, never to show: what a tool returned may be anything."""

    name: str
    data: bytes


class PageRequest(NamedTuple):
    """A request for a page, decoded."""

    service: Service
    path: dict[str, str]
    """The values in the braces of the page's path."""
    query: Any
    """The query, of the page's type."""
    form: Any
    """The form, of the page's type; None for a page that takes none."""
    access: Access
    now: int
    """The time, in microseconds since the Unix epoch."""
    zone: tzinfo
    """The reader's time zone."""
    here: str
    """Path and query of the request."""
    session: Callable[[], Awaitable[str]]
    """Gives the session that calls of this reader are recorded in."""
    memory: Memory
    """Keeps what took long to make."""

    @property
    def principal(self) -> str:
        """Return the principal in whose name the request comes; empty if the server knows no tokens."""
        return self.access.principal or ""


class Nothing(msgspec.Struct, frozen=True):
    """A query or a form without fields."""


Handler = Callable[[PageRequest], Awaitable[PageView | See | PageFile]]


DOORS: Final = ("Inbox", "Jobs", "Agents", "Work")
"""The entries that stand above every page, in their order."""
QUESTIONS: Final = ("What may run?", "What runs where?", "What happened?")
"""Questions that every other page answers one of, in the order in which `/more` lists them."""
Place = Literal["Inbox", "Jobs", "Agents", "Work", "What may run?", "What runs where?", "What happened?"]
"""A door, or a question."""


class NavigationEntry(NamedTuple):
    """An entry of the navigation."""

    name: str
    path: str
    scope: Scope
    """Without it there is nothing to see."""
    key: str
    """Leads there after `g`."""
    of: str = ""
    """`job` or `step`: it stands on the page of each, and not above every page."""
    under: Place = "What happened?"
    """Its door, or the question that it answers."""
    about: str = ""
    """Its content, in a few words."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page, or one form that it takes."""

    path: str
    """Such as `/jobs/{job}`."""
    scope: Scope
    """The scope that a token needs."""
    handler: Handler
    name: str = ""
    """Its entry in the navigation; empty: it has none, or remit.pages.renderer has it."""
    key: str = ""
    """The key that leads there after `g`, if it has an entry."""
    under: Place = "What happened?"
    """The door or the question that its entry stands under; a page of a door's name is that door."""
    about: str = ""
    """Its content, in a few words, if it has an entry."""
    of: Literal["", "job", "step"] = ""
    """Whose page leads there by its name: each job's, or each step's; empty: the navigation does."""
    query: type[msgspec.Struct] = Nothing
    form: type[msgspec.Struct] | None = None
    """The fields of a form that is posted here; None: the page is only looked at."""

    live: Literal["", "heads", "tools", "events", "words"] = ""
    """The news that the page is made again for while someone looks: streams that begin, wake or end; these, and tools
    that change; every event; or every event, and whatever a model says to the path's `job`.
    """
    mark: Callable[[PageRequest], Awaitable[object]] | None = None
    """Gives a value that stays equal while the page would; None: it is made again for all news."""

    @property
    def method(self) -> str:
        """`GET`, or `POST` for a form."""
        return "GET" if self.form is None else "POST"


_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With no-referrer a browser would send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer."""


COOKIE: Final = "remit-zone"
LOOK: Final = "remit-look"
"""The cookie that holds how a reader likes the pages: some of LOOKS, with dots between them."""
LOOKS: Final = ("utc", "compact", "light", "dark")
_NAME: Final = regex(r"[A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}")


def zone_of(headers: Mapping[str, str]) -> tzinfo:
    """The zone that a request names; UTC if it asks for that, or names none that is known here."""
    return UTC if "utc" in look_of(headers) else _zone(unquote(_cookie(headers, COOKIE)[:100]))


def look_of(headers: Mapping[str, str]) -> frozenset[str]:
    """Those of LOOKS that a reader chose."""
    return frozenset(_cookie(headers, LOOK)[:100].split(".")) & {*LOOKS}


def _cookie(headers: Mapping[str, str], wanted: str) -> str:
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if not _NAME.fullmatch(name):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return UTC


_NUMBER: Final = regex("⟨U\\+[0-9A-F]{4,6}⟩")


def visible(text: str) -> str:
    """The text with each character that cannot be seen, or passes for another one, as ⟨U+202E⟩."""
    return visible_as(text, _shown)


def restored(text: str, before: str) -> str:
    """A text that someone edited as it was shown: the characters that `before` has, where their numbers stand."""
    numbers = {_shown(char): char for char in before if not char.isascii() or not char.isprintable()}
    return _NUMBER.sub(lambda number: number[0] if number[0] in before else numbers.get(number[0], number[0]), text)


def brief(value: Any) -> str:
    """A JSON value in a line of a list: cut, and without what looks like a secret; its own page shows it whole."""
    return preview_of(value)


def written(value: Any) -> str:
    """A JSON value over several lines, as it stands in the record: every digit of a number, every character."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def pieces(text: str) -> list[tuple[str, bool]]:
    """A sentence cut at its backticks; each piece with whether it is a command. Whole if they do not come in pairs."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(text, False)]
    return [(piece, number % 2 == 1) for number, piece in enumerate(parts) if piece]


def clock_time(micros: int, zone: tzinfo) -> str:
    """The time of day."""
    return _at(micros, zone).strftime("%H:%M:%S")


def moment(micros: int, zone: tzinfo, now: int) -> str:
    """An instant: its time of day, with the date unless that is today's."""
    at = _at(micros, zone)
    return at.strftime("%H:%M:%S" if at.date() == _at(now, zone).date() else "%Y-%m-%d %H:%M")


def exact(micros: int, zone: tzinfo) -> str:
    """An instant with everything that is known of it."""
    at = _at(micros, zone)
    return f"{at:%Y-%m-%d %H:%M:%S.%f} {at.tzname()} ({isoformat(micros)})"


def grouped(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def dollars(amount: float) -> str:
    """An estimate in US dollars: cents, and more digits of what is less than a dollar."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def link(path: str, *names: str, **query: object) -> str:
    """The address of a page: `{}` in `path` stand for `names`, and what is empty is left out of the query.

    The one place where addresses are made, so that a slash in a name and a filter over pages stay what they are.
    """
    filled = path.format(*(quote(name, safe="") for name in names))
    pairs = [(key.rstrip("_"), value) for key, values in query.items() for value in _each(values)]
    return f"{filled}?{urlencode(pairs)}" if pairs else filled


def _each(values_given: object) -> list[str]:
    values = values_given if isinstance(values_given, list | tuple) else [values_given]
    return [str(value) for value in values if value not in {"", None, False}]


def _at(micros: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(micros / SECOND, zone)


def _shown(char: str) -> str:
    return char if char == "\t" else f"⟨U+{ord(char):04X}⟩"


INLINE: Final = 8_192
"""Characters that a page shows of a value; the rest is in the file."""


_FIELDS: Final = 40
"""Fields up to which a value is shown as such."""
_DEEP: Final = 4
"""Objects inside each other that become names with dots between them."""


class ShownValue(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows of a value."""

    text: str
    whole: bool
    size: int
    """Characters in all."""
    digest: str
    fields: tuple[tuple[str, str], ...] = ()
    """The same as names and texts, for an object that is whole and has few of them; empty for any other."""


def shown(value: Any, most: int = INLINE) -> ShownValue:
    """A value as text; a text stands for itself."""
    text = value if isinstance(value, str) else written(value)
    whole = len(text) <= most
    fields = tuple(_fields(value)) if whole and isinstance(value, dict) else ()
    return ShownValue(
        text=text[:most],
        whole=whole,
        size=len(text),
        digest=sha256(text.encode("utf-8", "replace")),
        fields=fields if len(fields) <= _FIELDS else (),
    )


def _fields(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The leaves of a value by name; what lies deep stands as JSON."""
    if isinstance(value, dict) and value and depth < _DEEP:
        for key, part in value.items():
            yield from _fields(part, f"{name}.{key}" if name else key, depth + 1)
    elif isinstance(value, list) and value and depth < _DEEP and any(isinstance(part, dict) for part in value):
        for number, part in enumerate(value, 1):
            yield from _fields(part, f"{name} {number}", depth + 1)
    elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        yield name, "\n".join(value)
    elif name:
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a difference."""

    mark: Literal["+", "-", " ", "@"]
    """`@`: it says which lines follow."""
    text: str


_MARKS: Final[dict[str, Literal["+", "-", " "]]] = {"+": "+", "-": "-", " ": " "}


def changes_of(diff: str) -> tuple[DiffLine, ...]:
    """A unified difference; the two lines that name the files are left out, as the call itself names the file."""
    _, separator, rest = diff.partition("\n@@")
    lines = f"@@{rest}".removesuffix("\n").split("\n") if separator else []
    return tuple(
        DiffLine("@", line) if line.startswith("@@") else DiffLine(_MARKS.get(line[:1], "@"), line[1:])
        for line in lines
    )


def find(pages: Sequence[Page], method: str, path: str) -> tuple[Page, dict[str, str]]:
    """The page, and what stands in the braces of its path. Raises Problem if no page has the path."""
    wanted_method = "GET" if method == "HEAD" else method
    segments = path.split("/")
    allowed = set[str]()
    for page in pages:
        parameters = _given(page.path.split("/"), segments)
        if parameters is not None:
            if page.method == wanted_method:
                return page, parameters
            allowed.add(page.method)
    if allowed:
        raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(sorted(allowed))})
    raise HttpProblem(Code.PATH_UNKNOWN)


def _given(shape: list[str], segments: list[str]) -> dict[str, str] | None:
    """Return what stands in the braces; None for another path. A slash inside a name comes as %2F."""
    if len(shape) != len(segments):
        return None
    parameters = {}
    for part, segment in zip(shape, segments, strict=True):
        if part.startswith("{"):
            parameters[part[1:-1]] = unquote(segment)
        elif part != segment:
            return None
    return parameters
