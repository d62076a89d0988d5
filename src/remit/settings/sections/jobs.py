"""The section `[jobs]`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from remit.settings.section import About, Count, Seconds, Section


class JobSettings(Section, frozen=True):
    """How jobs run."""

    concurrency: Annotated[Count, About("Jobs that one worker runs at the same time.")] = 16
    lease_seconds: Annotated[
        Seconds,
        About("How long a job of a worker that vanished stays out of reach of others."),
    ] = 30
    mismatch: Annotated[
        Literal["warn", "fail", "migrate"],
        About(
            "What to do when a job resumes under other versions than it was recorded with: record it and go on, "
            "refuse, or go on if a registered migration covers it and refuse otherwise."
        ),
    ] = "warn"
    code_version: Annotated[
        str,
        About(
            "The version of the code that recipes are recorded with: `package:NAME`, `git`, or any text. Empty: a "
            "digest of the code."
        ),
    ] = ""
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About("How long a worker that is told to stop waits for running calls to end."),
    ] = 20
