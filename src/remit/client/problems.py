"""Problems that a server answers with, as the errors that the same call raises on a journal here."""

from __future__ import annotations

from typing import Final

import msgspec

from remit import errors
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    BusyError,
    ChainBrokenError,
    JournalError,
    NotFoundError,
    PlanError,
    RemitError,
    ServerError,
    SettingsError,
    StateError,
    UsageError,
    VersionError,
)
from remit.redact import line
from remit.tools.catalog import ResolveError

_BY_DEFAULT: Final = {
    kind.default: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RemitError) and kind is not errors.NondeterminismError
}
_BY_CODE: Final[dict[Code, type[RemitError]]] = {
    **_BY_DEFAULT,
    Code.APPEND_CONFLICT: AppendConflictError,
    Code.BLOB_MISSING: ChainBrokenError,
    Code.DECIDER_NOT_ALLOWED: UsageError,
    Code.DISK_FULL: StateError,
    Code.FOLDER_NOT_TRUSTED: SettingsError,
    Code.HEAD_FORGED: ChainBrokenError,
    Code.HEAD_MISSING: ChainBrokenError,
    Code.HEAD_UNSEALED: ChainBrokenError,
    Code.IDEMPOTENCY_MISMATCH: StateError,
    Code.INVALID_TOOL_STEP: ResolveError,
    Code.JOB_QUOTA_EXCEEDED: BusyError,
    Code.JOURNAL_MISSING: NotFoundError,
    Code.KEY_MISSING: JournalError,
    Code.MODEL_DRIFT: VersionError,
    Code.NO_WORKER: StateError,
    Code.PLAN_NEWER: VersionError,
    Code.PLAN_UNREADABLE: PlanError,
    Code.RECORD_INVALID: JournalError,
    Code.RECORD_CONTRADICTED: ChainBrokenError,
    Code.SCOPE_REQUIRED: UsageError,
    Code.SERVER_ANSWER_INVALID: ServerError,
    Code.TOOL_QUARANTINED: ResolveError,
    Code.TOOL_UNAVAILABLE: StateError,
    Code.UNKNOWN_TOOL: ResolveError,
    Code.direct_fill_missing_by: StateError,
    Code.env_unavailable: UsageError,
}
"""Codes whose error does not follow from their status."""
_BY_STATUS: Final[dict[int, type[RemitError]]] = {
    **dict.fromkeys((400, 401, 405, 406, 408, 413, 415, 421, 422), UsageError),
    **dict.fromkeys((403, 409, 410), StateError),
    404: NotFoundError,
}
_REMEDIES: Final = {
    Code.UNAUTHENTICATED: "Set REMIT_TOKEN to a token that is valid there.",
    Code.SCOPE_REQUIRED: "Use a token with the scope, or have it added in the server's [[clients]].",
    Code.HOST_REFUSED: "Use one of the server's names, or start the server with --known-as.",
}
_SHOWN: Final = 200
_TEXT: Final = 1_000
"""Characters of what a server says, on one line: it must not look like lines of ours."""


class _Problem(msgspec.Struct, frozen=True):
    """What is read of a problem (RFC 9457)."""

    error_code: str
    detail: str = ""
    remedy: str = ""


def error_of(status: int, body: bytes) -> RemitError:
    """The error behind an answer that is not a success."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _foreign(f"the server answered {status}: {line(body[:_SHOWN].decode(errors='replace'))}")
    code, detail = Code.__members__.get(problem.error_code), line(problem.detail, _TEXT)
    if code is None:
        return _foreign(f"the server answered {status} with the code {line(problem.error_code)}: {detail}")
    return class_of(code)(detail, code=code, remedy=line(problem.remedy, _TEXT) or _REMEDIES.get(code, ""))


def class_of(code: Code) -> type[RemitError]:
    """The error that a call on a journal here raises with this code."""
    found = _BY_CODE.get(code)
    if found is not None:
        return found
    if code.name.startswith("JOURNAL_"):
        return JournalError
    return _BY_STATUS.get(code.http, RemitError)


def _foreign(why: str) -> ServerError:
    remedy = "Check that the URL is that of `remit serve`, and that both sides have the same version."
    return ServerError(why, code=Code.SERVER_ANSWER_INVALID, remedy=remedy)
