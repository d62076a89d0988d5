"""The section `[jobs]`."""

from typing import Annotated, Literal

import msgspec

from remit.settings.section import About, Count, Seconds, Section

_Of = Annotated[
    str, msgspec.Meta(pattern=r"^(principal|recipe|label:.+)$", description="principal, recipe or label:NAME")
]


class JobSettings(Section, frozen=True):
    """How jobs run."""

    concurrency: Annotated[Count, About("Jobs that one worker runs at the same time.")] = 16
    lease_seconds: Annotated[
        Seconds,
        About("Seconds until other workers can take over the job of a worker that disappeared."),
    ] = 30
    share: Annotated[
        _Of,
        About(
            "Those who take turns if more jobs are due than workers have room for: each `principal`, `recipe` or value "
            "of a label, as in `label:team`."
        ),
    ] = "principal"
    quotas: Annotated[
        dict[_Of, Count],
        About(
            "Jobs that may be open for each principal, recipe or value of a label, as in `principal = 1000` and "
            '`"label:team" = 200`. One more is refused (`JOB_QUOTA_EXCEEDED`).'
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it
    queue: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=1_000_000)],
        About("Jobs that may wait for a worker. One more is refused (`JOBS_FULL`). 0: no bound."),
    ] = 0
    engine: Annotated[
        str,
        About(
            "The engine that places jobs on workers: `local`, which needs the journal alone, or `dbos` "
            "([production.md](production.md))."
        ),
    ] = "local"
    mismatch: Annotated[
        Literal["warn", "fail", "migrate"],
        About(
            "What to do if a job resumes or is replayed under other versions than recorded: warn, record it and "
            "continue; fail, refuse; migrate, continue if a registered migration covers the change, else refuse."
        ),
    ] = "warn"
    code_version: Annotated[
        str,
        About(
            "The code version to record with recipes: `package:NAME`, `git`, or any text. Empty: a digest of the code."
        ),
    ] = ""
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About("Seconds that a stopping worker waits for running calls to end."),
    ] = 20
