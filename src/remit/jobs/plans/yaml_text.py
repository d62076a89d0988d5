"""YAML with places, cut down to what JSON can hold. Imported only where a plan is read: the parser is slow to load.

Plain words follow YAML 1.2's core schema with JSON's numbers, so that `no`, `on`, `010`, `1_000`, `12:30` and
`2024-01-31` are texts. Anchors, aliases and tags are refused: a value is never larger than its text. The parser's
events are taken one by one; nothing recurses, and no more is read once the document's bounds are passed.

One thing is more than YAML: a simple reference such as `${inputs.folder}` needs no quotes inside `{ }` and `[ ]`. Its
braces are hidden from the parser behind two characters of private use, one for one, so that every place stays right.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from remit.jobs.plans.document import PlanDocument, UnreadablePlanError, number
from remit.jobs.plans.problem import Place
from remit.regex import regex

LOADERS: Final[list[Any]] = [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader]
"""The one that is used, which is the fast one where the package was built with it, and the one that is always there."""
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_REFERENCE: Final = regex(r"\$\{([A-Za-z0-9_.-]+)\}")
_HIDDEN: Final = "$\ue000\\1\ue001"
_RESTORED: Final = {0xE000: "{", 0xE001: "}"}
_YAML: Final = "valid YAML"
_QUOTED: Final = 'a reference in quotes inside { } and [ ], such as "${inputs.folder}"'
_SPACES: Final = "spaces, not tabs, before the first word of a line"
_COLON: Final = "a text in quotes where it holds `: `"


def read_yaml(text: str, document: PlanDocument, loader: Any = LOADERS[0]) -> None:
    """Put the parts of a YAML text without U+E000 and U+E001 into a document. Raises UnreadableError."""
    try:
        for event in yaml.parse(_REFERENCE.sub(_HIDDEN, text), Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent) and not document.empty:
                document.note(_place(event.start_mark), "found a second document", "one document")
                return
            _take(event, document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not YAML: {error.problem or error.context}"
        raise UnreadablePlanError(_place(mark), message, _hint(text, mark, message)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise UnreadablePlanError((1, 1), f"not YAML: {error}", _YAML) from error


def _take(event: Any, document: PlanDocument) -> None:
    """One event of the parser."""
    match event:
        case yaml.AliasEvent():
            document.note(_place(event.start_mark), f"found the alias *{event.anchor}", "its value written out")
            document.scalar("", None, _place(event.start_mark))
        case yaml.ScalarEvent():
            _refuse_decoration(event, document)
            text = event.value.translate(_RESTORED)
            document.scalar(text, _value(text, event), _place(event.start_mark))
        case yaml.MappingStartEvent():
            _refuse_decoration(event, document)
            document.open({}, _place(event.start_mark))
        case yaml.SequenceStartEvent():
            _refuse_decoration(event, document)
            document.open([], _place(event.start_mark))
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            document.close()
        case _:
            return


def _refuse_decoration(event: Any, document: PlanDocument) -> None:
    """Anchors and tags."""
    if event.anchor is not None:
        document.note(_place(event.start_mark), f"found the anchor &{event.anchor}", "a plain value")
    if event.tag is not None:
        document.note(_place(event.start_mark), f"found the tag {event.tag}", "a plain value")


def _value(text: str, event: Any) -> Any:
    """Return what a scalar stands for: a quoted one is its text."""
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    parsed = number(text)
    return text if parsed is None else parsed


def _place(mark: Any) -> Place:
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _hint(text: str, mark: Any, message: str) -> str:
    """Return what was probably meant."""
    lines = text.split("\n")
    if mark is None or mark.line >= len(lines):
        return _YAML
    line = lines[mark.line]
    if line[: mark.column + 1].endswith("${"):
        return _QUOTED
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return _SPACES
    return _COLON if "mapping values are not allowed" in message else _YAML
