"""Tools that are functions: of this process, or run in the sandbox."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="functions",
        about="Your own functions as tools.",
        providers="remit.providers.functions.provider:open_functions",
    ),
)
