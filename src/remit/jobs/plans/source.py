"""Plans as people write them: YAML or JSON text, read with the place of every key and value, then checked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.document import PlanDocument, UnreadablePlanError, read_json
from remit.jobs.plans.problem import InvalidPlanError, Place, PlanProblem
from remit.regex import regex
from remit.settings.file import read_plain

if TYPE_CHECKING:
    from remit.jobs.plans.plan import Plan

MAX_BYTES: Final = 1024 * 1024
_UNPRINTABLE: Final = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue002-\ufffd\U00010000-\U0010ffff]")
"""Characters that a plan may not hold as they are: control characters, lone surrogates, and the two that yaml_text.py
needs.
"""


def load_plan(
    path: str | FilePath, *, tools: Collection[str] | None = None, recipes: Collection[str] | None = None
) -> Plan:
    """The plan in a file: JSON where its name ends so, else YAML.

    Where the names of `tools` or `recipes` are given, another one is a problem. Raises InvalidPlanError.
    """
    file = str(path)
    try:
        data = read_plain(FilePath(path), MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problem = PlanProblem(0, 0, "", f"cannot be read: {reason}", "a file with a plan")
        raise InvalidPlanError([problem], file, code=Code.PLAN_UNREADABLE, remedy="Check the path.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unreadable(file, "found bytes that are not UTF-8", "text in UTF-8", (line, 1)) from error
    return parse_plan(text, file, tools=tools, recipes=recipes)


def parse_plan(
    text: str,
    file: str = "plan.yaml",
    *,
    tools: Collection[str] | None = None,
    recipes: Collection[str] | None = None,
) -> Plan:
    """The plan in a text, as `load_plan` for the content of a file of that name. Raises InvalidPlanError."""
    document = read_text(text, file)
    try:
        plan = read_plan(document.value, file=file, marks=document.marks, tools=tools, recipes=recipes)
    except InvalidPlanError as error:
        raise InvalidPlanError([*document.problems, *error.problems], file) from None
    if document.problems:
        raise InvalidPlanError(document.problems, file)
    return plan


def read_text(text: str, file: str) -> PlanDocument:
    """The decoded text with its places, unchecked. Raises InvalidPlanError (`PLAN_UNREADABLE`)."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise _unreadable(file, f"found more than {MAX_BYTES:,} bytes", "a smaller plan")
    if match := _UNPRINTABLE.search(text):
        before = text[: match.start()]
        place = before.count("\n") + 1, match.start() - before.rfind("\n")
        raise _unreadable(file, f"found the character {match[0]!a}", "text without it", place)
    document = PlanDocument()
    try:
        if file.endswith(".json"):
            read_json(text, document)
        else:
            from remit.jobs.plans.yaml_text import read_yaml  # noqa: PLC0415 - see yaml_text.py: it is slow to load

            read_yaml(text, document)
    except UnreadablePlanError as error:
        problems = [*document.problems, error.problem]
        raise InvalidPlanError(problems, file, code=Code.PLAN_UNREADABLE) from error
    if document.empty:
        raise _unreadable(file, "found an empty text", "a plan")
    return document


def _unreadable(file: str, message: str, expected: str, place: Place = (0, 0)) -> InvalidPlanError:
    return InvalidPlanError([PlanProblem(*place, "", message, expected)], file, code=Code.PLAN_UNREADABLE)
