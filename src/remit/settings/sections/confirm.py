"""The section `[confirm]`."""

from __future__ import annotations

from typing import Annotated

from remit.settings.section import About, Seconds, Section


class ConfirmSettings(Section, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("How long a question may stay unanswered; after that the call is refused."),
    ] = 86_400
