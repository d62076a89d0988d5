"""The section `[web]`."""

from typing import Annotated

from remit.settings.pictures import url_or_empty
from remit.settings.section import About, Bytes, Count, Millis, Seconds, Section, Texts


def _masked(value: str) -> str:
    return "***" if value else ""


class WebSettings(Section, frozen=True):
    """What the web tools ask and fetch."""

    search: Annotated[
        Texts,
        About(
            "Search backends in the order in which they are asked: `stub` (offline), `folder`, `ddg_html`, `searxng`, "
            "`brave` or `serper`. If one cannot answer, the next is asked. Only `stub`: nothing leaves the machine.",
            env=("WEB_SEARCH_BACKEND",),
        ),
    ] = ("stub",)
    fuse: Annotated[bool, About("Whether all backends are asked, and their results ranked together.")] = False
    searxng_url: Annotated[
        str,
        About(
            "The SearXNG instance; `json` must stand in its `search.formats`.",
            env=("SEARXNG_BASE_URL",),
            resolve=url_or_empty,
        ),
    ] = ""
    searxng_key: Annotated[
        str, About("Its bearer token, if it wants one.", env=("SEARXNG_API_KEY",), picture=_masked)
    ] = ""
    searxng_timeout_ms: Annotated[Millis, About("Milliseconds until it is given up.", env=("SEARXNG_TIMEOUT_MS",))] = (
        15_000
    )
    brave_key: Annotated[str, About("The key of Brave's search API.", env=("BRAVE_API_KEY",), picture=_masked)] = ""
    serper_key: Annotated[str, About("The key of Serper.", env=("SERPER_API_KEY",), picture=_masked)] = ""
    folder: Annotated[
        str,
        About("The folder that the backend `folder` searches: the files of a site.", env=("WEB_SEARCH_FOLDER",)),
    ] = ""
    folder_url: Annotated[
        str,
        About("The URL below which that site serves them.", env=("WEB_SEARCH_FOLDER_URL",), resolve=url_or_empty),
    ] = ""
    cooldown_seconds: Annotated[
        Seconds, About("Seconds for which a backend that blocked Remit is not asked again.")
    ] = 900
    private: Annotated[
        Texts,
        About("Hosts with their ports, such as `127.0.0.1:8888`, that may have private addresses. `searxng_url` may."),
    ] = ()
    max_bytes: Annotated[
        Bytes, About("Bytes of a decoded page that are read; the rest is cut, and the cut is said.")
    ] = 5_000_000
    robots: Annotated[bool, About("Whether pages are fetched only where robots.txt allows it.")] = True
    pause_ms: Annotated[Millis, About("Milliseconds between two requests to one host.")] = 500
    pages: Annotated[Count, About("Pages that are kept to be asked for again only if they changed.")] = 200
    pages_bytes: Annotated[Bytes, About("Bytes that they take together in the journal, compressed.")] = 50_000_000
