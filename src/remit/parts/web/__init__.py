"""The web: search, fetch and extract, as tools that only read and whose output is untrusted."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="web",
        about="Search, fetch and read pages of the web.",
        settings="remit.parts.web.settings:WebSettings",
        providers="remit.parts.web.wiring:open_web",
        provider_ids=("web", "stub_web"),
        tools=True,
        offers="remit.parts.web.settings:offered",
        kinds={"search_blocked": "remit.parts.web.kinds:SearchBlocked"},
        checks="remit.parts.web.wiring:check_search",
        modules=("aiohttp", "lxml_html_clean", "protego", "resiliparse", "trafilatura"),
        extra="web",
    ),
)
