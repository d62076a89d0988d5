"""Tables and times as text: aligned, coloured where wanted, cut to the terminal but never in an identifier."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.cli.output import cells, clean, cut, one_line, pad
from remit.clock import SECOND

if TYPE_CHECKING:
    from remit.cli.output import OutputChannel

_GAP: Final = 2
_BELOW: Final = 4
_LEAST: Final = 8
"""Columns a column that may be cut keeps at least."""


class TableColumn(msgspec.Struct, frozen=True):
    """A column of a table."""

    title: str
    whole: bool = True
    """Whether its texts are never cut; the last column that is not whole gives way first."""
    states: bool = False
    """Whether its texts are states, coloured by what they are."""
    style: str = ""


def table(
    channel: OutputChannel,
    titles: Sequence[TableColumn | str],
    rows: Iterable[Sequence[str]],
    *,
    indent: int = 0,
    below: Sequence[str] = (),
) -> None:
    """Write a table; nothing where there are no rows. `below` has a line for under each row, or none for it."""
    texts = [[one_line(text) for text in row] for row in rows]
    if not texts:
        return
    columns = [TableColumn(title) if isinstance(title, str) else title for title in titles]
    widths = _widths(columns, texts, channel.width, indent)
    _row(channel, [column.title for column in columns], widths, ["dim"] * len(columns), indent)
    for number, row in enumerate(texts):
        styles = [text if column.states else column.style for column, text in zip(columns, row, strict=True)]
        _row(channel, row, widths, styles, indent)
        if below and below[number]:
            text = one_line(below[number])
            room = len(text) if channel.width is None else channel.width - _BELOW
            channel.line(" " * _BELOW + channel.style(cut(text, room), "dim"))


def fields(channel: OutputChannel, rows: Iterable[tuple[str, str]], *, indent: int = 2) -> None:
    """Write names and values below each other; rows without a value are left out."""
    shown = [(name, text) for name, text in rows if text]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        channel.line(" " * indent + channel.style(name.ljust(width), "dim") + "  " + clean(text))


def _widths(columns: Sequence[TableColumn], rows: list[list[str]], limit: int | None, indent: int) -> list[int]:
    widths = [max([cells(column.title), *(cells(row[index]) for row in rows)]) for index, column in enumerate(columns)]
    if limit is None:
        return widths
    excess = indent + sum(widths) + _GAP * (len(widths) - 1) - limit
    for index in reversed(range(len(columns))):
        if excess > 0 and not columns[index].whole:
            less = min(excess, max(0, widths[index] - _LEAST))
            widths[index] -= less
            excess -= less
    return widths


def _row(channel: OutputChannel, row: Sequence[str], widths: list[int], styles: Sequence[str], indent: int) -> None:
    last = len(row) - 1
    parts = []
    for index, (text, width, style) in enumerate(zip(row, widths, styles, strict=True)):
        shown = cut(text, width)
        gap = "" if index == last else pad("", width - cells(shown) + _GAP)
        parts.append(channel.style(shown, style) + gap)
    channel.line(" " * indent + "".join(parts).rstrip())


# --- identifiers

_SHORT: Final = 8
"""Characters of an identifier's end that are shown: they are random, and commands take them."""


def short_ids(channel: OutputChannel, identifiers: Sequence[str]) -> list[str]:
    """Identifiers for a table: at a terminal the shortest endings that tell them apart, elsewhere as they are."""
    different = set(identifiers)
    length = _SHORT
    while len({name[-length:] for name in different}) < len(different):
        length += 1
    return [name[-length:] if channel.width is not None else name for name in identifiers]


# --- times


def moment(micros: int) -> str:
    """An instant in local time."""
    return _local(micros).strftime("%Y-%m-%d %H:%M:%S")


def clock_time(micros: int) -> str:
    """The time of day of an instant, in local time, with milliseconds."""
    return _local(micros).strftime("%H:%M:%S.%f")[:-3]


def _local(micros: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(micros / SECOND).astimezone()
