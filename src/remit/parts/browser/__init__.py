"""A browser: pages that are opened, read, clicked and typed into, in the sandbox and behind the filtering proxy."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="browser",
        about="Open, read and use pages in a browser.",
        settings="remit.parts.browser.settings:BrowserSettings",
        providers="remit.parts.browser.provider:open_browser",
        provider_ids=("browser",),
        tools=True,
        checks="remit.parts.browser.program:check_browser",
        modules=("playwright",),
        extra="browser",
    ),
)
