"""Problems of a server become the errors that the same call raises here."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from remit import errors
from remit.client.connection import class_of, error_of
from remit.codes import Code
from remit.errors import NotFoundError, RemitError, ServerError, UsageError
from remit.tools.catalog import ResolveError

SOURCE = Path(errors.__file__).parent
NOT_RAISED_BY_THE_SERVICE = {"ProviderError", "RunError", "NondeterminismError", "LackingError", "InvalidPlanError"}
"""Outcomes and ends of jobs, which are values over HTTP, and a plan's problems, whose class only adds their places."""


def raised() -> dict[str, set[str]]:
    """The classes that the source raises with each code that it names."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "code=" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                for given in node.keywords:
                    if given.arg == "code" and isinstance(given.value, ast.Attribute):
                        found[given.value.attr].add(node.func.id)
    return {code: kinds - NOT_RAISED_BY_THE_SERVICE for code, kinds in found.items() if code in Code.__members__}


@pytest.mark.slow
def test_the_class_of_each_code_is_one_that_the_source_raises_with_it() -> None:
    found = raised()
    assert len(found) > 20
    for code, kinds in found.items():
        if kinds:
            own = {kind.__name__ for kind in vars(errors).values() if getattr(kind, "default", None) is Code[code]}
            resolved = {"UNKNOWN_TOOL": {"ResolveError"}, "HEAD_MISSING": {"ChainBrokenError"}}.get(code, set())
            assert class_of(Code[code]).__name__ in kinds | own | resolved, code


@pytest.mark.parametrize("code", Code)
def test_every_code_comes_through_with_message_and_remedy(code: Code) -> None:
    body = {"type": "about:blank", "title": "T", "status": code.http, "error_code": code.name, "detail": "why"}
    error = error_of(code.http, msgspec.json.encode({**body, "remedy": "fix it"}))
    assert (error.code, error.message, error.remedy) == (code, "why", "fix it")


@pytest.mark.parametrize("code", ["JOB_NOT_FOUND", "NEWER"])
def test_words_of_a_server_stay_on_one_line(code: str) -> None:
    words = "no\n# fake prompt\r\x1b[2K\u2028$ "
    error = error_of(404, msgspec.json.encode({"error_code": code, "detail": words, "remedy": words}))
    assert (error.message + error.remedy).isprintable()
    assert "fake prompt" in error.message


def test_errors_that_commands_tell_apart_are_told_apart() -> None:
    assert class_of(Code.JOB_NOT_FOUND) is NotFoundError
    assert class_of(Code.UNKNOWN_TOOL) is ResolveError
    assert class_of(Code.UNAUTHENTICATED) is UsageError
    assert class_of(Code.UNHANDLED_EXCEPTION) is RemitError


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway", b"", b"\xff", b"[]", b'{"error_code": 1}', b'{"error_code": "NEWER", "detail": "d"}']
)
def test_an_answer_that_is_no_problem_of_ours_is_an_invalid_answer(body: bytes) -> None:
    error = error_of(502, body)
    assert isinstance(error, ServerError)
    assert (error.code, "502" in error.message) == (Code.SERVER_ANSWER_INVALID, True)
