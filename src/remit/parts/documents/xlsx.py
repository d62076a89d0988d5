"""The text of a workbook (XLSX): each sheet is a page, a table with the letters of its columns and numbers of its rows.

So the place of a value can be cited as Excel shows it. Values are those that the file holds, formulas by their last
result; dates and percentages as they are shown. Hidden sheets, rows and columns are left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from remit.files.parse_job import Parsed, ParseJob, Refused, joined
from remit.parts.documents.package import EnoughError, Package, XmlTarget, number_of, read_package
from remit.regex import regex

_MAIN: Final = "xl/workbook.xml"
_TRUE: Final = frozenset({"1", "true"})
_DATES: Final = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
"""Formats of dates and times that need no definition."""
_PERCENT: Final = {9, 10}
_PLAIN: Final = regex(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
"""Parts of a format that it shows as they stand, its colours and its conditions."""
_CELL: Final = regex(r"([A-Z]{1,3})[0-9]{1,7}")
_WIDEST: Final = 16_384
_EPOCH: Final = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no time zone
_EPOCH_1904: Final = dt.datetime(1904, 1, 1)  # noqa: DTZ001 - the same


def read_xlsx(job: ParseJob) -> Parsed | Refused:
    """Return the text of a workbook as Markdown tables."""
    return read_package(job, _read)


def _read(package: Package, job: ParseJob) -> Parsed:
    main = package.main(_MAIN, "workbook")
    book, parts = _Book(), package.relations(main)
    package.feed(main, book)
    by_kind = {it.kind: it.part for it in parts.values()}
    strings, formats = _Strings(), _Formats()
    package.feed(by_kind.get("sharedStrings", "xl/sharedStrings.xml"), strings)
    package.feed(by_kind.get("styles", "xl/styles.xml"), formats)
    shown = [(name, parts[identifier].part) for name, identifier in book.sheets if identifier in parts]
    sheets = (_text(package, part, _Sheet(name, strings.texts, formats, book.epoch, job.chars)) for name, part in shown)
    return joined(sheets, job, title=package.title(), page_count=len(shown))


def _text(package: Package, part: str, sheet: _Sheet) -> str:
    """Return the text of a sheet, or a little more of its beginning than may be returned."""
    with suppress(EnoughError):
        package.feed(part, sheet)
    return sheet.text()


class _Book(XmlTarget):
    """The sheets that are shown, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str]] = []
        """Name, and identifier of the relation."""
        self.epoch = _EPOCH

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "sheet" and values.get("state", "visible") == "visible":
            self.sheets.append((values.get("name", ""), values.get("id", "")))
        elif name == "workbookPr" and values.get("date1904") in _TRUE:
            self.epoch = _EPOCH_1904


class _Strings(XmlTarget):
    """Texts that cells share."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._in_text = self._spoken = False

    def opened(self, name: str, values: Mapping[str, str]) -> None:  # noqa: ARG002 - the hook's
        if name == "si":
            self.texts.append("")
        elif name == "rPh":  # how a text is spoken
            self._spoken = True
        self._in_text = name == "t"

    def closed(self, name: str) -> None:
        self._in_text = False
        self._spoken &= name != "rPh"

    def data(self, text: str) -> None:
        if self._in_text and not self._spoken and self.texts:
            self.texts[-1] += text


class _Formats(XmlTarget):
    """The form in which the numbers of each style are shown."""

    def __init__(self) -> None:
        super().__init__()
        self._codes: dict[int, str] = {}
        self._styles: list[int] = []
        self._in_styles = False

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        number = number_of(values.get("numFmtId", ""))
        if name == "numFmt":
            self._codes[number] = _PLAIN.sub("", values.get("formatCode", "")).lower()
        elif name == "cellXfs":
            self._in_styles = True
        elif name == "xf" and self._in_styles:
            self._styles.append(number)

    def closed(self, name: str) -> None:
        self._in_styles &= name != "cellXfs"

    def shown(self, text: str, style: str, epoch: dt.datetime) -> str:
        """Return a number as a cell of this style shows it."""
        at = number_of(style)
        form = self._styles[at] if at < len(self._styles) else 0
        code = self._codes.get(form, "")
        try:
            value = float(text)
            if form in _DATES or (code != "standard" and any(sign in code for sign in "ymdhs")):
                return _moment(value, epoch)
            if form in _PERCENT or code.endswith("%"):
                return f"{round(value * 100, 10):.10g}%"
            return text if len(text) < 16 else f"{value:.15g}"  # noqa: PLR2004 - Excel shows no more digits
        except (ValueError, OverflowError):
            return text


def _moment(days: float, epoch: dt.datetime) -> str:
    moment = epoch + dt.timedelta(days=days, microseconds=500_000)
    moment = moment.replace(microsecond=0)
    if 0 <= days < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if moment.time() == dt.time() else moment.isoformat(" ")


class _Sheet(XmlTarget):
    """The table of one sheet."""

    def __init__(self, name: str, strings: list[str], formats: _Formats, epoch: dt.datetime, room: int) -> None:
        super().__init__()
        self._name = name
        self._strings, self._formats, self._epoch = strings, formats, epoch
        self._rows: list[tuple[str, dict[int, str]]] = []
        self._columns: set[int] = set()
        self._hidden: list[range] = []
        self._room = room
        self._row: dict[int, str] | None = None
        self._number = 0
        self._column = 0
        self._kind = self._style = self._value = ""
        self._in_value = False

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "col" and values.get("hidden") in _TRUE:
            self._hidden.append(range(number_of(values.get("min", "")), number_of(values.get("max", "")) + 1))
        elif name == "row":
            self._number = number_of(values.get("r", "")) or self._number + 1
            self._row = None if values.get("hidden") in _TRUE else {}
            self._column = 0
        elif name == "c":
            match = _CELL.fullmatch(values.get("r", ""))
            self._column = _column(match[1]) if match else self._column + 1
            self._kind, self._style, self._value = values.get("t", "n"), values.get("s", "0"), ""
        self._in_value = name in {"v", "t"}

    def closed(self, name: str) -> None:
        self._in_value = False
        if name == "c" and self._value and self._row is not None and self._column <= _WIDEST:
            if not any(self._column in columns for columns in self._hidden):
                self._row[self._column] = self._shown()
        elif name == "row" and self._row:
            self._rows.append((str(self._number), self._row))
            self._columns.update(self._row)
            self._room -= sum(map(len, self._row.values())) + 3 * len(self._columns)
            if self._room < 0:
                raise EnoughError

    def data(self, text: str) -> None:
        if self._in_value:
            self._value += text

    def _shown(self) -> str:
        if self._kind == "s":
            at = number_of(self._value)
            value = self._strings[at] if at < len(self._strings) else ""
        elif self._kind == "b":
            value = "TRUE" if self._value in _TRUE else "FALSE"
        else:
            value = self._formats.shown(self._value, self._style, self._epoch) if self._kind == "n" else self._value
        return " ".join(value.split())

    def text(self) -> str:
        """Return the sheet: its name, then a line for each row that holds something."""
        columns = sorted(self._columns)
        lines = [f"## {self._name}", ""]
        if columns:
            lines.append("| | " + " | ".join(map(_letters, columns)) + " |")
            lines.append("|---" * (len(columns) + 1) + "|")
        for number, row in self._rows:
            lines.append(f"| {number} | " + " | ".join(row.get(column, "") for column in columns) + " |")
        return "\n".join(lines).strip()


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
