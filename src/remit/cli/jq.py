"""`--jq`: what a command prints as JSON, run through a jq expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from remit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
