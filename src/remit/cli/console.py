"""A Python prompt in a frame that stands still: it reads the frame's variables, and changes none."""

from __future__ import annotations

import ast
import code
import inspect
import sys
from contextlib import redirect_stdout, suppress
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from remit.cli.output import one_line
from remit.cli.terminal import forget_typed, interruptible
from remit.errors import RemitError, UsageError

if TYPE_CHECKING:
    from remit.cli.output import OutputChannel


def ask_python(err: OutputChannel, frame: FrameType, where: str) -> None:
    """Run what a person types, with the names of `frame`, until Ctrl-D or exit(); assignments stay in the prompt."""
    function, file = frame.f_code.co_name, frame.f_code.co_filename
    err.line(one_line(f"{where}, in {function} ({file}:{frame.f_lineno})"))
    names = sorted(name for name in frame.f_locals if name.isidentifier())
    err.line(one_line(f"variables: {', '.join(names) or 'none'}. Calls are refused; Ctrl-D goes on."))
    prompt = _Prompt({"exit": sys.exit, "quit": sys.exit, **frame.f_globals, **frame.f_locals})
    forget_typed()
    with interruptible(), suppress(SystemExit):
        prompt.interact(banner="", exitmsg="")


class _Prompt(code.InteractiveConsole):
    """A console in which `await` may stand, as it does in the recipe."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names, filename="<prompt>")
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._names = names
        _complete(names)

    def raw_input(self, prompt: str = "") -> str:
        """Read a line from the terminal itself: only so does Python give its editing keys."""
        with redirect_stdout(sys.__stdout__):
            return input(prompt)

    def runcode(self, code: CodeType) -> None:
        """Run a statement, and say what it raised; a coded error without the way to it."""
        try:
            result: object = FunctionType(code, self._names)()
            if inspect.iscoroutine(result):
                _run_at_once(result)
        except SystemExit:
            raise
        except RemitError as error:
            self.write(f"{error.code.name}: {error.message}\n")
            if error.remedy:
                self.write(f"  -> {error.remedy}\n")
        except BaseException:  # noqa: BLE001 - whatever was typed, the prompt stays
            self.showtraceback()


def _run_at_once(work: Any) -> None:
    """Run what was awaited to its end. Raises UsageError if it would wait: nothing goes on meanwhile."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise UsageError("nothing is waited for at this prompt", remedy="Press Ctrl-D, and the replay goes on.")


def _complete(names: dict[str, Any]) -> None:
    """Have Tab complete names, where Python was built with readline."""
    with suppress(ImportError):
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
