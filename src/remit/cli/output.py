"""Where a command writes: results to stdout, everything else to stderr; in colour only where someone will see it.

Text for terminals: nothing in it can move the cursor, hide or reorder what a person reads.
"""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TextIO

from remit.errors import UsageError
from remit.redact.visible import visible
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Results(Protocol):
    def __iter__(self) -> Iterator[Any]: ...


class _Program(Protocol):
    def input_text(self, text: str, /) -> _Results: ...


class JqFilter:
    """A jq expression."""

    def __init__(self, expression: str) -> None:
        try:
            import jq  # of the extra
        except ModuleNotFoundError as error:
            raise UsageError("jq is not installed", remedy="Install it: pip install 'remit[jq]'") from error
        try:
            self._program: _Program = jq.compile(expression)
        except ValueError as error:
            first = str(error).partition("\n")[0].removeprefix("jq: error: ").rstrip(":")
            raise UsageError(f"--jq: {first}", remedy="See https://jqlang.org/manual.") from error

    def lines(self, text: str) -> Iterable[str]:
        """Give what the expression makes of a JSON text: a line for each result, strings without quotes.

        Raises UsageError if it does not fit the value.
        """
        import msgspec

        try:
            for result in self._program.input_text(text):
                yield result if isinstance(result, str) else msgspec.json.encode(result).decode()
        except ValueError as error:
            raise UsageError(f"--jq: {error}", remedy="Look at the whole value with --json.") from error


ELLIPSIS: Final = "…"


def clean(text: str) -> str:
    """The text with everything that does not print shown as an escape; line breaks stay."""
    return visible(text)


def one_line(text: str) -> str:
    """The text on one line."""
    return clean(" ".join(text.split()))


def short(name: str) -> str:
    """A step's name for people: a tool's own, without `tool.` before it."""
    return name.removeprefix("tool.")


def pretty(value: Any) -> str:
    """A JSON value on several lines."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def cells(text: str) -> int:
    """Columns of a terminal that a clean text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, with an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    chars, room = [], max(0, width - 1)
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        chars.append(char)
    return "".join(chars).rstrip() + ELLIPSIS if width > 0 else ""


def fitting(text: str, width: int) -> int:
    """Return how many of its first characters fit into `width` columns, at least one."""
    taken = 0
    for number, char in enumerate(text):
        taken += _cells(char)
        if taken > width:
            return max(1, number)
    return len(text)


def pad(text: str, width: int) -> str:
    """The text filled up with spaces to `width` columns."""
    return text + " " * (width - cells(text))


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 rule`, `2 rules`; of those that take no `s`, `plural`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


Color = Literal["auto", "always", "never"]

_STYLES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}
_STYLE: Final = regex(r"(\x1b\[(?:0|[1-2]|3[1-6])(?:;(?:[1-2]|3[1-6]))*m)")
"""The control sequences that `style` writes; none of it hides anything."""
_STYLED: Final = _STYLE.fullmatch
_STATE_STYLES: Final = {
    "ok": "green",
    "completed": "green",
    "done": "green",
    "same": "green",
    "running": "cyan",
    "open": "cyan",
    "pending": "cyan",
    "waiting": "yellow",
    "incomplete": "yellow",
    "stopped": "yellow",
    "stuck": "yellow",
    "warn": "yellow",
    "ask": "yellow",
    "blocked": "yellow",
    "not replayed": "yellow",
    "unknown": "magenta",
    "failed": "red",
    "fail": "red",
    "deny": "red",
    "diverged": "red",
    "refused": "red",
    "cancelled": "dim",
    "allow": "green",
}
NARROWEST: Final = 40
"""Columns below which nothing is fitted to the terminal any more."""


class OutputChannel:
    """One of the process's two streams, written line by line."""

    def __init__(self, name: Literal["stdout", "stderr"], color: Color) -> None:
        self._name = name
        self.color = color

    @property
    def stream(self) -> TextIO:
        """The stream as it is now; tests and redirections replace it."""
        stream: TextIO = getattr(sys, self._name)
        return stream

    @property
    def is_terminal(self) -> bool:
        """Return whether a person looks at it, on something that understands control sequences."""
        return self.stream.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def colored(self) -> bool:
        """Return whether to colour."""
        return self.color == "always" or (self.color == "auto" and self.is_terminal)

    @property
    def width(self) -> int | None:
        """Columns to fit tables into; None where there is no terminal, and nothing is cut."""
        if not self.stream.isatty():
            return None
        from shutil import get_terminal_size

        return max(get_terminal_size().columns, NARROWEST)

    def style(self, text: str, *names: str) -> str:
        """The text in a style, where colour is wanted; a name may also be a state's, and other states have none."""
        codes = ";".join(filter(None, (_STYLES.get(_STATE_STYLES.get(name, name)) for name in names)))
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colored and codes and text else text

    def line(self, text: str = "") -> None:
        """Write a line. What cannot be seen in it is shown as an escape, except for our own styles."""
        self.stream.write(self._cleaned(text) + "\n")

    def _cleaned(self, text: str) -> str:
        if text.isascii() and text.isprintable():
            return text
        if not self.colored:
            return clean(text)
        return "".join(part if _STYLED(part) else clean(part) for part in _STYLE.split(text))

    def raw(self, text: str) -> None:
        """Write a job's own text: as it is into a file or pipe, cleaned on a terminal."""
        self.stream.write((clean(text) if self.stream.isatty() else text) + "\n")

    def flush(self) -> None:
        """Let it be seen now."""
        self.stream.flush()


class TerminalOutput:
    """Both streams."""

    def __init__(self, color: Color = "auto") -> None:
        self.out = OutputChannel("stdout", color)
        self.err = OutputChannel("stderr", color)
        self.filter: JqFilter | None = None
        """The filter that JSON is run through before it is written."""

    def set_color(self, color: Color) -> None:
        """Follow the settings, once they are known."""
        self.out.color = self.err.color = color

    @property
    def interactive(self) -> bool:
        """Return whether a person can be asked: they type into stdin and see stderr."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.stream.isatty()

    def json(self, value: Any, *, indent: bool = False) -> None:
        """Write a value to stdout as one line of JSON, in UTF-8 whatever the locale; or what the filter makes of it."""
        if self.filter is None:
            _write(sys.stdout, _encoded(value, indent=indent))
            return
        for line in self.filter.lines(_encoded(value, indent=False).decode()):
            _write(sys.stdout, line.encode("utf-8", "surrogatepass"))

    def json_error(self, value: Any) -> None:
        """Write a value to stderr as one line of JSON."""
        _write(sys.stderr, _encoded(value, indent=False))


@contextlib.contextmanager
def reserved_stdout() -> Iterator[None]:
    """Keep stdout for the command's own result: what recipes, tools and children print meanwhile goes to stderr."""
    children = _rerouted() if sys.stdout is sys.__stdout__ else contextlib.nullcontext()
    with children, contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _rerouted() -> Iterator[None]:
    """Let the process's descriptor 1, which children inherit, lead where 2 does."""
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(descriptor, 1)
        os.close(descriptor)


def _encoded(value: Any, *, indent: bool) -> bytes:
    import msgspec

    data = msgspec.json.encode(value)
    return msgspec.json.format(data) if indent else data


def _write(stream: TextIO, line: bytes) -> None:
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(line.decode() + "\n")
        return
    stream.flush()
    binary.write(line + b"\n")
    binary.flush()
