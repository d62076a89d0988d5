"""The end of a pass over a job."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import NotCanonicalError, RunError
from remit.frames import MOST, frames_of
from remit.gateway.result import words
from remit.journal.blobs import pack
from remit.journal.event import Blob
from remit.journal.kinds import ChildEnded, ErrorInfo
from remit.redact import recordable
from remit.tools.hints import to_json

FATAL: Final = frozenset(
    {
        Code.NONDETERMINISTIC,
        Code.EXECUTION_VERSION_MISMATCH,
        Code.TOOL_SCHEMA_DRIFT,
        Code.MODEL_DRIFT,
        Code.UNKNOWN_RECIPE,
        Code.JOB_CANCELLED,
    }
)
"""Errors of the run as a whole, which are not results of a part of it."""


class PassEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker's pass came to."""

    how: Literal["completed", "failed", "cancelled", "parked", "stuck", "lost"]
    """`stuck`: the code of this process cannot continue the job; `lost`: another worker holds it."""
    encoded: bytes = b"null"
    """The result of the recipe, as JSON."""
    error: ErrorInfo | None = None


def encoded_result(result: object) -> bytes:
    """Return what a recipe returned, as JSON. Raises RunError (RESULT_NOT_ENCODABLE)."""
    try:
        return as_json(to_json(result))
    except NotCanonicalError as error:
        reason = f"the recipe returned a value that JSON cannot represent: {error.message}"
        raise RunError(reason, code=Code.RESULT_NOT_ENCODABLE, remedy=error.remedy) from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = f"the recipe returned a value that JSON cannot represent: {error}"
        raise RunError(reason, code=Code.RESULT_NOT_ENCODABLE) from error


def child_end(step: str, result: object, error: ErrorInfo | None) -> tuple[ChildEnded, tuple[Blob, ...]]:
    """The record of what a recipe within a job came to.

    It may return what JSON cannot hold, since only the recipe around it sees that: it is left out then.
    """
    if error is None:
        with suppress(RunError):
            packed = pack(encoded_result(result))
            return ChildEnded(step=step, result=packed.inline, result_blob=packed.ref), packed.blobs
    return ChildEnded(step=step, error=error), ()


def error_info(error: BaseException, step: str = "") -> ErrorInfo:
    """An exception as it is recorded: its code where it has one, its words, and what to do."""
    code = getattr(error, "code", None)
    name = getattr(code, "name", None) or "JOB_FAILED"
    step = getattr(error, "step", "") or step
    return ErrorInfo(
        code=recordable(str(name)),
        message=recordable(str(getattr(error, "message", None) or words(error))),
        remedy=recordable(str(getattr(error, "remedy", ""))),
        cause=recordable(str(getattr(error, "cause", None) or "")),
        step=step,
        frames=tuple(map(recordable, (*frames_of(error), *_inner(error))[-MOST:])),
    )


def _inner(error: BaseException) -> tuple[str, ...]:
    """The frames within the tool, of a call that failed."""
    frames: tuple[str, ...] = getattr(getattr(error, "outcome", None), "frames", ())
    return frames
