"""Where an exception came from: file, line and function of the user's own frames, as they are recorded."""

from __future__ import annotations

import opcode
import traceback
from collections.abc import Callable
from functools import cache
from inspect import unwrap
from pathlib import Path
from typing import Final

MOST: Final = 10
"""Frames of one exception that are kept: the first one, and those nearest to the error."""
_LONGEST: Final = 300
_OURS: Final = f"{Path(__file__).resolve().parent}/"


def frames_of(error: BaseException) -> tuple[str, ...]:
    """The frames of an exception as `file:line in function`, the outermost first; no source and no values.

    Frames of Remit, of Python and of libraries are left out. If no other is left, the innermost one stands for them.
    """
    frames = [
        (code.co_filename, f"{_near(code.co_filename)}:{line} in {code.co_qualname}"[-_LONGEST:])
        for code, line in ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    ]
    own = [text for file, text in frames if is_own(file)]
    shown = own or [text for file, text in frames if not file.startswith(_OURS)][-1:]
    return tuple(shown if len(shown) <= MOST else [shown[0], *shown[1 - MOST :]])


def exit_words(error: BaseException) -> str:
    """Return how code asked that the process end; empty for a KeyboardInterrupt of Ctrl-C, and for any other error.

    Ctrl-C stands at no `raise` of the user's code.
    """
    if isinstance(error, SystemExit):
        return f"asked to exit with {error.code!r}"
    if not isinstance(error, KeyboardInterrupt) or error.__traceback__ is None:
        return ""
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    by_code = code.co_code[last.tb_lasti] == opcode.opmap["RAISE_VARARGS"] and is_own(code.co_filename)
    return "raised KeyboardInterrupt" if by_code else ""


def place_of(function: Callable[..., object]) -> str:
    """Return where a function stands, as `file:line in function`."""
    code = getattr(unwrap(function), "__code__", None)
    return f"{_near(code.co_filename)}:{code.co_firstlineno} in {code.co_qualname}" if code else repr(function)


def is_own(file: str) -> bool:
    """Return whether a file is the user's: neither Remit's, nor Python's, nor an installed library's."""
    return not file.startswith((_OURS, *_libraries(), "<frozen"))


@cache
def _libraries() -> tuple[str, ...]:
    import sysconfig  # noqa: PLC0415 - only an error or a recipe needs it, and every start would pay for it

    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(paths | {str(Path(path).resolve()) for path in paths})


def _near(file: str) -> str:
    """A file as a person here calls it."""
    path = Path(file)
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone; the whole path says it too
        return file
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
