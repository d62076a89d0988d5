"""The section `[dbos]`."""

from typing import Annotated

import msgspec

from remit.settings.section import About, Count, Millis, Seconds, Section

_Most = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class DbosSettings(Section, frozen=True):
    """Settings of DBOS, which places jobs where `jobs.engine` is `dbos`. Workers on one queue need the same values."""

    queue: Annotated[
        Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,40}$", description="1 to 40 of a-z, 0-9, _ and -")],
        About("The queue. Workers with the same queue and the same recipes share jobs and limits."),
    ] = "jobs"
    concurrency: Annotated[
        _Most, About("Jobs that all workers on the queue run at the same time, together. 0: no limit.")
    ] = 0
    rate: Annotated[
        _Most, About("Passes over jobs that begin in `dbos.rate_seconds`, on all workers together. 0: no limit.")
    ] = 0
    rate_seconds: Annotated[Seconds, About("The stretch of time of `dbos.rate`.")] = 60
    poll_millis: Annotated[
        Millis, About("Milliseconds between two looks of a worker at the queue. Less starts jobs sooner.")
    ] = 150
    ahead: Annotated[
        Count, About("Due jobs that wait in DBOS, at most; more than all workers run at once. The rest waits here.")
    ] = 256
