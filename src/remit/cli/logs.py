"""The program's own log, on stderr: warnings always, more with -v."""

from __future__ import annotations

import logging
import sys
from typing import Final

from remit.cli.output import one_line

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
    logger = logging.getLogger("remit")
    logger.handlers[:] = [handler]
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    logger.propagate = False
