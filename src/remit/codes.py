"""Every stable code, in one table: what it means, what it does to a call, whether a retry can help, its HTTP status.

A code is a promise to users' alerts and scripts: it is never renamed and never changes its meaning. The names come from
the contracts (tickets, tools, versioning, executors); the rows under "ours" are Remit's own. Messages may be reworded,
codes may not.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

BLOCKED: Final = "blocked"
FAILED: Final = "failed"
PENDING: Final = "pending"
ERROR: Final = "error"
HEALTH: Final = "health"
NOTE: Final = "note"


class Row(NamedTuple):
    """What the table knows of a code."""

    status: str
    """`blocked`, `failed` or `pending` (an outcome), `error` (raised), `health` (readiness), `note` (recorded beside a result)."""
    http: int
    """HTTP status a face answers with."""
    retryable: bool
    """Whether the same call, unchanged, may succeed later."""
    meaning: str


class Code(Enum):
    """A stable code; its name is what is recorded and shown."""

    # --- a call that was refused (contract: tickets, "Codes")
    INVALID_TOOL_STEP = Row(
        BLOCKED, 400, False, "The step names no tool, or its key covers several and the choice is missing."
    )
    UNKNOWN_TOOL = Row(BLOCKED, 404, False, "No provider offers a tool of this name.")
    INVALID_TOOL_ARGS = Row(BLOCKED, 400, False, "The arguments do not satisfy the tool's input schema.")
    INVALID_BUDGET = Row(BLOCKED, 400, False, "The call's budget or timeout is not a positive number.")
    MCP_REQUIRED_UNAVAILABLE = Row(BLOCKED, 503, True, "A dependency the tool requires is not ready.")
    BUDGET_EXCEEDED = Row(BLOCKED, 429, False, "The budget given for this work is used up.")
    INVALID_EVIDENCE_CANDIDATE = Row(
        BLOCKED, 400, False, "An evidence candidate lacks kind, source or retrieved_at, or carries bytes."
    )

    # --- a call that ran and failed
    RUN_TIMEOUT = Row(FAILED, 504, False, "The whole run passed its deadline.")
    TOOL_TIMEOUT = Row(FAILED, 504, True, "The tool did not answer before the call's deadline.")
    TOOL_EXEC_FAILED = Row(FAILED, 502, False, "The tool reported a failure.")
    TOOL_UNAVAILABLE = Row(FAILED, 503, True, "The tool's provider is closed, could not start, or lost its connection.")

    # --- ours: the gateway
    POLICY_DENIED = Row(BLOCKED, 403, False, "A rule, or the default, forbids this call.")
    TOOL_QUARANTINED = Row(
        BLOCKED, 409, False, "The tool is withheld: its schema is unusable or changed since it was approved."
    )
    CONFIRMATION_REQUIRED = Row(PENDING, 202, False, "A person has to approve this exact call first.")
    CONFIRMATION_DENIED = Row(BLOCKED, 403, False, "A person refused this call.")
    CONFIRMATION_EXPIRED = Row(BLOCKED, 410, False, "Nobody answered in time; silence never approves.")
    CONFIRMATION_MISMATCH = Row(BLOCKED, 409, False, "What was approved is not what would run.")
    RESULT_TOO_LARGE = Row(FAILED, 413, False, "The tool's result is larger than the limit for recorded values.")
    RESULT_NOT_ENCODABLE = Row(FAILED, 502, False, "The tool returned something JSON cannot hold.")
    RESULT_INVALID = Row(FAILED, 502, False, "The result does not satisfy the tool's output schema.")
    CALL_CANCELLED = Row(FAILED, 499, False, "The call was cancelled before it ended.")
    OUTCOME_UNKNOWN = Row(
        FAILED, 409, False, "The call was announced, may have happened, and nobody knows: a person decides."
    )

    # --- ours: jobs
    JOB_NOT_FOUND = Row(ERROR, 404, False, "No job answers to this reference.")
    JOB_NOT_WAITING = Row(ERROR, 409, False, "The job does not wait for what was sent.")
    JOB_FINISHED = Row(ERROR, 409, False, "The job has already ended.")
    JOB_FAILED = Row(FAILED, 500, False, "The recipe raised an error it did not handle.")
    JOB_CANCELLED = Row(FAILED, 499, False, "The job was cancelled.")
    STEP_NOT_FOUND = Row(ERROR, 404, False, "The job has no such step, or it is not in the state this needs.")
    STEP_FAILED = Row(FAILED, 502, False, "A step failed and the recipe did not handle it.")
    NONDETERMINISTIC = Row(
        FAILED, 409, False, "The recipe asked for something else than the journal holds at the same place."
    )
    DUPLICATE_STEP_KEY = Row(FAILED, 400, False, "Two effects of one branch bear the same explicit key.")
    FOREIGN_TASK = Row(FAILED, 400, False, "An effect was started from a task the run does not know; use run.gather.")
    UNKNOWN_RECIPE = Row(ERROR, 404, False, "No recipe of this name is registered here.")
    INVALID_INPUT = Row(ERROR, 400, False, "The input does not fit the recipe's parameters.")
    SIGNAL_INVALID = Row(ERROR, 400, False, "The signal's name or payload cannot be sent.")
    CONFIRMATION_NOT_FOUND = Row(ERROR, 404, False, "No confirmation answers to this reference.")
    CONFIRMATION_CLOSED = Row(ERROR, 409, False, "The confirmation was already decided, used, replaced or has expired.")
    DECIDER_NOT_ALLOWED = Row(ERROR, 403, False, "This person may not decide this confirmation.")

    # --- ours: plans
    PLAN_INVALID = Row(ERROR, 400, False, "The task graph is not valid; the message points into the file.")
    PLAN_UNREADABLE = Row(ERROR, 400, False, "The file cannot be read or is not YAML or JSON.")
    PLAN_REFERENCE_MISSING = Row(
        FAILED, 422, False, "A plan's reference points at something that the result does not hold."
    )
    PLAN_REFERENCE_UNFIT = Row(
        FAILED, 422, False, "A reference's value does not fit: not a list, too long, or not text."
    )
    PLAN_SIGNAL_TIMEOUT = Row(FAILED, 504, False, "The signal that a plan waited for did not come in time.")

    # --- versions (contract: versioning, "Mismatch")
    EXECUTION_VERSION_MISMATCH = Row(FAILED, 409, False, "The job was recorded by another version of its code.")
    TOOL_SCHEMA_DRIFT = Row(FAILED, 409, False, "The tool's contract changed since the call was recorded.")
    MODEL_DRIFT = Row(FAILED, 409, False, "The same prompt now meets another model or gives another output.")

    # --- journal
    APPEND_CONFLICT = Row(
        ERROR, 409, False, "Another writer holds the stream now; this append was refused and nothing was written."
    )
    STREAM_NOT_FOUND = Row(ERROR, 404, False, "The journal holds no such stream.")
    LEASE_LOST = Row(ERROR, 409, False, "The lease on the stream was taken over by somebody else.")
    CHAIN_BROKEN = Row(ERROR, 409, False, "A recorded event does not match its hash.")
    BLOB_MISSING = Row(ERROR, 410, False, "A recorded value's bytes are not in the journal any more.")
    JOURNAL_LOCKED = Row(ERROR, 503, True, "Another program holds the journal's write lock.")
    JOURNAL_READ_ONLY = Row(ERROR, 503, False, "The journal cannot be written to.")
    JOURNAL_FULL = Row(ERROR, 507, True, "The disk under the journal is full; nothing recorded was lost.")
    JOURNAL_CORRUPT = Row(ERROR, 500, False, "The journal's file is damaged or is not a journal.")
    JOURNAL_IO = Row(ERROR, 503, True, "The journal's storage failed.")
    JOURNAL_NEWER = Row(ERROR, 409, False, "A newer Remit wrote this journal; this one must not touch it.")
    JOURNAL_CLOSED = Row(ERROR, 503, False, "The journal is closed.")
    RECORD_INVALID = Row(ERROR, 400, False, "The storage cannot hold a value that was to be recorded.")

    # --- ours: settings, policy file, input
    SETTINGS_INVALID = Row(ERROR, 400, False, "A setting is unknown, or its value does not fit.")
    POLICY_INVALID = Row(ERROR, 400, False, "A policy rule cannot be understood.")
    NAME_INVALID = Row(ERROR, 400, False, "A tool, recipe or provider name breaks the naming rules.")
    NOT_CANONICAL = Row(
        ERROR, 400, False, "The value has no canonical JSON form (NaN, huge integers, lone surrogates, unknown types)."
    )
    SCHEMA_INVALID = Row(
        ERROR, 400, False, "The JSON schema is unusable, too deep, too large, or points outside itself."
    )
    MODULE_UNLOADABLE = Row(ERROR, 400, False, "A configured module cannot be imported.")
    USAGE = Row(ERROR, 400, False, "The command line does not make sense.")
    INTERRUPTED = Row(ERROR, 499, False, "Stopped from the keyboard; the job can be resumed.")
    UNHANDLED_EXCEPTION = Row(ERROR, 500, False, "A defect in Remit or in code it runs.")

    # --- ours: folders and files
    FOLDER_NOT_FOUND = Row(FAILED, 404, False, "The folder does not exist or is not a folder.")
    FOLDER_EMPTY = Row(FAILED, 422, False, "The folder holds nothing that can be read as text.")
    FILE_NOT_FOUND = Row(FAILED, 404, False, "The file does not exist.")
    FILE_NOT_TEXT = Row(FAILED, 415, False, "The file is not text.")
    FILE_TOO_LARGE = Row(FAILED, 413, False, "The file is larger than the limit for reading.")
    FILE_CHANGED = Row(FAILED, 409, False, "The file changed or vanished while it was used.")
    PATH_NOT_ALLOWED = Row(BLOCKED, 403, False, "The path leaves the folders this tool may touch.")
    EDIT_NO_MATCH = Row(FAILED, 409, False, "The text to replace does not occur exactly once.")
    FILE_IS_FOLDER = Row(FAILED, 409, False, "The path names a folder where a file is needed.")
    FILE_ACCESS_DENIED = Row(FAILED, 403, False, "The operating system does not let Remit do this to the file.")
    FILE_IO_FAILED = Row(FAILED, 500, True, "The operating system failed while the file was used.")
    DISK_FULL = Row(FAILED, 507, True, "The disk is full; the file is as it was before.")

    # --- provider causes (contract: tools), kept on an outcome as `cause`
    ToolNotFound = Row(NOTE, 404, False, "The provider does not know the tool.")
    SpawnFailed = Row(NOTE, 503, True, "The provider's process could not be started.")
    Timeout = Row(NOTE, 504, True, "The provider did not answer in time.")
    ConnectionError = Row(NOTE, 503, True, "The connection to the provider was lost.")
    ProviderClosed = Row(NOTE, 503, True, "The provider has been closed.")
    InvalidInput = Row(NOTE, 400, False, "The provider rejected the arguments.")
    AuthError = Row(NOTE, 401, False, "The provider refused the credentials.")
    NetworkError = Row(NOTE, 502, True, "The network failed below the provider.")
    BadGateway = Row(NOTE, 502, True, "The provider's upstream answered nonsense.")

    # --- readiness (contract: tickets; health only)
    DEP_UNAVAILABLE = Row(HEALTH, 503, True, "The dependency is not there.")
    DEP_INIT_FAILED = Row(HEALTH, 503, True, "The dependency could not be started.")
    DEP_TIMEOUT = Row(HEALTH, 503, True, "The dependency did not answer the probe in time.")
    DEP_UNKNOWN = Row(HEALTH, 503, True, "The dependency's state is not known.")

    # --- schema gate (contract: tickets)
    SCHEMA_VALIDATION_FAILED = Row(
        BLOCKED, 400, False, "A document at a boundary does not satisfy its schema (strict mode)."
    )
    missing = Row(NOTE, 400, False, "A required field is missing.")
    type_mismatch = Row(NOTE, 400, False, "A field has the wrong type or value.")
    unknown_field = Row(NOTE, 400, False, "A field is not part of the schema.")
    schema_invalid = Row(NOTE, 400, False, "The schema itself is unusable.")
    tool_verdict_invalid = Row(NOTE, 400, False, "A tool verdict has an unknown form.")

    # --- evidence (contract: tickets)
    EVIDENCE_INLINE_TOO_LARGE = Row(NOTE, 413, False, "The item was too large to keep inline.")
    EVIDENCE_RAW_TOO_LARGE = Row(NOTE, 413, False, "The item was too large to keep at all.")
    EVIDENCE_REDACTED = Row(NOTE, 200, False, "The item held secrets and was not kept.")
    EVIDENCE_WRITE_FAILED = Row(NOTE, 500, True, "The item's bytes could not be stored.")
    EVIDENCE_PATH_TRAVERSAL = Row(NOTE, 403, False, "The item's path leaves its folder.")
    EVIDENCE_INVALID_POINTER = Row(NOTE, 400, False, "The item points at nothing.")
    EVIDENCE_INVALID_ITEM = Row(NOTE, 400, False, "The item lacks a required field.")
    EVIDENCE_INVALID_TRUNCATION = Row(NOTE, 400, False, "An item that must stay whole was cut.")

    @property
    def status(self) -> str:
        """`blocked`, `failed`, `pending`, `error`, `health` or `note`."""
        return self.value.status

    @property
    def http(self) -> int:
        """The HTTP status a face answers with."""
        return self.value.http

    @property
    def retryable(self) -> bool:
        """Whether the same call, unchanged, may succeed later."""
        return self.value.retryable

    @property
    def meaning(self) -> str:
        """One sentence for people."""
        return self.value.meaning

    def __str__(self) -> str:
        return self.name
