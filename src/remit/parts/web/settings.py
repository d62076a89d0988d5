"""The section `[web]`, and what of the tools it leaves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Final

from remit.settings.parts import settings_of
from remit.settings.pictures import url_or_empty
from remit.settings.section import About, Bytes, Count, Millis, Seconds, Section, Texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.capability import Opening
    from remit.tools.meta import ToolMeta

_log: Final = logging.getLogger("remit.settings")
STUB: Final = "stub"


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


_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "ddg_html": (),
    "folder": ("folder", "folder_url"),
    "searxng": ("searxng_url",),
    "brave": ("brave_key",),
    "serper": ("serper_key",),
}
"""The settings that each backend needs."""
_ENVIRONMENT: Final = {
    "searxng_url": "SEARXNG_BASE_URL",
    "brave_key": "BRAVE_API_KEY",
    "serper_key": "SERPER_API_KEY",
    "folder": "WEB_SEARCH_FOLDER",
    "folder_url": "WEB_SEARCH_FOLDER_URL",
}


def backends_of(settings: WebSettings) -> tuple[list[str], list[str]]:
    """Return the names of the backends that can be asked, in their order, and what to say of the others."""
    names, warnings = [], []
    for entry in settings.search:
        name = entry.strip().lower()
        if problem := _problem(name, settings):
            warnings.append(f"web.search: {problem}; {'the others are' if len(settings.search) > 1 else STUB} used")
        elif name != STUB:
            names.append(name)
    return names, warnings


def _problem(name: str, settings: WebSettings) -> str:
    """Return why a backend cannot be asked; empty: it can."""
    if name == STUB:
        return ""
    if name == "bing":
        return "Bing's search API was shut down in 2025: choose another backend in web.search (WEB_SEARCH_BACKEND)"
    if name not in _NEEDS:
        return f"{name[:40]!r} in web.search (WEB_SEARCH_BACKEND) is no backend"
    missing = [needs for needs in _NEEDS[name] if not getattr(settings, needs)]
    return f"{name} needs web.{missing[0]} ({_ENVIRONMENT[missing[0]]})" if missing else ""


def offered(opening: Opening, tools: Sequence[ToolMeta]) -> list[ToolMeta]:
    """Return the tools of this process: without a backend that can be asked, only the stub searches. Warn of others."""
    names, warnings = backends_of(settings_of(opening.settings, "web", WebSettings))
    for warning in warnings:
        _log.warning("%s", warning)
    return [tool for tool in tools if names or (tool.name, tool.provider_id) != ("web.search", "web")]
