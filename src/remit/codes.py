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
    """Whether the caller should make the same call again; what a refusal waits for has to be fixed first."""
    meaning: str


class Reserved(Row):
    """A row that the contracts name and that nothing here gives yet.

    Each waits for its feature, or for a provider or an executor of yours that gives it as a `cause`.
    """

    __slots__ = ()


class Code(Enum):
    """A stable code; its name is what is recorded and shown."""

    _value_: Row

    # --- a call that was refused (contract: tickets, "Codes")
    INVALID_TOOL_STEP = Row(
        BLOCKED, 400, False, "The step names no tool, or its key covers several and the choice is missing."
    )
    UNKNOWN_TOOL = Row(BLOCKED, 404, False, "No provider offers a tool of this name.")
    INVALID_TOOL_ARGS = Row(BLOCKED, 400, False, "The arguments do not satisfy the tool's input schema.")
    INVALID_BUDGET = Row(BLOCKED, 400, False, "The call's budget or timeout is not a positive number.")
    MCP_REQUIRED_UNAVAILABLE = Row(BLOCKED, 503, False, "A dependency the tool requires is not ready.")
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
    UNTRUSTED_ARGUMENT = Row(
        BLOCKED, 403, False, "An argument that decides what the call reaches comes from untrusted text."
    )
    TOOL_QUARANTINED = Row(
        BLOCKED, 409, False, "The tool is withheld: its schema is unusable or changed since it was approved."
    )
    CONFIRMATION_REQUIRED = Row(PENDING, 202, False, "A person has to approve this exact call first.")
    CONFIRMATION_DENIED = Row(BLOCKED, 403, False, "A person refused this call.")
    CONFIRMATION_EXPIRED = Row(BLOCKED, 410, False, "No one answered in time; silence never approves.")
    TOO_MANY_QUESTIONS = Row(BLOCKED, 429, False, "Too many calls of this principal wait for an answer.")
    CONFIRMATION_MISMATCH = Row(BLOCKED, 409, False, "What was approved is not what would run.")
    IDEMPOTENCY_MISMATCH = Row(BLOCKED, 422, False, "The idempotency key was used for another call.")
    RESULT_TOO_LARGE = Row(FAILED, 413, False, "The tool's result is larger than the limit for recorded values.")
    RESULT_NOT_ENCODABLE = Row(FAILED, 502, False, "The tool returned something JSON cannot hold.")
    RESULT_INVALID = Row(FAILED, 502, False, "The result does not satisfy the tool's output schema.")
    CALL_CANCELLED = Row(FAILED, 499, False, "The call was cancelled before it ended.")
    OUTCOME_UNKNOWN = Row(FAILED, 409, False, "The call was announced, may have happened; a person decides.")

    # --- ours: models
    MODEL_UNAVAILABLE = Row(
        BLOCKED,
        400,
        False,
        "The model cannot be asked from here: it is unknown, lacks its key, or the prompt cannot be sent.",
    )
    MODEL_STOPPED = Row(
        FAILED, 502, False, "The model stopped without the answer: it declined, was filtered, or ran out of room."
    )
    MODEL_ANSWER_INVALID = Row(FAILED, 502, False, "The model's answer does not have the form that was asked for.")
    MODEL_BUSY = Row(FAILED, 503, True, "The provider got too many requests or tokens for now.")
    MODEL_QUOTA = Row(FAILED, 402, False, "The account's limit or credit at the provider is used up.")
    MODEL_OVERLOADED = Row(FAILED, 503, True, "The provider has no capacity for the model now.")
    MODEL_FAILED = Row(FAILED, 502, True, "The provider failed, or what it sent makes no sense.")
    MODEL_CUT = Row(FAILED, 502, True, "The model's answer broke off before it was complete.")
    MODEL_TIMEOUT = Row(FAILED, 504, True, "Nothing came from the model for too long.")
    MODEL_REJECTED = Row(FAILED, 400, False, "The provider does not accept the request.")
    MODEL_CONTEXT_FULL = Row(FAILED, 413, False, "The conversation does not fit into the model's context.")
    MODEL_AUTH = Row(FAILED, 401, False, "The provider's key is missing, wrong, or may not do this.")
    MODEL_UNKNOWN = Row(FAILED, 404, False, "The provider does not have the model.")

    # --- ours: sessions
    SESSION_NOT_FOUND = Row(ERROR, 404, False, "No session of this principal has this identifier.")

    # --- ours: jobs
    JOB_NOT_FOUND = Row(ERROR, 404, False, "No job answers to this reference.")
    JOB_NOT_RETRYABLE = Row(ERROR, 409, False, "The job has not ended, has completed, or was retried already.")
    RETRY_REPEATS = Row(ERROR, 409, False, "The retry would make calls with side effects again that have ended well.")
    JOB_FINISHED = Row(ERROR, 409, False, "The job has already ended.")
    JOB_NOT_CONVERSATION = Row(ERROR, 409, False, "The job runs no agent, so it holds no conversation to go on with.")
    JOB_FAILED = Row(FAILED, 500, False, "The recipe raised an error it did not handle.")
    JOB_CANCELLED = Row(FAILED, 499, False, "The job was cancelled.")
    STEP_NOT_FOUND = Row(ERROR, 404, False, "The job has no such step.")
    ARTIFACT_NOT_FOUND = Row(ERROR, 404, False, "The job left no such artifact.")
    STEP_NOT_WAITING = Row(ERROR, 409, False, "The step, or this attempt of it, does not wait for a decision.")
    STEP_DECIDED = Row(ERROR, 409, False, "A person has already decided on this attempt.")
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
    REMEMBERING_OFF = Row(ERROR, 409, False, "No approval of this question can be remembered here.")
    SIGNATURE_INVALID = Row(ERROR, 409, False, "A recorded approval is not signed by the person it names.")
    APPROVAL_UNPROVEN = Row(ERROR, 409, False, "A call ran on approvals that do not prove what they have to.")
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
    CHAIN_BROKEN = Row(ERROR, 409, False, "A recorded event does not match its hash.")
    HEAD_UNSEALED = Row(ERROR, 409, False, "A stream's head has no seal, or one under a key that is not here.")
    HEAD_FORGED = Row(ERROR, 409, False, "A stream's head was written by someone without the journal's key.")
    PAYLOAD_ERASED = Row(ERROR, 410, False, "The value was erased, with everything about its subject.")
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
    FOLDER_NOT_TRUSTED = Row(
        ERROR,
        403,
        False,
        "The folder's settings or journal would run code or loosen what is allowed; it is not trusted.",
    )
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

    # --- ours: HTTP
    UNAUTHENTICATED = Row(ERROR, 401, False, "The request brings no token, or one that is not valid here.")
    SCOPE_REQUIRED = Row(ERROR, 403, False, "The request's token lacks the scope that this needs.")
    HOST_REFUSED = Row(ERROR, 421, False, "The server does not go by the name in the Host header.")
    ORIGIN_REFUSED = Row(ERROR, 403, False, "The request comes from a web page of another origin.")
    FORM_OUTDATED = Row(
        ERROR,
        403,
        False,
        "The form was made for another session, or before the server was started. Load its page again.",
    )
    PATH_UNKNOWN = Row(ERROR, 404, False, "Nothing is served at this path.")
    METHOD_NOT_ALLOWED = Row(ERROR, 405, False, "The path does not take this HTTP method.")
    NOT_ACCEPTABLE = Row(ERROR, 406, False, "The request accepts none of the media types that are answered here.")
    REQUEST_INVALID = Row(ERROR, 400, False, "The request's headers or body cannot be read.")
    MEDIA_TYPE_UNSUPPORTED = Row(ERROR, 415, False, "The request's body is not of the media type that is read here.")
    BODY_TIMEOUT = Row(ERROR, 408, True, "The request's body did not arrive in time.")
    HEAD_TIMEOUT = Row(ERROR, 408, True, "The request's headers did not arrive in time.")
    TOO_MANY_REQUESTS = Row(ERROR, 429, True, "Too many requests of this principal are under way.")
    REQUEST_TOO_LARGE = Row(ERROR, 413, False, "The request's body is larger than the limit.")
    SERVER_STOPPING = Row(ERROR, 503, True, "The server stops; what was begun goes on, and can be asked for again.")
    SERVER_UNREACHABLE = Row(ERROR, 503, True, "The server cannot be reached, or the connection to it broke.")
    SERVER_ANSWER_INVALID = Row(ERROR, 502, False, "The server's answer is not one that this client understands.")
    LOCAL_ONLY = Row(ERROR, 400, False, "This works on a journal here, and not through a server.")

    # --- ours: folders and files, kept on an outcome as `cause`
    FOLDER_NOT_FOUND = Row(NOTE, 404, False, "The folder does not exist or is not a folder.")
    FOLDER_EMPTY = Row(NOTE, 422, False, "The folder holds nothing that can be read as text.")
    FILE_NOT_FOUND = Row(NOTE, 404, False, "The file does not exist.")
    FILE_NOT_TEXT = Row(NOTE, 415, False, "The file is not text.")
    FILE_TOO_LARGE = Row(NOTE, 413, False, "The file is larger than the limit for reading.")
    FILE_CHANGED = Row(NOTE, 409, False, "The file changed or vanished while it was used.")
    PATH_NOT_ALLOWED = Row(NOTE, 403, False, "The path leaves the folders this tool may touch.")
    EDIT_NO_MATCH = Row(NOTE, 409, False, "The text to replace does not occur exactly once.")
    FILE_IS_FOLDER = Row(NOTE, 409, False, "The path names a folder where a file is needed.")
    FILE_ACCESS_DENIED = Row(NOTE, 403, False, "The operating system does not let Remit do this to the file.")
    FILE_IO_FAILED = Row(NOTE, 500, True, "The operating system failed while the file was used.")
    DISK_FULL = Row(NOTE, 507, True, "The disk is full; the file is as it was before.")

    # --- ours: the sandbox
    SANDBOX_REQUIRED = Row(
        BLOCKED, 403, False, "The tool executes and would run in this very process, and nothing says that it may."
    )
    SANDBOX_UNAVAILABLE = Row(BLOCKED, 503, False, "Nothing here isolates as well as is demanded, so nothing was run.")

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
    EVIDENCE_INLINE_TOO_LARGE = Row(
        NOTE, 413, False, "The item was too large to keep inline: it was stored apart, or cut."
    )
    EVIDENCE_RAW_TOO_LARGE = Row(NOTE, 413, False, "The item was too large to keep at all.")
    EVIDENCE_REDACTED = Row(NOTE, 200, False, "The item held secrets and was not kept.")

    # --- tickets and their executor (contract: tickets)
    LEASE_FAILED = Row(ERROR, 503, True, "Tickets could not be leased.")
    DERIVE_FAILED = Row(NOTE, 500, False, "The reply ticket could not be derived; the completion stays.")
    RELEASE_FAILED = Row(ERROR, 503, True, "A ticket could not be given back.")
    LEASE_OWNER_MISMATCH = Row(ERROR, 409, False, "The executor's lease is held by someone else.")
    not_found = Row(ERROR, 404, False, "There is no such ticket.")
    lease_conflict = Row(ERROR, 409, False, "Someone else holds the ticket.")
    lease_owner_mismatch = Row(ERROR, 409, False, "The lease proof is not the one that holds the ticket.")
    direct_fill_not_allowed = Row(ERROR, 403, False, "Who completes a pending ticket is not among those who may.")
    direct_fill_missing_by = Row(ERROR, 400, False, "A pending ticket is completed without saying by whom.")

    # --- what happened to a reply (contract: tickets, "TOOL → REPLY")
    gate_kind_not_tool = Row(NOTE, 200, False, "The ticket's kind is not TOOL, so it has no reply.")
    gate_reply_derivation_disabled = Row(NOTE, 200, False, "Deriving replies is switched off.")
    gate_tool_only_mode = Row(NOTE, 200, False, "The ticket asks for tools only.")
    missing_tool_verdict = Row(NOTE, 200, False, "The outputs hold no tool verdict.")
    gate_tool_verdict_not_proceed = Row(NOTE, 200, False, "The tool verdict is not PROCEED.")
    idempotent = Row(NOTE, 200, False, "The reply was derived before.")
    recovered_orphan = Row(NOTE, 200, False, "A reply made earlier was found and joined to its parent.")
    schema_validation_failed = Row(NOTE, 400, False, "The derived ticket does not satisfy its schema.")
    created = Row(NOTE, 201, False, "The reply was derived now.")
    not_tool = Row(NOTE, 200, False, "What was completed is no TOOL ticket.")
    missing_parent_ticket_id = Row(NOTE, 400, False, "The ticket does not name its parent.")
    missing_parent_triage_ticket = Row(NOTE, 404, False, "The triage ticket that it names is not there.")

    # --- how a sandboxed program ended (contract: tools, "Sandbox"); here, for one bears the name of a status above
    SUCCEEDED = Row(NOTE, 200, False, "The program ended with exit code 0.")
    TIMEOUT = Row(NOTE, 504, False, "The program was ended because its time was up.")
    FAILED = Row(NOTE, 422, False, "The program ended otherwise; exit code, signal and limit say how.")

    # --- reserved, as below: evidence (contract: tickets)
    EVIDENCE_WRITE_FAILED = Reserved(NOTE, 500, True, "The item's bytes could not be stored.")
    EVIDENCE_PATH_TRAVERSAL = Reserved(NOTE, 403, False, "The item's path leaves its folder.")
    EVIDENCE_INVALID_POINTER = Reserved(NOTE, 400, False, "The item points at nothing.")
    EVIDENCE_INVALID_ITEM = Reserved(NOTE, 400, False, "The item lacks a required field.")
    EVIDENCE_INVALID_TRUNCATION = Reserved(NOTE, 400, False, "An item that must stay whole was cut.")

    # --- reserved: web causes (contract: tools), kept on an outcome as `cause`
    WebProviderError = Reserved(NOTE, 502, True, "The search or web backend failed.")
    WebBlocked = Reserved(NOTE, 502, False, "The site or backend refused automated access.")
    captcha_required = Reserved(NOTE, 502, False, "The site wants a person to solve a challenge.")
    captcha_cooldown = Reserved(NOTE, 503, True, "The site asked for a challenge lately; it is left alone for a while.")
    http_403 = Reserved(NOTE, 403, False, "The site answered that access is forbidden.")
    http_429 = Reserved(NOTE, 503, True, "The site answered that there were too many requests.")
    WebParseError = Reserved(NOTE, 502, False, "The backend's answer could not be understood.")
    ssrf_blocked = Reserved(NOTE, 403, False, "The address is private or otherwise not to be reached.")
    dns_failed = Reserved(NOTE, 502, True, "The host's name could not be resolved.")
    connect_failed = Reserved(NOTE, 502, True, "The host could not be reached.")
    tls_failed = Reserved(NOTE, 502, False, "The host's certificate or encryption could not be trusted.")
    timeout_connect = Reserved(NOTE, 504, True, "The host did not take the connection in time.")
    timeout_read = Reserved(NOTE, 504, True, "The host did not send its answer in time.")
    content_too_large = Reserved(NOTE, 413, False, "The answer is larger than the limit once decoded.")
    parse_failed = Reserved(NOTE, 422, False, "The page could not be read as what it says it is.")
    unsupported_content_type = Reserved(NOTE, 415, False, "The answer is of a kind that is not read.")

    # --- reserved: tickets and their executor (contract: tickets)
    EXECUTOR_FATAL = Reserved(ERROR, 500, False, "The executor cannot go on.")
    CONFIG_MISSING = Reserved(ERROR, 500, False, "The executor lacks a setting it needs.")

    # --- reserved: why a manifest does not verify (contract: tickets, "Evidence")
    artifact_sha_mismatch = Reserved(NOTE, 409, False, "An artifact does not match its hash.")
    artifact_missing = Reserved(NOTE, 404, False, "An artifact that is listed is not there.")
    manifest_schema_invalid = Reserved(NOTE, 400, False, "The manifest does not have the form it should.")
    details_ref_not_listed = Reserved(NOTE, 400, False, "A check refers to an artifact that is not listed.")
    manifest_self_integrity_failed = Reserved(NOTE, 409, False, "The manifest does not match its own hash.")
    duplicate_artifact_path = Reserved(NOTE, 400, False, "Two artifacts have the same path.")
    duplicate_check_name = Reserved(NOTE, 400, False, "Two checks have the same name.")

    # --- reserved: why a work run did not succeed (contract: executors, `result_code`)
    dep_unresolved = Reserved(NOTE, 409, False, "Something the work depends on is not done.")
    test_failed = Reserved(NOTE, 422, False, "The work's own tests fail.")
    ci_failed = Reserved(NOTE, 422, False, "Continuous integration fails on the work.")
    review_changes_requested = Reserved(NOTE, 409, False, "A reviewer wants changes.")
    env_unavailable = Reserved(NOTE, 503, True, "The environment for the work is not there.")
    permission_denied = Reserved(NOTE, 403, False, "The work needs a right that its run does not have.")
    output_unparseable = Reserved(NOTE, 422, False, "The run left no result that can be read.")
    stale_run = Reserved(NOTE, 409, False, "Another run has taken the run's place.")
    stale_result_discarded = Reserved(NOTE, 410, False, "The result of a superseded run was archived, not merged.")
    manual_intervention = Reserved(NOTE, 409, False, "A person has to step in.")
    outcome_unknown = Reserved(NOTE, 409, False, "The run's process ended without a result.")

    @property
    def status(self) -> str:
        """`blocked`, `failed`, `pending`, `error`, `health` or `note`."""
        return self._value_.status

    @property
    def http(self) -> int:
        """The HTTP status a face answers with."""
        return self._value_.http

    @property
    def retryable(self) -> bool:
        """Whether the same call, unchanged, may succeed later."""
        return self._value_.retryable

    @property
    def meaning(self) -> str:
        """One sentence for people."""
        return self._value_.meaning

    def __str__(self) -> str:
        return self.name


def named(code: str, cause: str) -> str:
    """A code as people read it: with its cause, if the code alone says no more than that the tool failed."""
    return f"{code} ({cause})" if cause and code == Code.TOOL_EXEC_FAILED.name else code
