"""Whether there is a browser, for `remit doctor`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from remit.capability import Check, Look
from remit.parts.browser.program import INSTALL, find
from remit.parts.browser.settings import BrowserSettings
from remit.settings.parts import settings_of


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
