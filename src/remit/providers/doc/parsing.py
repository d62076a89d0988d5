"""The program of a worker that parses documents: `python -m remit.providers.doc.parsing`."""

from __future__ import annotations

from remit.files.parsed import Job, Parsed, Refused
from remit.files.pdf import read_pdf
from remit.process.worker import answer_jobs
from remit.providers.doc.docx import read_docx
from remit.providers.doc.epub import read_epub, read_notebook
from remit.providers.doc.pptx import read_pptx
from remit.providers.doc.xlsx import read_xlsx

_READERS = {
    "pdf": read_pdf, "docx": read_docx, "pptx": read_pptx, "xlsx": read_xlsx, "epub": read_epub, "ipynb": read_notebook,
}  # fmt: skip


def parse(job: Job) -> Parsed | Refused:
    """Return the text of a document, or why there is none."""
    return _READERS[job.format](job)


if __name__ == "__main__":
    answer_jobs(Job, parse)
