"""Errors of the service as problems over HTTP: the status comes from the one table of codes."""

from __future__ import annotations

import logging
from typing import Final

from remit.codes import Code
from remit.errors import BusyError, RemitError
from remit.http.problem import Problem
from remit.redact import line

_log: Final = logging.getLogger("remit.api")
_DETAIL: Final = 1_000
_INTERNAL: Final = 500


def problem_of(error: Exception) -> Problem:
    """The problem that tells a client of an error; a defect of our own is logged and not described."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RemitError):
        if error.code.http >= _INTERNAL:
            _log.warning("%s", line(str(error), _DETAIL))
        headers = {"retry-after": str(error.again_s)} if isinstance(error, BusyError) else None
        remedy = {"remedy": line(error.remedy, _DETAIL)} if error.remedy else {}
        return Problem(error.code, line(error.message, _DETAIL), headers, **remedy)
    _log.error("a request failed", exc_info=error)
    return Problem(Code.UNHANDLED_EXCEPTION)
