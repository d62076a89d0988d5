"""Pages: the trace of a job as a file to keep, and the report about a record."""

from __future__ import annotations

from typing import Final

from remit.pages.page import Page, PageFile, PageRequest


async def trace(request: PageRequest) -> PageFile:
    """Give what a job did as one HTML file to keep. Raises NotFoundError."""
    job = request.path["job"]
    return PageFile(f"{job}.html", await request.service.audit.trace(job))


PAGES: Final = (Page(path="/jobs/{job}/trace.html", scope="read", handler=trace, name="Save the trace", of="job"),)
