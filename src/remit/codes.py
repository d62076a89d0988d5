"""Every stable code, in one table: what it means, what it does to a call, whether a retry can help, its HTTP status.

A code is a promise to users' alerts and scripts: it is never renamed and never changes its meaning. The names come from
the contracts (tickets, tools, versioning, executors); the rows under "ours" are Remit's own. Messages may be reworded.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

BLOCKED: Final = "blocked"
FAILED: Final = "failed"
PENDING: Final = "pending"
ERROR: Final = "error"
HEALTH: Final = "health"
NOTE: Final = "note"


class Row(NamedTuple):
    """One row of the table."""

    status: str
    """`blocked`, `failed` or `pending` (an outcome), `error` (raised), `health` (readiness), `note` (recorded beside a result)."""
    http: int
    """The HTTP status of the answer."""
    retryable: bool
    """Whether the caller should make the same call again; what a refusal waits for has to be fixed first."""
    meaning: str


class Reserved(Row):
    """A row that the contracts name and that Remit does not use yet.

    It is reserved for a feature to come, or for your own provider or executor to give as a `cause`.
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
    TOOL_NOT_OFFERED = Row(BLOCKED, 403, False, "The agent was not offered a tool, or a skill, of this name.")
    CALL_REPEATED = Row(BLOCKED, 409, False, "The agent made this call several times, and nothing has changed since.")
    INVALID_TOOL_ARGS = Row(BLOCKED, 400, False, "The arguments do not satisfy the tool's input schema.")
    INVALID_BUDGET = Row(BLOCKED, 400, False, "The budget or timeout is not positive, or too small.")
    MCP_REQUIRED_UNAVAILABLE = Row(BLOCKED, 503, False, "A dependency of the tool is not ready.")
    BUDGET_EXCEEDED = Row(BLOCKED, 429, False, "The budget for this work is used up.")
    INVALID_EVIDENCE_CANDIDATE = Row(
        BLOCKED, 400, False, "An evidence candidate lacks kind, source or retrieved_at, or carries bytes."
    )

    # --- a call that ran and failed
    RUN_TIMEOUT = Row(FAILED, 504, False, "The run did not end before its deadline.")
    TOOL_TIMEOUT = Row(FAILED, 504, True, "The tool did not answer before the call's deadline.")
    TOOL_EXEC_FAILED = Row(FAILED, 502, False, "The tool reported a failure.")
    TOOL_UNAVAILABLE = Row(FAILED, 503, True, "The tool's provider is closed, could not start, or lost its connection.")

    # --- ours: the gateway
    POLICY_DENIED = Row(BLOCKED, 403, False, "A rule, or the default, forbids this call.")
    RATE_LIMITED = Row(BLOCKED, 429, True, "The tool was called as often as its limit allows for now.")
    CONCURRENCY_LIMITED = Row(BLOCKED, 429, True, "As many calls of the tool are under way as its limit allows.")
    CIRCUIT_OPEN = Row(BLOCKED, 503, True, "The tool could not be reached several times in a row, and is left alone.")
    UNTRUSTED_ARGUMENT = Row(
        BLOCKED, 403, False, "An argument that decides what the call reaches comes from untrusted text."
    )
    TOOL_QUARANTINED = Row(
        BLOCKED, 409, False, "The tool is withheld: its schema is unusable or changed since it was approved."
    )
    CONFIRMATION_REQUIRED = Row(PENDING, 202, False, "A person has to approve this exact call first.")
    CONFIRMATION_DENIED = Row(BLOCKED, 403, False, "A person refused this call.")
    CONFIRMATION_EXPIRED = Row(BLOCKED, 410, False, "No one answered in time. Silence never approves.")
    SECRET_MISSING = Row(BLOCKED, 503, False, "A secret that the tool needs is not declared, or cannot be read.")
    SECRET_DENIED = Row(BLOCKED, 403, False, "The tool may not have this secret, or does not declare it.")
    TOO_MANY_QUESTIONS = Row(BLOCKED, 429, False, "Too many calls of this principal wait for an answer.")
    CONFIRMATION_MISMATCH = Row(BLOCKED, 409, False, "The approved call is not the call that would run.")
    IDEMPOTENCY_MISMATCH = Row(BLOCKED, 422, False, "The idempotency key was used for another call.")
    RESULT_TOO_LARGE = Row(FAILED, 413, False, "The tool's result is larger than the limit for recorded values.")
    RESULT_NOT_ENCODABLE = Row(FAILED, 502, False, "The tool returned a value that JSON cannot represent.")
    RESULT_INVALID = Row(FAILED, 502, False, "The result does not satisfy the tool's output schema.")
    CALL_CANCELLED = Row(FAILED, 499, False, "The call was cancelled before it ended.")
    OUTCOME_UNKNOWN = Row(FAILED, 409, False, "The call was announced and may have happened; a person has to decide.")

    # --- ours: skills
    SKILL_NOT_FOUND = Row(FAILED, 404, False, "No skill of this name is loaded, or it has no such file.")
    SKILL_INVALID = Row(FAILED, 422, False, "The skill's folder or manifest cannot be used.")
    SKILL_DISABLED = Row(FAILED, 403, False, "The skill is switched off, or no enabled skill allows the run type.")
    SKILL_UNAVAILABLE = Row(FAILED, 409, False, "A tool that the skill requires is missing, or was changed.")
    SKILL_DRIFT = Row(FAILED, 409, False, "A skill is not as the job took it up.")

    # --- ours: models
    MODEL_UNAVAILABLE = Row(
        BLOCKED,
        400,
        False,
        "The model cannot be used here: it is unknown, its key is missing, or the prompt cannot be sent.",
    )
    MODEL_STOPPED = Row(
        FAILED, 502, False, "The model stopped without an answer: it declined, was filtered, or ran out of tokens."
    )
    MODEL_EMPTY = Row(FAILED, 502, False, "The model gave an empty answer, each time it was asked.")
    MODEL_ANSWER_INVALID = Row(FAILED, 502, False, "The model's answer does not have the requested form.")
    MODEL_BUSY = Row(FAILED, 503, True, "The provider received too many requests or tokens.")
    MODEL_QUOTA = Row(FAILED, 402, False, "The account's limit or credit at the provider is used up.")
    MODEL_OVERLOADED = Row(FAILED, 503, True, "The provider has no capacity for the model at the moment.")
    MODEL_FAILED = Row(FAILED, 502, True, "The provider failed, or sent an answer that cannot be read.")
    MODEL_CUT = Row(FAILED, 502, True, "The model's answer broke off before it was complete.")
    MODEL_TIMEOUT = Row(FAILED, 504, True, "The model sent nothing for too long.")
    MODEL_REJECTED = Row(FAILED, 400, False, "The provider does not accept the request.")
    MODEL_CONTEXT_FULL = Row(FAILED, 413, False, "The conversation does not fit into the model's context.")
    MODEL_AUTH = Row(FAILED, 401, False, "The provider's key is missing, wrong, or may not do this.")
    MODEL_UNKNOWN = Row(FAILED, 404, False, "The provider does not have the model.")

    # --- ours: sessions
    SESSION_NOT_FOUND = Row(ERROR, 404, False, "This principal has no session with this identifier.")

    # --- ours: jobs
    JOB_NOT_FOUND = Row(ERROR, 404, False, "No job has this identifier, beginning or ending.")
    JOB_NOT_RETRYABLE = Row(ERROR, 409, False, "The job has not ended, has completed, or was retried already.")
    JOB_NOT_REPLAYABLE = Row(ERROR, 409, False, "It is a session: no recipe made its calls, so none can run again.")
    RETRY_REPEATS = Row(ERROR, 409, False, "A retry, fork or attempt would repeat calls that took effect, or may have.")
    GOLDEN_INVALID = Row(ERROR, 400, False, "The golden job cannot be read, or none was named.")
    FORK_INVALID = Row(ERROR, 400, False, "A change does not fit the job: the step is not there, or runs again anyway.")
    JOB_FINISHED = Row(ERROR, 409, False, "The job has already ended.")
    JOB_NOT_CONVERSATION = Row(ERROR, 409, False, "The job runs no agent, so it has no conversation to continue.")
    JOB_FAILED = Row(FAILED, 500, False, "The recipe raised an error it did not handle.")
    JOB_ENDS_WORKERS = Row(FAILED, 500, False, "Three processes in a row died while they ran the job.")
    JOB_CANCELLED = Row(FAILED, 499, False, "The job was cancelled.")
    JOB_QUOTA_EXCEEDED = Row(ERROR, 429, True, "As many jobs are open as a quota (jobs.quotas) allows.")
    JOBS_FULL = Row(ERROR, 503, True, "As many jobs wait for a worker as the queue (jobs.queue) takes.")
    NO_WORKER = Row(ERROR, 503, True, "No worker has taken the run; it continues once one does.")
    STEP_NOT_FOUND = Row(ERROR, 404, False, "The job has no such step.")
    ARTIFACT_NOT_FOUND = Row(ERROR, 404, False, "The job has no such artifact.")
    ARTIFACT_NAME_REFUSED = Row(ERROR, 400, False, "The artifact's name is hidden, or one that other programs run.")
    STEP_NOT_WAITING = Row(ERROR, 409, False, "The step, or this attempt of it, does not wait for a decision.")
    STEP_DECIDED = Row(ERROR, 409, False, "A person has already decided on this attempt.")
    STEP_FAILED = Row(FAILED, 502, False, "A step failed and the recipe did not handle it.")
    NONDETERMINISTIC = Row(
        FAILED, 409, False, "The recipe departed from its record: it requested another step than the journal holds."
    )
    DUPLICATE_STEP_KEY = Row(FAILED, 400, False, "Two effects of one branch have the same explicit key.")
    FOREIGN_TASK = Row(
        FAILED, 400, False, "An effect was started from a task that the run did not create; use run.gather."
    )
    FOREIGN_TIMEOUT = Row(
        FAILED, 400, False, "A time limit that the run does not know, such as asyncio.timeout, is open around a wait."
    )
    NOT_AWAITED = Row(FAILED, 400, False, "The recipe asked for an effect and never awaited it: it did not happen.")
    UNKNOWN_RECIPE = Row(ERROR, 404, False, "No recipe of this name is registered here.")
    INVALID_INPUT = Row(ERROR, 400, False, "The input does not fit the recipe's parameters.")
    SIGNAL_INVALID = Row(ERROR, 400, False, "The signal's name or payload cannot be sent.")
    CONFIRMATION_NOT_FOUND = Row(ERROR, 404, False, "No confirmation has this identifier or ending.")
    CONFIRMATION_CLOSED = Row(ERROR, 409, False, "The confirmation was already decided, used, replaced or has expired.")
    REMEMBERING_OFF = Row(ERROR, 409, False, "Remit cannot remember an approval of this question.")
    SIGNATURE_INVALID = Row(ERROR, 409, False, "A recorded approval is not signed by the person it names.")
    RECORD_CONTRADICTED = Row(ERROR, 409, False, "A recorded event does not fit the facts that it follows from.")
    APPROVAL_UNPROVEN = Row(ERROR, 409, False, "A call ran on approvals without the required proof.")
    DECIDER_NOT_ALLOWED = Row(ERROR, 403, False, "This person may not decide this confirmation.")

    # --- ours: plans
    PLAN_INVALID = Row(ERROR, 400, False, "The plan is not valid; the message names line and column.")
    PLAN_NEWER = Row(FAILED, 409, False, "The task graph has a format that only a newer Remit reads.")
    PLAN_UNREADABLE = Row(ERROR, 400, False, "The file cannot be read or is not YAML or JSON.")
    PLAN_REFERENCE_MISSING = Row(
        FAILED, 422, False, "A reference in a plan names a value that the result does not have."
    )
    PLAN_REFERENCE_UNFIT = Row(
        FAILED, 422, False, "The value of a reference does not fit: it is not a list, is too long, or is not text."
    )
    PLAN_SIGNAL_TIMEOUT = Row(FAILED, 504, False, "The signal that a plan waited for did not arrive in time.")

    # --- versions (contract: versioning, "Mismatch")
    EXECUTION_VERSION_MISMATCH = Row(FAILED, 409, False, "The job was recorded by another version of its code.")
    TOOL_SCHEMA_DRIFT = Row(FAILED, 409, False, "The tool's contract changed since the call was recorded.")
    MODEL_DRIFT = Row(FAILED, 409, False, "The same prompt now goes to another model or gives another output.")

    # --- journal
    APPEND_CONFLICT = Row(
        ERROR, 409, False, "Another writer holds the stream now; this append was refused and nothing was written."
    )
    STREAM_NOT_FOUND = Row(ERROR, 404, False, "The journal holds no such stream.")
    CHAIN_BROKEN = Row(ERROR, 409, False, "A recorded event does not match its hash.")
    HEAD_UNSEALED = Row(ERROR, 409, False, "A stream's head has no seal, or one under a key that is not the journal's.")
    KEY_MISSING = Row(ERROR, 409, False, "The journal is sealed under a key that is not here: it cannot be checked.")
    HEAD_MISSING = Row(ERROR, 409, False, "A stream that was read before lost its head, or its newest events.")
    HEAD_FORGED = Row(ERROR, 409, False, "A stream's head was written by someone without the journal's key.")
    CHECKPOINT_MISSING = Row(ERROR, 409, False, "The journal lacks something that a signed checkpoint covers.")
    CHECKPOINT_DIFFERS = Row(ERROR, 409, False, "The journal is not what a signed checkpoint says.")
    CHECKPOINT_UNPROVEN = Row(ERROR, 409, False, "Checkpoints are signed by a key that no one vouches for.")
    PAYLOAD_ERASED = Row(ERROR, 410, False, "The value was erased, with everything about its subject.")
    ERASURE_INCOMPLETE = Row(NOTE, 200, False, "Values that an older Remit recorded in events could not be erased.")
    RECORD_PRUNED = Row(ERROR, 410, False, "The record was removed because of its age; a stub stands for it.")
    ARCHIVE_UNFIT = Row(ERROR, 409, False, "An archived evidence package does not hold the record as it is.")
    BACKUP_ELSEWHERE = Row(ERROR, 409, False, "This journal is not a file: its server has tools to back it up.")
    BLOB_MISSING = Row(ERROR, 410, False, "The bytes of a recorded value are no longer in the journal.")
    JOURNAL_MISSING = Row(ERROR, 404, False, "The journal that was named does not exist.")
    JOURNAL_LOCKED = Row(ERROR, 503, True, "Another program holds the journal's write lock.")
    JOURNAL_READ_ONLY = Row(ERROR, 503, False, "The journal cannot be written to.")
    JOURNAL_FULL = Row(ERROR, 507, True, "The disk under the journal is full; nothing recorded was lost.")
    JOURNAL_CORRUPT = Row(ERROR, 500, False, "The journal's file is damaged or is not a journal.")
    JOURNAL_IO = Row(ERROR, 503, True, "The journal's storage failed.")
    JOURNAL_NEWER = Row(ERROR, 409, False, "A newer Remit wrote this journal; this one must not change it.")
    JOURNAL_MOVED = Row(ERROR, 409, False, "The journal moved: its work goes on in another one, and never here.")
    JOURNAL_BACKUP = Row(ERROR, 409, False, "The journal is a copy that runs no jobs until it is activated.")
    JOURNAL_SHARD_UNAVAILABLE = Row(ERROR, 503, True, "The shard of the journal that holds this is down.")
    JOURNAL_BUSY = Row(ERROR, 503, True, "More waits to be written than serve.queue_bytes allows.")
    JOURNAL_CLOSED = Row(ERROR, 503, False, "The journal is closed.")
    RECORD_INVALID = Row(ERROR, 400, False, "The storage cannot hold a value that should be recorded.")

    # --- ours: settings, policy file, input
    SETTINGS_INVALID = Row(ERROR, 400, False, "A setting is unknown, or its value does not fit.")
    FOLDER_NOT_TRUSTED = Row(
        ERROR,
        403,
        False,
        "The folder's settings or journal would run code or loosen what is allowed; it is not trusted.",
    )
    POLICY_INVALID = Row(ERROR, 400, False, "A policy rule is not valid.")
    TARGET_NOT_FOUND = Row(ERROR, 404, False, "No `[[notify]]` table has this name.")
    SCHEDULE_NOT_FOUND = Row(ERROR, 404, False, "No schedule has this name.")
    SCHEDULE_INVALID = Row(ERROR, 400, False, "A schedule's expression, interval, zone or name cannot be used.")
    SCHEDULE_EXISTS = Row(
        ERROR, 409, False, "Another schedule has this name, or it stands in a file, where to change it."
    )
    NAME_INVALID = Row(ERROR, 400, False, "A tool, recipe or provider name breaks the naming rules.")
    NOT_CANONICAL = Row(ERROR, 400, False, "The value has no canonical JSON form, such as NaN or half a character.")
    SCHEMA_INVALID = Row(
        ERROR, 400, False, "The JSON schema is unusable, too deep, too large, or points outside itself."
    )
    MODULE_UNLOADABLE = Row(ERROR, 400, False, "A configured module cannot be imported.")
    USAGE = Row(ERROR, 400, False, "The command line is not valid.")
    INTERRUPTED = Row(ERROR, 499, False, "Stopped from the keyboard; the job can be resumed.")
    NO_PROCESSES = Row(
        ERROR, 503, True, "The machine, or this user's limit, has no room for one more thread or process."
    )
    UNHANDLED_EXCEPTION = Row(ERROR, 500, False, "A defect in Remit, or in code that it runs.")

    # --- ours: HTTP
    UNAUTHENTICATED = Row(ERROR, 401, False, "The request has no token, or one that is not valid here.")
    LOGIN_REFUSED = Row(ERROR, 403, False, "The provider did not log the person in, or lets them do nothing here.")
    LOGIN_PENDING = Row(ERROR, 425, True, "The person has not logged in at the provider yet.")
    LOGIN_UNAVAILABLE = Row(ERROR, 503, True, "The provider at which people log in cannot be reached.")
    SCOPE_REQUIRED = Row(ERROR, 403, False, "The request's token lacks the required scope.")
    HOST_REFUSED = Row(ERROR, 421, False, "The name in the Host header is not one of the server's names.")
    ORIGIN_REFUSED = Row(ERROR, 403, False, "The request comes from a web page of another origin.")
    FORM_OUTDATED = Row(
        ERROR, 403, False, "The form belongs to another session, or is older than the server. Load its page again."
    )
    PATH_UNKNOWN = Row(ERROR, 404, False, "The server has nothing at this path.")
    METHOD_NOT_ALLOWED = Row(ERROR, 405, False, "The path does not support this HTTP method.")
    NOT_ACCEPTABLE = Row(ERROR, 406, False, "The request accepts none of the media types of the answer.")
    REQUEST_INVALID = Row(ERROR, 400, False, "The request's headers or body cannot be read.")
    MEDIA_TYPE_UNSUPPORTED = Row(ERROR, 415, False, "The request's body has an unsupported media type.")
    BODY_TIMEOUT = Row(ERROR, 408, True, "The request's body did not arrive in time.")
    HEAD_TIMEOUT = Row(ERROR, 408, True, "The request's headers did not arrive in time.")
    TOO_MANY_REQUESTS = Row(ERROR, 429, True, "Too many requests of this principal are in progress.")
    REQUEST_TOO_LARGE = Row(ERROR, 413, False, "The request's body or headers are larger than the limit.")
    SERVER_STOPPING = Row(ERROR, 503, True, "The server is stopping. What it started goes on; send the request again.")
    SERVER_UNREACHABLE = Row(ERROR, 503, True, "The server cannot be reached, or the connection to it broke.")
    SERVER_ANSWER_INVALID = Row(ERROR, 502, False, "This client does not understand the server's answer.")
    LOCAL_ONLY = Row(ERROR, 400, False, "This works only on a local journal, not through a server.")

    # --- ours: folders and files, kept on an outcome as `cause`
    FOLDER_NOT_FOUND = Row(NOTE, 404, False, "The folder does not exist or is not a folder.")
    FOLDER_EMPTY = Row(NOTE, 422, False, "The folder contains no readable text.")
    FILE_NOT_FOUND = Row(NOTE, 404, False, "The file does not exist.")
    FILE_NOT_TEXT = Row(NOTE, 415, False, "The file is not text.")
    FILE_TOO_LARGE = Row(NOTE, 413, False, "The file is larger than the limit for reading.")
    FILE_CHANGED = Row(NOTE, 409, False, "The file changed or disappeared while it was in use.")
    PATH_NOT_ALLOWED = Row(NOTE, 403, False, "The path is outside the folders that this tool may use.")
    EDIT_NO_MATCH = Row(NOTE, 409, False, "The text to replace does not occur exactly once.")
    UNDO_NOT_KEPT = Row(NOTE, 404, False, "The earlier content of the file is not kept, or no longer.")
    DOCUMENT_ENCRYPTED = Row(NOTE, 422, False, "The document can only be opened with a password.")
    DOCUMENT_UNREADABLE = Row(NOTE, 422, False, "The document is damaged, or finding its text takes too much.")
    FILE_IS_FOLDER = Row(NOTE, 409, False, "The path names a folder, not a file.")
    FILE_ACCESS_DENIED = Row(NOTE, 403, False, "The operating system does not let Remit do this to the file.")
    FILE_IO_FAILED = Row(NOTE, 500, True, "The operating system reported an error while the file was in use.")
    DISK_FULL = Row(NOTE, 507, True, "The disk is full; the file is unchanged.")

    # --- ours: the sandbox
    SANDBOX_REQUIRED = Row(
        BLOCKED, 403, False, "The tool executes code in Remit's own process, and nothing allows that."
    )
    SANDBOX_UNAVAILABLE = Row(BLOCKED, 503, False, "No driver here isolates as well as required, so nothing was run.")

    # --- provider causes (contract: tools), kept on an outcome as `cause`
    ToolNotFound = Row(NOTE, 404, False, "The provider does not know the tool.")
    SpawnFailed = Row(NOTE, 503, True, "The provider's process could not be started.")
    Timeout = Row(NOTE, 504, True, "The provider did not answer in time.")
    ConnectionError = Row(NOTE, 503, True, "The connection to the provider was lost.")
    ProviderClosed = Row(NOTE, 503, True, "The provider has been closed.")
    InvalidInput = Row(NOTE, 400, False, "The provider rejected the arguments.")
    AuthError = Row(NOTE, 401, False, "The provider refused the credentials.")
    NetworkError = Row(NOTE, 502, True, "The network failed below the provider.")
    BadGateway = Row(NOTE, 502, True, "The provider's upstream sent an answer that cannot be read.")

    # --- readiness (contract: tickets; health only)
    DEP_UNAVAILABLE = Row(HEALTH, 503, True, "The dependency is not available.")
    DEP_INIT_FAILED = Row(HEALTH, 503, True, "The dependency could not be started.")
    DEP_TIMEOUT = Row(HEALTH, 503, True, "The dependency did not answer the probe in time.")
    DEP_UNKNOWN = Row(HEALTH, 503, True, "The dependency's state is unknown.")

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
        NOTE, 413, False, "The item was too large to keep inline; it was stored separately, or cut."
    )
    EVIDENCE_RAW_TOO_LARGE = Row(NOTE, 413, False, "The item was too large to keep at all.")
    EVIDENCE_REDACTED = Row(NOTE, 200, False, "The item contained secrets and was not kept.")

    # --- tickets and their executor (contract: tickets)
    EXECUTOR_FATAL = Row(ERROR, 500, False, "The worker on tickets cannot go on; an error beside its report says why.")
    LEASE_FAILED = Row(ERROR, 503, True, "Tickets could not be leased.")
    DERIVE_FAILED = Row(NOTE, 500, False, "The reply ticket could not be derived; the ticket stays complete.")
    RELEASE_FAILED = Row(ERROR, 503, True, "A ticket could not be released.")
    LEASE_OWNER_MISMATCH = Row(ERROR, 409, False, "The executor's lease is held by someone else.")
    not_found = Row(ERROR, 404, False, "There is no such ticket.")
    lease_conflict = Row(ERROR, 409, False, "Someone else holds the ticket.")
    lease_owner_mismatch = Row(ERROR, 409, False, "The lease proof does not match the lease of the ticket.")
    direct_fill_not_allowed = Row(ERROR, 403, False, "The caller is not allowed to complete a pending ticket.")
    direct_fill_missing_by = Row(ERROR, 400, False, "The request completes a pending ticket without naming who does.")

    # --- what happened to a reply (contract: tickets, "TOOL → REPLY")
    gate_kind_not_tool = Row(NOTE, 200, False, "The ticket's kind is not TOOL, so it has no reply.")
    gate_reply_derivation_disabled = Row(NOTE, 200, False, "Deriving replies is turned off.")
    gate_tool_only_mode = Row(NOTE, 200, False, "The ticket asks for tools only.")
    missing_tool_verdict = Row(NOTE, 200, False, "The outputs hold no tool verdict.")
    gate_tool_verdict_not_proceed = Row(NOTE, 200, False, "The tool verdict is not PROCEED.")
    idempotent = Row(NOTE, 200, False, "The reply was derived before.")
    recovered_orphan = Row(NOTE, 200, False, "A reply made earlier was found and joined to its parent.")
    schema_validation_failed = Row(NOTE, 400, False, "The derived ticket does not satisfy its schema.")
    created = Row(NOTE, 201, False, "The reply was derived now.")
    not_tool = Row(NOTE, 200, False, "The completed ticket is not a TOOL ticket.")
    missing_parent_ticket_id = Row(NOTE, 400, False, "The ticket does not name its parent.")
    missing_parent_triage_ticket = Row(NOTE, 404, False, "The triage ticket that it names does not exist.")

    # --- how a sandboxed program ended (contract: tools, "Sandbox"); here, for one bears the name of a status above
    SUCCEEDED = Row(NOTE, 200, False, "The program ended with exit code 0.")
    TIMEOUT = Row(NOTE, 504, False, "The program was ended because it exceeded its time limit.")
    FAILED = Row(NOTE, 422, False, "The program failed; exit code, signal and limit say how.")

    # --- causes on the web (contract: tools), kept on an outcome as `cause`
    WebProviderError = Row(NOTE, 502, True, "The search or web backend failed.")
    WebBlocked = Row(NOTE, 502, False, "The site or backend refused automated access.")
    captcha_required = Row(NOTE, 502, False, "The site requires a person to solve a challenge.")
    captcha_cooldown = Row(NOTE, 503, True, "The site recently required a challenge; requests to it pause for a while.")
    http_403 = Row(NOTE, 403, False, "The site refused access.")
    http_429 = Row(NOTE, 503, True, "The site received too many requests.")
    WebParseError = Row(NOTE, 502, False, "The backend's answer could not be understood.")
    ssrf_blocked = Row(NOTE, 403, False, "The address is private or otherwise forbidden.")
    dns_failed = Row(NOTE, 502, True, "The host's name could not be resolved.")
    connect_failed = Row(NOTE, 502, True, "The host could not be reached.")
    tls_failed = Row(NOTE, 502, False, "The host's certificate or encryption is not trusted.")
    timeout_connect = Row(NOTE, 504, True, "The host did not accept the connection in time.")
    timeout_read = Row(NOTE, 504, True, "The host did not send its answer in time.")
    content_too_large = Row(NOTE, 413, False, "The page or answer is larger than the limit.")
    parse_failed = Row(NOTE, 422, False, "The page could not be parsed as its declared type.")
    unsupported_content_type = Row(NOTE, 415, False, "The answer has an unsupported content type.")

    # --- why a work run did not succeed (contract: executors, `result_code`)
    dep_unresolved = Row(NOTE, 409, False, "A dependency of the work is not done.")
    test_failed = Row(NOTE, 422, False, "The work's own tests fail.")
    ci_failed = Row(NOTE, 422, False, "Continuous integration fails on the work.")
    review_changes_requested = Row(NOTE, 409, False, "A reviewer requested changes.")
    env_unavailable = Row(ERROR, 503, True, "The environment for the work is not available.")
    permission_denied = Row(NOTE, 403, False, "The work needs a permission that its run does not have.")
    output_unparseable = Row(NOTE, 422, False, "The run left no readable result.")
    stale_run = Row(NOTE, 409, False, "Another run has taken the run's place.")
    stale_result_discarded = Row(NOTE, 410, False, "The result of a superseded run was archived, not merged.")
    manual_intervention = Row(NOTE, 409, False, "A person has to intervene.")
    outcome_unknown = Row(NOTE, 409, False, "The run's process ended without a result.")

    # --- ours: work
    WORK_INVALID = Row(ERROR, 400, False, "A reference, an order, a context pack or workflow.toml breaks the contract.")
    WORK_NOT_FOUND = Row(ERROR, 404, False, "No issue or run of this name is worked on here.")
    WORK_CONFLICT = Row(ERROR, 409, False, "The issue's state, or another run of it, does not allow this.")

    # --- why a manifest does not verify (contract: tickets, "Evidence")
    artifact_sha_mismatch = Row(NOTE, 409, False, "An artifact does not match its hash.")
    artifact_missing = Row(NOTE, 404, False, "A listed artifact does not exist.")
    manifest_schema_invalid = Row(NOTE, 400, False, "The manifest does not match its schema.")
    details_ref_not_listed = Row(NOTE, 400, False, "A check refers to an artifact that is not listed.")
    manifest_self_integrity_failed = Row(NOTE, 409, False, "The manifest does not match its own hash.")
    duplicate_artifact_path = Row(NOTE, 400, False, "Two artifacts have the same path.")
    duplicate_check_name = Row(NOTE, 400, False, "Two checks have the same name.")

    # --- reserved, as below: evidence (contract: tickets)
    EVIDENCE_WRITE_FAILED = Reserved(NOTE, 500, True, "The item's bytes could not be stored.")
    EVIDENCE_PATH_TRAVERSAL = Reserved(NOTE, 403, False, "The item's path leaves its folder.")
    EVIDENCE_INVALID_POINTER = Reserved(NOTE, 400, False, "The item refers to nothing.")
    EVIDENCE_INVALID_ITEM = Reserved(NOTE, 400, False, "The item lacks a required field.")
    EVIDENCE_INVALID_TRUNCATION = Reserved(NOTE, 400, False, "An item that must be complete was cut.")

    # --- reserved: tickets and their executor (contract: tickets)
    CONFIG_MISSING = Reserved(ERROR, 500, False, "The executor lacks a required setting.")

    @classmethod
    def recorded(cls, name: str, general: Code, *, retryable: bool = False) -> Code:
        """Return a code by the name that an event or a server has: one of another Remit is taken for a `general` one.

        It keeps its name, and is no row of the table. Every name that comes from outside is read here, and none raises.
        """
        return cls.__members__.get(name) or _foreign(name, general, retryable)

    @property
    def status(self) -> str:
        """`blocked`, `failed`, `pending`, `error`, `health` or `note`."""
        return self._value_.status

    @property
    def http(self) -> int:
        """The HTTP status of the answer."""
        return self._value_.http

    @property
    def retryable(self) -> bool:
        """Return whether the same call, unchanged, may succeed later."""
        return self._value_.retryable

    @property
    def meaning(self) -> str:
        """One sentence for people."""
        return self._value_.meaning

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=256)
def _foreign(name: str, general: Code, retryable: bool) -> Code:
    code = object.__new__(Code)
    code._name_ = name
    code._value_ = Row(general.status, general.http, retryable, "A code of another version of Remit.")
    return code


def named(code: str, cause: str) -> str:
    """A code as people read it: with its cause, if the code alone says no more than that the tool failed."""
    return f"{code} ({cause})" if cause and code == Code.TOOL_EXEC_FAILED.name else code
