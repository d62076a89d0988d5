"""The program of a worker that parses documents: `python -m remit.parts.documents.parser`."""

from __future__ import annotations

from remit.files.parse_job import Parsed, ParseJob, Refused
from remit.files.pdf import read_pdf
from remit.parts.documents.docx import read_docx
from remit.parts.documents.epub import read_epub, read_notebook
from remit.parts.documents.pptx import read_pptx
from remit.parts.documents.xlsx import read_xlsx
from remit.process.worker import answer_jobs

_READERS = {
    "pdf": read_pdf, "docx": read_docx, "pptx": read_pptx, "xlsx": read_xlsx, "epub": read_epub, "ipynb": read_notebook,
}  # fmt: skip


def parse(job: ParseJob) -> Parsed | Refused:
    """Return the text of a document, or why there is none."""
    return _READERS[job.format](job)


if __name__ == "__main__":
    answer_jobs(ParseJob, parse)
