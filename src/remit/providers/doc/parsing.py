"""The program of a worker that parses documents: `python -m remit.providers.doc.parsing`."""

from __future__ import annotations

from remit.files.parsed import Job, Parsed, Refused
from remit.files.pdf import read_pdf
from remit.process.worker import answer_jobs
from remit.providers.doc.docx import read_docx
from remit.providers.doc.notebook import read_notebook

_READERS = {"pdf": read_pdf, "docx": read_docx, "ipynb": read_notebook}


def parse(job: Job) -> Parsed | Refused:
    """Return the text of a document, or why there is none."""
    return _READERS[job.format](job)


if __name__ == "__main__":
    answer_jobs(Job, parse)
