"""Pages: the trace of a job as a file to keep, and the report about a record."""

from __future__ import annotations

from typing import Final

from remit.pages.page import File, Page, PageRequest


async def trace(asked: PageRequest) -> File:
    """Give what a job did as one HTML file to keep. Raises NotFoundError."""
    job = asked.path["job"]
    return File(f"{job}.html", await asked.service.audit.trace(job))


PAGES: Final = (Page(path="/jobs/{job}/trace.html", scope="read", handler=trace, name="Save the trace", of="job"),)
