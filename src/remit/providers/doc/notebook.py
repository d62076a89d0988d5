"""The text of a Jupyter notebook: its cells, with what they printed; each cell is a page.

A value that is odd costs its own place: what is not wanted is not looked at, and NaN is read, as Python writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from remit.codes import Code
from remit.files.parsed import Job, Parsed, Refused, joined

_WORD: Final = re.compile(r"[\w+#.-]{1,30}")


def read_notebook(job: Job) -> Parsed | Refused:
    """Return the text of a notebook as Markdown."""
    try:
        notebook = json.loads(job.data.removeprefix(b"\xef\xbb\xbf"))
    except json.JSONDecodeError as error:
        why = f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        return Refused(Code.DOCUMENT_UNREADABLE.name, why)
    except UnicodeDecodeError:
        return Refused(Code.DOCUMENT_UNREADABLE.name, "it is not in UTF-8")
    except (RecursionError, ValueError):
        return Refused(Code.DOCUMENT_UNREADABLE.name, "its values are nested too deeply, or too long")
    cells = _member(notebook, "cells")
    if not isinstance(cells, list):
        return Refused(Code.DOCUMENT_UNREADABLE.name, _other(notebook))
    named = _WORD.fullmatch(_text(_member(_member(_member(notebook, "metadata"), "language_info"), "name")))
    language = named[0] if named else ""
    texts = ("\n\n".join(_parts(cell, language)).encode("utf-8", "replace").decode() for cell in cells)
    return joined(texts, job, title="", page_count=len(cells))


def _other(notebook: object) -> str:
    """Return why a JSON file is no notebook that is read."""
    form = _member(notebook, "nbformat")
    if isinstance(form, int) and _member(notebook, "worksheets") is not None:
        return f"it is a notebook of format {form}; format 4 is read, which `jupyter nbconvert --to notebook` writes"
    return "it is no notebook of format 4: it has no list of cells"


def _parts(cell: object, language: str) -> Iterator[str]:
    source = _text(_member(cell, "source"))
    yield f"```{language}\n{source}\n```" if _member(cell, "cell_type") == "code" else source
    outputs = _member(cell, "outputs")
    for output in outputs if isinstance(outputs, list) else ():
        printed = _text(_member(output, "text")) or _text(_member(_member(output, "data"), "text/plain"))
        printed = printed or f"{_text(_member(output, 'ename'))}: {_text(_member(output, 'evalue'))}".strip(": ")
        if printed.strip():
            yield f"```\n{printed.rstrip()}\n```"


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _text(lines: Any) -> str:
    if isinstance(lines, list):
        lines = "".join(line for line in lines if isinstance(line, str))
    return lines.replace("\0", "") if isinstance(lines, str) else ""
