"""Errors of a command in words: the code, what happened, what to do. The one place that does."""

from __future__ import annotations

import errno
import re
import sys
from typing import Final, NamedTuple

import click

from remit.cli import exit_codes
from remit.cli.output import TerminalOutput, clean
from remit.codes import Code
from remit.errors import RemitError, SettingsError, UsageError
from remit.redact import mask

_NO_THREAD: Final = "can't start new thread"
"""The message of Python where the machine or the user has no thread left."""
_DEFECT: Final = "Run it with -v before the command to see where it happened."


class InterruptedByUserError(RemitError):
    """Someone stopped this process from outside; `hints` are commands to continue with."""

    default = Code.INTERRUPTED

    def __init__(self, message: str = "stopped", hints: tuple[str, ...] = ()) -> None:
        self.hints = hints
        super().__init__(message, remedy="; ".join(hints))


class ErrorText(NamedTuple):
    """An error as it is shown."""

    code: str
    message: str
    remedy: str
    status: int
    """The exit status."""
    frames: tuple[str, ...] = ()
    """Where it came from."""


def report(error: BaseException, output: TerminalOutput, *, as_json: bool, verbose: bool) -> int:
    """Say on stderr what went wrong; the exit status."""
    failure = describe(error)
    try:
        if verbose and not isinstance(error, click.ClickException | InterruptedByUserError):
            _traceback(error)
        if as_json:
            shown = {"code": failure.code, "message": failure.message, "remedy": failure.remedy}
            output.json_error(shown)
        elif isinstance(error, InterruptedByUserError):
            _interrupted(error, output)
        else:
            show(failure, output)
    except OSError:
        pass  # stderr is closed; the status still says it
    return failure.status


def show(failure: ErrorText, output: TerminalOutput) -> None:
    """Print an error for people."""
    err = output.err
    lines = clean(failure.message).split("\n")
    head = f"{err.style('error:', 'red', 'bold')} {err.style(failure.code, 'bold')}:"
    if len(lines) == 1:
        err.line(f"{head} {lines[0]}")
    else:
        err.line(head)
        for line in lines:
            err.line(line)
    for frame in failure.frames:
        err.line(f"  at {clean(frame)}")
    for line in clean(failure.remedy).split("\n") if failure.remedy else ():
        err.line(f"  {err.style('->', 'cyan')} {line}")


def describe(error: BaseException) -> ErrorText:
    """An error's code, message, remedy and exit status."""
    if isinstance(error, RemitError):
        return ErrorText(error.code.name, error.message, error.remedy, _status(error))
    if isinstance(error, click.ClickException):
        # click puts each choice on a line of its own, behind a tab
        message = error.format_message().replace("\n\t", " ")
        return ErrorText(Code.USAGE.name, message, _usage(error), exit_codes.USAGE)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ErrorText(Code.INTERRUPTED.name, "stopped", "", exit_codes.INTERRUPTED)
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    return _lack(error, message) or ErrorText(Code.UNHANDLED_EXCEPTION.name, message, _DEFECT, exit_codes.ERROR)


def _lack(error: BaseException, message: str) -> ErrorText | None:
    """Return the failure if the machine lacks something: space, a thread or an installed package."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return ErrorText(Code.DISK_FULL.name, message, "Free space, then run it again.", exit_codes.ERROR)
    if str(error) == _NO_THREAD or (isinstance(error, OSError) and error.errno == errno.EAGAIN):
        return ErrorText(
            Code.NO_PROCESSES.name, message, "Let other programs end, or raise the limits.", exit_codes.ERROR
        )
    if isinstance(error, ModuleNotFoundError) and (extra := _extra_of(error.name or "")):
        reason, remedy = f"{error.name} is not installed", f"Install it: pip install 'remit[{extra}]'."
        return ErrorText(SettingsError.default.name, reason, remedy, exit_codes.USAGE)
    return None


def _extra_of(module: str) -> str:
    """Return the extra that brings a module; empty if none does."""
    from importlib.metadata import requires

    package = module.partition(".")[0].lower()
    for line in requires("remit") or ():
        extra = re.search(r'extra == "([\w-]+)"', line)
        name = re.match(r"[\w.-]+", line)
        if extra and extra[1] != "dev" and name and re.sub(r"[-.]", "_", name[0]).lower() == package:
            return extra[1]
    return ""


def _status(error: RemitError) -> int:
    if isinstance(error, InterruptedByUserError):
        return exit_codes.INTERRUPTED
    if error.code is Code.KEY_MISSING:
        return exit_codes.UNCHECKED
    return exit_codes.USAGE if isinstance(error, UsageError) else exit_codes.ERROR


def _usage(error: click.ClickException) -> str:
    """Return where to read how it is used, and what to do about an option in the wrong place."""
    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    option = getattr(error, "option_name", "")
    root = context.find_root()
    if context is not root and option in {name for parameter in root.command.params for name in parameter.opts}:
        return f"{option} goes before the command: remit {option} … {context.info_name}"
    return f"`{context.command_path} --help` shows how."


def _interrupted(error: InterruptedByUserError, output: TerminalOutput) -> None:
    output.err.line(clean(error.message))
    for hint in error.hints:
        output.err.line(f"  {output.err.style('->', 'cyan')} {clean(hint)}")


def _traceback(error: BaseException) -> None:
    import traceback

    sys.stderr.write(clean(mask("".join(traceback.format_exception(error)))))
