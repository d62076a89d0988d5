"""Which page a path and a method belong to, and what its query says."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.pages.page import Page


def find(pages: Sequence[Page], method: str, path: str) -> tuple[Page, dict[str, str]]:
    """The page, and what stands in the braces of its path. Raises Problem if there is none."""
    wanted_method = "GET" if method == "HEAD" else method
    segments = path.split("/")
    allowed = set[str]()
    for page in pages:
        parameters = _given(page.path.split("/"), segments)
        if parameters is not None:
            if page.method == wanted_method:
                return page, parameters
            allowed.add(page.method)
    if allowed:
        raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(sorted(allowed))})
    raise HttpProblem(Code.PATH_UNKNOWN)


def _given(shape: list[str], segments: list[str]) -> dict[str, str] | None:
    """Return what stands in the braces; None for another path. A slash inside a name comes as %2F."""
    if len(shape) != len(segments):
        return None
    parameters = {}
    for part, segment in zip(shape, segments, strict=True):
        if part.startswith("{"):
            parameters[part[1:-1]] = unquote(segment)
        elif part != segment:
            return None
    return parameters
