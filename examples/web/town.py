"""A small web on this machine: the pages of a town, and a search engine that answers as SearXNG does.

    python examples/web/town.py

It prints how to ask it. It has what real webs have: pages that redirect, that exist twice, and that ask to agree first;
 challenges, PDFs, pages that robots.txt closes, a calendar without end, and answers that never stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import math
import re
import sys
from collections import Counter
from typing import NamedTuple

from aiohttp import web

TOPICS = {
    "swimming pool": ("the indoor pool on Quay Street", "6:30", "21:00", 4, "Mondays in July", 1974),
    "library": ("the library at Corn Market", "9:00", "19:00", 0, "the first week of August", 1912),
    "recycling centre": ("the recycling centre on Mill Lane", "8:00", "16:30", 3, "public holidays", 1991),
    "museum": ("the museum of fishing at the old harbour", "10:00", "17:00", 7, "Tuesdays", 1936),
    "ice rink": ("the ice rink behind the station", "12:00", "22:00", 6, "the months from May to August", 2003),
    "market": ("the weekly market on the green", "7:00", "13:00", 0, "the week after Christmas", 1388),
    "theatre": ("the theatre in the old granary", "18:00", "23:00", 14, "the month of June", 1958),
    "town hall": ("the town hall and its counters", "8:30", "15:00", 0, "Friday afternoons", 1887),
    "ferry": ("the ferry to the north bank", "5:45", "23:30", 2, "days with winds above 60 km/h", 1921),
    "campsite": ("the campsite by the weir", "7:30", "20:00", 18, "the months from November to March", 1966),
    "music school": ("the music school in Abbey Road", "13:00", "20:30", 45, "school holidays", 1979),
    "cycle hire": ("the cycle hire at the bridge", "6:00", "22:00", 9, "days with ice on the roads", 2016),
    "botanic garden": ("the botanic garden on the south slope", "9:30", "18:30", 5, "January", 1844),
    "fire brigade": ("the volunteer fire brigade", "0:00", "24:00", 0, "no day of the year", 1869),
    "bus depot": ("the bus depot and lost property office", "7:15", "17:45", 8, "Sundays", 1949),
    "observatory": ("the observatory on Gallows Hill", "20:00", "1:00", 11, "nights with clouds", 1931),
}
FACETS = (
    "overview",
    "opening hours",
    "prices",
    "history",
    "renovation",
    "access",
    "staff",
    "questions",
    "figures",
    "news",
)
TAIL = (
    "Notices hang at the door a week ahead.", "The council decides about changes in its spring session.",
    "Visitors who come by train walk for about ten minutes.", "A leaflet in large print lies at the desk.",
    "Groups of more than twelve people write two weeks before they come.", "Dogs wait outside, guide dogs do not.",
)  # fmt: skip
NAV = "".join(f'<a href="/{slug}/overview">{slug}</a> ' for slug in (t.replace(" ", "-") for t in TOPICS))


class Page(NamedTuple):
    """A page: what is served, and what a search finds."""

    path: str
    title: str
    text: str
    status: int = 200
    location: str = ""
    kind: str = "text/html"


def pages() -> dict[str, Page]:
    """All 200 pages by their paths, the same ones each time."""
    found = [_article(topic, facet) for topic in TOPICS for facet in FACETS]
    own = {page.path: page for page in found}
    for n, page in enumerate(found[::16][:10]):
        found.append(page._replace(path=f"/mirror{page.path}"))
        found.append(Page(f"/old/{n}", page.title, "moved", 301, page.path))
    for n, topic in enumerate(list(TOPICS)[:4]):
        found.append(Page(f"/agree/{n}", f"{topic}: everything at a glance", "consent", 302, f"/consent-page?to={n}"))
        found.append(Page(f"/check/{n}", f"{topic}: all you need", "<div class='cf-challenge'>One moment</div>"))
        found.append(Page(f"/files/{n}.pdf", f"{topic} price list", _price_list(topic, n), kind="application/pdf"))
        found.append(Page(f"/private/{n}", f"{topic}: minutes", "<p>Not for robots, says robots.txt.</p>"))
    found += [Page(f"/round/{n}", "A circle", "round", 302, f"/round/{1 - n}") for n in (0, 1)]
    found += [Page("/gone", "Gone", "gone", 410), Page("/broken", "Broken", "broken", 500)]
    return own | {page.path: page for page in found}


def _article(topic: str, facet: str) -> Page:
    seed = sum(map(ord, topic + facet))
    about = _sentences(topic, seed)
    first, others = about[facet], [about[each] for each in FACETS[: seed % 3] if each != facet]
    body = [first, *others, *(f"{TAIL[(seed + n) % 6]} {TAIL[(seed + n + 2) % 6]}" for n in range(3))]
    title = f"{topic.capitalize()}: {facet}"
    shown = "".join(f"<p>{text}</p>" for text in body)
    more = " ".join(f'<a href="/{_slug(topic)}/{_slug(each)}">{each}</a>' for each in FACETS)
    place = TOPICS[topic][0]
    article = f"<article><h1>{title}</h1><p>{place[0].upper()}{place[1:]}: {facet}.</p>{shown}</article>"
    aside = f"<aside>{more} <a href='/calendar?day=1'>calendar</a></aside>"
    footer = "<footer>The town's office answers by letter.</footer>"
    return Page(f"/{_slug(topic)}/{_slug(facet)}", title, f"<nav>{NAV}</nav>{article}{aside}{footer}")


def _price_list(topic: str, n: int) -> str:
    """A PDF of two pages; the last one is damaged."""
    if n == 3:  # noqa: PLR2004
        return "%PDF-1.7 prices"
    first = (f"Price list of the {topic}.", "It holds from the first of May.", *TAIL)
    return _pdf(
        [first, (f"A season ticket for the {topic} costs {60 + n} euros.", f"Prices of the {topic} include tax.")]
    )


def _pdf(pages: list[tuple[str, ...]]) -> str:
    """A PDF with lines on each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, lines in enumerate(pages):
        shown = f"BT /F1 12 Tf 40 720 Td 14 TL {' '.join(f'({line}) Tj T*' for line in lines)} ET"
        fonts, box = "/Resources << /Font << /F1 3 0 R >> >>", "/MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} {fonts} /Contents {5 + 2 * n} 0 R >>")
        objects.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    body, places = "%PDF-1.4\n", []
    for n, each in enumerate(objects, 1):
        places.append(len(body))
        body += f"{n} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    )


def _sentences(topic: str, seed: int) -> dict[str, str]:
    """What a page about each facet of a topic says."""
    place, opens, closes, price, closed, since = TOPICS[topic]
    ticket = f"A ticket for the {topic} costs {price} euros, and {price // 2} for children and students."
    free = f"The {topic} costs nothing. A deposit of {seed % 9 + 5} euros is asked for a key."
    return {
        "overview": f"This page tells in short what {place} offers. It is run by the town, and {seed * 7} people use it "
        "every month.",
        "opening hours": f"The {topic} opens at {opens} and closes at {closes} on every day but {closed}. The last "
        "entry is half an hour before it closes.",
        "prices": f"{ticket} A pass for ten visits costs {price * 8} euros." if price else free,
        "history": f"The {topic} dates from {since}. A flood in {since + 31} filled its cellar, and it was rebuilt "
        f"within {seed % 5 + 2} years.",
        "renovation": f"The roof of the {topic} is renewed from March to September {2025 + seed % 3}. The work costs "
        f"{seed * 3_000} euros, and a third of it is paid by the county.",
        "access": f"A ramp leads to the {topic} from the yard. The lift is {80 + seed % 40} cm wide, and "
        f"{seed % 6 + 1} parking places are kept free.",
        "staff": f"{seed % 20 + 3} people work at the {topic}. Its head is chosen by the council for {seed % 4 + 3} years.",
        "questions": f"The question asked most often at the {topic} is whether one can pay by card. One can, from "
        f"{seed % 7 + 3} euros on.",
        "figures": f"In the last year {seed * 131} people came to the {topic}, which is {seed % 11 + 1} per cent more "
        "than in the year before.",
        "news": f"The {topic} has a new website. It also extends its hours on {seed % 28 + 1} October: on that evening "
        "it closes an hour later.",
    }


def _slug(name: str) -> str:
    return name.replace(" ", "-")


class Town:
    """Serves the pages, and searches them."""

    def __init__(self) -> None:
        self.pages = pages()
        self.requests: list[str] = []
        self.base = ""
        self._words = {path: Counter(_words(page.title * 2 + " " + page.text)) for path, page in self.pages.items()}
        self._spread = Counter(word for words in self._words.values() for word in words)

    def found(self, query: str) -> list[Page]:
        """Pages that have words of a query, the best first."""
        asked = set(_words(query))
        scores = {
            path: sum(math.log(len(self.pages) / self._spread[word]) * min(words[word], 4) for word in asked & words.keys())
            for path, words in self._words.items()
        }  # fmt: skip
        return [self.pages[path] for path in sorted(scores, key=lambda path: (-scores[path], path)) if scores[path] > 0]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        self.requests.append(request.path_qs)
        answer = {
            "/search": self._search,
            "/robots.txt": _robots,
            "/consent-page": _consent,
            "/calendar": _calendar,
            "/endless": _endless,
        }.get(request.path, self._page)
        return answer(request)

    def _page(self, request: web.Request) -> web.Response:
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404)
        if page.location:
            return web.Response(status=page.status, headers={"location": page.location})
        if page.kind != "text/html":
            return web.Response(body=page.text.encode(), content_type=page.kind)
        tag = f'"{len(page.text)}"'
        known = request.headers.get("if-none-match") == tag
        return web.Response(status=304) if known else _html(page.title, page.text, page.status, tag)

    def _search(self, request: web.Request) -> web.Response:
        query = request.query.get("q", "")
        results = [
            {"title": page.title, "url": self.base + page.path, "content": _plain(page.text)[:160], "engine": "town"}
            for page in self.found(query)[:30]
        ]
        return web.json_response({"query": query, "results": results, "unresponsive_engines": []})

    async def start(self, port: int = 0) -> web.AppRunner:
        """Serve on loopback; the runner's `cleanup` ends it."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


def _robots(_request: web.Request) -> web.Response:
    return web.Response(text="User-agent: *\nDisallow: /private/\nDisallow: /calendar\n")


def _consent(_request: web.Request) -> web.Response:
    return _html("Before you continue", "<form action='/consent-page'>We use cookies. <button>Agree</button></form>")


def _calendar(request: web.Request) -> web.Response:
    day = int(request.query.get("day", "1"))
    return _html(f"Day {day}", f"<a href='/calendar?day={day + 1}'>the day after</a>")


def _endless(_request: web.Request) -> web.Response:
    body = gzip.compress(b"\0" * 30_000_000)
    return web.Response(body=body, headers={"content-encoding": "gzip", "content-type": "text/html"})


def _words(text: str) -> list[str]:
    return [word.rstrip("s") for word in re.findall(r"[a-z0-9]+", _plain(text).lower())]


def _plain(text: str) -> str:
    return " ".join(re.sub(r"<nav>.*?</nav>|<aside>.*|<[^>]*>", " ", text).split())


def _html(title: str, body: str, status: int = 200, tag: str = "") -> web.Response:
    text = f'<!doctype html><html lang="en"><head><title>{title}</title></head><body>{body}</body></html>'
    return web.Response(text=text, status=status, content_type="text/html", headers={"etag": tag} if tag else {})


async def main(port: int) -> None:
    """Serve until Ctrl-C."""
    town = Town()
    runner = await town.start(port)
    print(f"{len(town.pages)} pages at {town.base}. In another terminal:\n")  # noqa: T201
    print(f"WEB_SEARCH_BACKEND=searxng SEARXNG_BASE_URL={town.base} remit run research_report \\")  # noqa: T201
    print('  --query "When does the swimming pool open, and what does it cost?" --web')  # noqa: T201
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8899))
