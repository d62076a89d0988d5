"""Finding the browser, and what it is told."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from remit.capability import Check, Look
from remit.parts.browser.settings import BrowserSettings
from remit.settings.parts import settings_of

INSTALL: Final = (
    "Install chromium-headless-shell or chromium (`apt install chromium-headless-shell`), or set browser.program."
)
_PLACES: Final = (
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium/headless_shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
"""The programs themselves: what lies in /usr/bin are scripts that add flags. The headless one needs half the memory."""
FLAGS: Final = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-sync",
    "--no-pings",
    "--disable-gpu",
)
"""The network is empty except for the proxy whatever they say; with them nothing waits for an answer from elsewhere."""


def find(program: str) -> Path | None:
    """Return the browser's program, the one named or the system's; None: there is none that can be run."""
    places = map(Path, (program,) if program else _PLACES)
    return next((place.resolve() for place in places if place.is_file() and os.access(place, os.X_OK)), None)


async def check_browser(look: Look) -> list[Check]:
    """Return one check, which fails only where the browser has settings; the sandbox has a check of its own."""
    own = settings_of(look.settings, "browser", BrowserSettings)
    program = find(own.program)
    verdict: Literal["ok", "fail"] = "ok" if own == BrowserSettings() else "fail"
    if find_spec("playwright") is None:
        return [Check("browser", verdict, "playwright is not installed", "pip install 'remit[browser]'")]
    if program is None:
        reason = f"not found at {own.program}" if own.program else "none is installed"
        return [Check("browser", verdict, reason, INSTALL)]
    within = "its own sandbox within Remit's" if own.inner_sandbox else "Remit's sandbox alone"
    return [Check("browser", "ok", f"{program}, {within}")]
