"""The program's own log, on stderr: warnings always, more with -v; as text, or as JSON for programs that collect it."""

from __future__ import annotations

import logging
import sys
from typing import Final

from remit.cli.output import one_line
from remit.clock import SECOND, isoformat

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


class _StderrHandler(logging.Handler):
    """Writes to whatever stderr is at the moment, so that a picture being drawn there is not torn."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(one_line(self.format(record)) + "\n")
            sys.stderr.flush()
        except OSError:
            return
        except Exception:  # noqa: BLE001 - logging's own rule: a log line never breaks the program
            self.handleError(record)


def log_to_stderr(verbose: int, reported: str = "") -> None:
    """Log from now on: warnings, with 1 what happens, with 2 and more everything.

    What the part `reported` warns of is left out without -v: the command itself says it.
    """
    handler = _StderrHandler()
    if reported and not verbose:
        handler.addFilter(lambda record: record.name != reported)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger, root = logging.getLogger("remit"), logging.getLogger()
    for earlier in logger.handlers:
        root.removeHandler(earlier)
    logger.handlers[:] = [handler]
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    logger.propagate = False


def log_as_json() -> None:
    """Write each line of the log as JSON from now on; lines of other code of this process, too, from warnings on."""
    for handler in logging.getLogger("remit").handlers:
        handler.setFormatter(_JsonFormatter())
        logging.getLogger().addHandler(handler)


def _message(record: logging.LogRecord) -> str:
    """Return what a line says: also of one whose arguments do not fit it, since each line is JSON."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a value may bring code of its own
        return str(record.msg)


class _JsonFormatter(logging.Formatter):
    """One object a line, in ASCII; it names the job and the step that the logging code works for."""

    def format(self, record: logging.LogRecord) -> str:
        import json

        from remit.gateway.call import log_context

        line = {
            "at": isoformat(round(record.created * SECOND)),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        place = log_context.get()
        if place is not None and place.open:
            kind, _, name = place.stream.partition("/")
            line |= {"job": name} if kind == "job" else {"stream": place.stream}
            line |= {key: text for key, text in (("step", place.step), ("tool", place.tool)) if text}
        return json.dumps(line)
