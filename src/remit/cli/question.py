r"""A question to a person on the screen: everything that the answer decides about, whole.

Values as a person reads them who decides by them: whole and exact, with real line breaks, behind a margin.

No row is wrapped by the terminal and each begins with a mark, so that nothing in a value can look like anything else:

    |   a line of JSON, in which a text of several lines stands as how long it is
    "   a line of such a text, as it is
    \   a line of such a text with escapes: what cannot be seen is one, and a backslash is doubled
    >   the row before goes on
    =   how long it was

A diff has `@`, `-`, `+` or a blank in place of the first two marks, then `\` where the line has escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.cli.output import cells, clean, fitting, one_line
from remit.cli.tables import fields, moment
from remit.clock import duration
from remit.record.views import ConfirmationView

if TYPE_CHECKING:
    from remit.cli.output import OutputChannel
    from remit.tools.provider import Preview


_INDENT: Final = "  "
_NO_END: Final = "no line break at the end"
LEGEND: Final = '" text as it is · \\ with escapes · > goes on · = its length'


class ScreenRow(NamedTuple):
    """A row of the screen."""

    mark: str
    text: str


def value_rows(value: Any, width: int | None) -> list[ScreenRow]:
    """A JSON value as rows of at most `width` columns."""
    return [row for line in _lines(value, "", "", "") for row in _wrapped(line, width)]


def diff_rows(diff: str, width: int | None) -> list[ScreenRow]:
    """A unified diff, without its two header lines, as rows of at most `width` columns."""
    lines = diff.removesuffix("\n").split("\n")[2:]
    rows = (
        ScreenRow("@ ", line.strip("@ ")) if line.startswith("@") else _marked(line[:1] or " ", line[1:])
        for line in lines
    )
    return [part for row in rows for part in _wrapped(row, width)]


def _lines(value: Any, indent: str, before: str, after: str) -> Iterator[ScreenRow]:
    if isinstance(value, str) and "\n" in value:
        yield ScreenRow("|", f"{indent}{before}({_size(value)}){after}")
        for line in value.removesuffix("\n").split("\n"):
            yield _marked('"', line)
    elif isinstance(value, dict) and value:
        yield ScreenRow("|", indent + before + "{")
        for left, (key, item) in zip(range(len(value) - 1, -1, -1), value.items(), strict=True):
            yield from _lines(item, indent + _INDENT, f"{_json(key)}: ", "," if left else "")
        yield ScreenRow("|", indent + "}" + after)
    elif isinstance(value, list) and value:
        yield ScreenRow("|", indent + before + "[")
        for left, item in zip(range(len(value) - 1, -1, -1), value, strict=True):
            yield from _lines(item, indent + _INDENT, "", "," if left else "")
        yield ScreenRow("|", indent + "]" + after)
    else:
        yield ScreenRow("|", indent + before + _json(value) + after)


def _size(text: str) -> str:
    lines = text.removesuffix("\n").count("\n") + 1
    end = "" if text.endswith("\n") else f", {_NO_END}"
    return f"{lines:,} line{'' if lines == 1 else 's'}, {len(text):,} characters{end}"


def _marked(mark: str, line: str) -> ScreenRow:
    """A line of text behind its mark: as it is, or with escapes, of which the margin then tells."""
    if clean(line) == line and not line.endswith(" "):
        return ScreenRow(mark if mark == '"' else f"{mark} ", line)
    trimmed = line.rstrip(" ")
    escaped = clean(trimmed.replace("\\", "\\\\")) + "\\x20" * (len(line) - len(trimmed))
    return ScreenRow("\\" if mark == '"' else f"{mark}\\", escaped)


def _json(value: Any) -> str:
    return clean(msgspec.json.encode(value).decode())


def _wrapped(row: ScreenRow, width: int | None) -> Iterator[ScreenRow]:
    mark, left = row
    room = None if width is None else width - len(mark) - 1
    while room is not None and cells(left) > room:
        count = fitting(left, room)
        yield ScreenRow(mark, left[:count])
        mark, left = ">" + row.mark[1:], left[count:]
    yield ScreenRow(mark, left)
    if mark != row.mark:
        yield ScreenRow("=" + row.mark[1:], f"{len(row.text):,} characters")


_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
_MARGIN: Final = 4
UNKNOWN_DEFAULTS: Final = "defaults: not known here (the tool is not loaded, or is another one by now)"


def show_question(
    channel: OutputChannel, question: ConfirmationView, preview: Preview | None = None, *, now: int
) -> None:
    """Everything that a decision is made from."""
    show_head(channel, question, now=now)
    if preview is not None:
        _show_preview(channel, preview)
    if question.tool or question.args is not None:
        channel.line("  " + channel.style("arguments" if question.tool else "details", "dim"))
        show_value(channel, question.args)
    _defaults(channel, question)
    _untrusted(channel, question)
    channel.line("  " + channel.style("digest of all this", "dim"))
    channel.line("    " + question.digest)


def show_head(channel: OutputChannel, question: ConfirmationView, *, now: int) -> None:
    """Return the call that it is, and who asks."""
    head = "A call waits for approval" if question.tool else "A job asks"
    channel.line()
    channel.line(channel.style(head, "bold", "yellow") + "  " + question.confirmation)
    fields(channel, _rows(question, now))


def show_value(channel: OutputChannel, value: Any) -> None:
    """A value, whole and exact."""
    rows = value_rows(value, _room(channel))
    show_rows(channel, rows)
    if any(row.mark != "|" for row in rows):
        channel.line("    " + channel.style(LEGEND, "dim"))


def _show_preview(channel: OutputChannel, preview: Preview) -> None:
    channel.line("  " + channel.style("what it changes, as things are now", "dim"))
    for text in (preview.what, preview.problem):
        if text:
            channel.line("    " + clean(text))
    if preview.diff:
        show_rows(channel, diff_rows(preview.diff, _room(channel)))


def show_rows(channel: OutputChannel, rows: Iterable[ScreenRow], style_of_all: str = "") -> None:
    """Rows of a value or a diff, behind their marks."""
    for mark, text in rows:
        style = style_of_all or _STYLES.get(mark[:1] if mark[:1] != ">" else mark[1:2], "")
        channel.line(" " * _MARGIN + (channel.style(f"{mark} {text}", style) if style else f"{mark} {text}").rstrip())


def _room(channel: OutputChannel) -> int | None:
    return None if channel.width is None else channel.width - _MARGIN


def _defaults(channel: OutputChannel, question: ConfirmationView) -> None:
    """Return the tool's defaults, behind the same marks and dimmed, so that none is taken for an argument."""
    if question.defaults is None:
        channel.line("  " + channel.style(UNKNOWN_DEFAULTS, "dim"))
    elif question.defaults:
        channel.line("  " + channel.style("defaults of the tool, for what is left out", "dim"))
        show_rows(channel, value_rows(question.defaults, _room(channel)), "dim")


def _untrusted(channel: OutputChannel, question: ConfirmationView) -> None:
    if question.untrusted:
        channel.line("  " + channel.style("arguments from untrusted text", "bold", "yellow"))
    for argument in question.untrusted:
        channel.line("    " + one_line(argument.words))
        if argument.excerpt:
            channel.line("      " + one_line(argument.excerpt))


def _rows(question: ConfirmationView, now: int) -> list[tuple[str, str]]:
    where = question.caller.removeprefix("job/")
    rows = [
        ("tool", one_line(question.tool)),
        ("level", _level(question)),
        ("question" if not question.tool else "why", one_line(question.question)),
        ("rule", question.rule_id),
        ("asked by", one_line(question.principal)),
        ("for", f"{where} step {question.step}"),
        ("edited from", question.edited_from),
    ]
    if question.approvals > 1 or question.approvers:
        approvers = one_line(", ".join(question.approved_by))
        needed = f"{question.approvals} needed" + (f", so far {approvers}" if approvers else "")
        rows.append(("approvals", needed))
        rows.append(("may approve", one_line(", ".join(question.may_answer))))
    if question.expires_at is not None:
        left = question.expires_at - now
        rows.append(
            ("expires", f"{moment(question.expires_at)} (in {duration(left)})" if left > 0 else "it has expired")
        )
    return rows


def _level(question: ConfirmationView) -> str:
    if not question.provider_id:
        return "not recorded" if question.tool else ""
    version = f", version {question.tool_version}" if question.tool_version else ""
    return f"{question.capability_level}, provider {question.provider_id}{version}"
