"""Values from the command line: JSON, files, durations."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from remit.codes import Code
from remit.errors import UsageError


def json_value(text: str, what: str) -> Any:
    """The JSON value in a text, in the file that `@file` names, or in stdin for `@-`. Raises UsageError."""
    import msgspec

    source = _text(text, what)
    try:
        return msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError) as error:
        quoted = "" if text.startswith("@") else " A text needs its quotes: '\"like this\"'."
        raise UsageError(
            f"{what} is not JSON: {error}", code=Code.INVALID_INPUT, remedy=f"Give JSON, or @file.{quoted}"
        ) from error


def json_object(text: str, what: str) -> dict[str, Any]:
    """The same, where only an object will do."""
    value = json_value(text, what)
    if not isinstance(value, dict):
        raise UsageError(f"{what} is not a JSON object", code=Code.INVALID_INPUT, remedy='Give {"name": value, …}.')
    return value


def words(text: str, what: str) -> tuple[str, ...]:
    """The words of a text, a file or stdin, as above; blanks, commas and line ends part them. Raises UsageError."""
    return tuple(_text(text, what).replace(",", " ").split())


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """The labels in KEY=VALUE texts. Raises UsageError."""
    values = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key or key.startswith("remit."):
            raise UsageError(f"{option}: {text!r} is not a label", code=Code.USAGE, remedy=f"Write {option} KEY=VALUE.")
        values[key] = value
    return values


def seconds(text: str, what: str) -> int:
    """Seconds from a duration such as 90s, 30m, 8h or 2d. Raises UsageError."""
    from remit.jobs.plans.problem import parse_duration

    millis = parse_duration(text)
    if millis is None or millis < 1000:  # noqa: PLR2004 - a second
        reason = f"{what} is {text!r}, not a second or more, such as 10s or 1h30m"
        raise UsageError(reason, code=Code.USAGE, remedy="Write it like 30m or 8h.")
    return millis // 1000


def moment_us(text: str, option: str, now: int) -> int:
    """Return the moment so long before now, or that of ISO 8601, in microseconds since the epoch. Raises UsageError."""
    from remit.clock import SECOND, instant

    if (at := instant(text)) is not None:
        return at
    try:
        return now - seconds(text, option) * SECOND
    except UsageError as error:
        remedy = "Write an age like 30m or 8h, or a time with its offset like 2026-11-01T00:00:00Z."
        raise UsageError(error.message, code=error.code, remedy=remedy) from error


def since_us(age: str | None) -> int:
    """Return the moment so long ago, in microseconds since the Unix epoch; 0 for no age. Raises UsageError."""
    from remit.clock import SECOND, SystemClock

    return SystemClock().now() - seconds(age, "--since") * SECOND if age else 0


@contextmanager
def usage_error(what: str, remedy: str = "") -> Iterator[None]:
    """Raise UsageError for an OSError in the block: what cannot be done, and why."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror or error}", remedy=remedy) from error


def _text(text: str, what: str) -> str:
    if not text.startswith("@"):
        return text
    name = text[1:]
    try:
        return sys.stdin.buffer.read().decode() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        remedy = "Check the path." if isinstance(error, OSError) else "Convert it, such as with iconv."
        raise UsageError(f"{what}: {name} cannot be read: {reason}", code=Code.INVALID_INPUT, remedy=remedy) from error
