"""The tree of errors."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from remit import errors
from remit.codes import Code
from remit.errors import NondeterminismError, ProviderError, RemitError

SOURCE = Path(errors.__file__).parent
TREE = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, RemitError)]
PLAIN = [each for each in TREE if each is not NondeterminismError]


def drawn() -> dict[str, str]:
    """Each error of the tree at the head of the file, and the one it hangs on."""
    lines = re.findall(r"^([ │├└─]*)(\w+Error)\b", inspect.getdoc(errors) or "", re.MULTILINE)
    root = len(lines[0][0])
    above: list[str] = []
    parents: dict[str, str] = {}
    for indent, name in lines:
        depth = (len(indent) - root) // 4
        above[depth:] = [name]
        parents[name] = above[depth - 1] if depth else ""
    return parents


def defined() -> dict[str, str]:
    """Each class of the sources that is one of these errors, and the one that it extends."""
    found = {"RemitError": "", "ProviderError": ""}
    waiting = [
        (node.name, node.bases[0].id)
        for path in sorted(SOURCE.rglob("*.py"))
        if "Error)" in (text := path.read_text(encoding="utf-8"))
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.bases and isinstance(node.bases[0], ast.Name)
    ]
    while more := {name: base for name, base in waiting if base in found and name not in found}:
        found |= more
    return found


@pytest.mark.slow
def test_the_tree_at_the_head_of_the_file_is_the_tree() -> None:
    assert drawn() == defined()


@pytest.mark.parametrize("error", TREE)
def test_every_error_has_a_stable_code_by_default(error: type[RemitError]) -> None:
    assert isinstance(error.default, Code)
    assert error.__doc__


@pytest.mark.parametrize("error", PLAIN)
def test_an_error_says_code_and_message_and_keeps_the_remedy(error: type[RemitError]) -> None:
    raised = error("the disk is full", code=Code.JOURNAL_FULL, remedy="Make room.")
    assert (raised.code, raised.message, raised.remedy) == (Code.JOURNAL_FULL, "the disk is full", "Make room.")
    assert str(raised) == "JOURNAL_FULL: the disk is full"


@pytest.mark.parametrize("error", PLAIN)
def test_without_a_message_the_codes_meaning_is_the_message(error: type[RemitError]) -> None:
    raised = error()
    assert (raised.code, raised.message, raised.remedy) == (error.default, error.default.meaning, "")


def test_nondeterminism_shows_both_sides() -> None:
    raised = NondeterminismError("4.1", "a call of fs.read", "a clock reading")
    assert (raised.step, raised.recorded, raised.requested) == ("4.1", "a call of fs.read", "a clock reading")
    assert raised.message == "step 4.1: the journal holds a call of fs.read, but the recipe requests a clock reading"
    assert raised.code is Code.NONDETERMINISTIC
    assert raised.remedy


def test_a_providers_error_keeps_its_cause_and_is_not_remits() -> None:
    raised = ProviderError("no such branch", cause=Code.AuthError, code=Code.FILE_NOT_FOUND)
    assert (str(raised), raised.cause, raised.code) == ("no such branch", Code.AuthError, Code.FILE_NOT_FOUND)
    assert ProviderError("x").cause is Code.InvalidInput
    assert not issubclass(ProviderError, RemitError)
