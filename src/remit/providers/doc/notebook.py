"""The text of a Jupyter notebook: its cells, with what they printed; each cell is a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.files.parsed import Job, Parsed, Refused, joined

Lines = str | list[str]
_WORD: Final = re.compile(r"[\w+#.-]{1,30}")


class _Output(msgspec.Struct, frozen=True):
    """What a cell left."""

    text: Lines = ""
    data: dict[str, Any] = {}
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct, frozen=True):
    """One cell of format 4."""

    cell_type: str
    source: Lines = ""
    outputs: list[_Output] = []


class _Language(msgspec.Struct, frozen=True):
    """The language of code cells."""

    name: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    """What a notebook says of itself."""

    language_info: _Language = _Language()


class _Notebook(msgspec.Struct, frozen=True):
    """A notebook of format 4 (nbformat)."""

    cells: list[_Cell]
    metadata: _Metadata = _Metadata()


def read_notebook(job: Job) -> Parsed | Refused:
    """Return the text of a notebook as Markdown."""
    try:
        notebook = msgspec.json.decode(job.data.removeprefix(b"\xef\xbb\xbf"), type=_Notebook)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Refused(Code.DOCUMENT_UNREADABLE.name, "it is no notebook of format 4")
    named = _WORD.fullmatch(notebook.metadata.language_info.name)
    language = named[0] if named else ""
    texts: list[str] = []
    room = job.chars
    for cell in notebook.cells[: job.pages]:
        if room <= 0:
            break
        texts.append("\n\n".join(_parts(cell, language)))
        room -= len(texts[-1]) + 2
    return joined(texts, job, title="", page_count=len(notebook.cells))


def _parts(cell: _Cell, language: str) -> Iterator[str]:
    source = _text(cell.source)
    yield f"```{language}\n{source}\n```" if cell.cell_type == "code" else source
    for output in cell.outputs:
        said = _text(output.text) or _text(output.data.get("text/plain", ""))
        said = said or f"{output.ename}: {output.evalue}".strip(": ")
        if said.strip():
            yield f"```\n{said.rstrip()}\n```"


def _text(lines: Any) -> str:
    if isinstance(lines, list):
        lines = "".join(line for line in lines if isinstance(line, str))
    return lines.replace("\0", "") if isinstance(lines, str) else ""
