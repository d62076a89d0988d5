"""Errors that Remit raises. A refusal of a call is a value (rule 5); an error is for the programmer or the operator.

RemitError
├── UsageError             input that a person or program gave is wrong
│   ├── SettingsError      an unknown or ill-typed setting
│   ├── PolicyError        a rule that cannot be understood
│   ├── NameInvalidError   a name that breaks the naming rules
│   ├── SchemaError        a JSON schema that cannot be used
│   ├── NotCanonicalError  a value without a canonical form
│   ├── PlanError          a task graph that is not valid
│   │   ├── InvalidPlanError      carries every problem, with its place (jobs/plans/problem.py)
│   │   └── ReferenceSyntaxError  a text that begins like a reference (jobs/plans/references.py)
│   ├── ResolveError       a name for which there is no single tool (tools/index.py)
│   └── NotFoundError      a job, step, recipe or confirmation that is not there
│       └── RecordPrunedError  or no more: only its stub is kept
├── StateError             the thing is there, but not in the state this needs
│   └── BusyError          there is no room for one more now; says when to try again
├── JournalError           the journal's storage refused or failed
│   ├── AppendConflictError  another writer holds the stream (a superseded writer learns it here)
│   └── ChainBrokenError     recorded bytes do not match their hash
│       ├── PayloadErasedError  or were erased with their subject
│       └── LimitUnprovenError  or do not prove what was taken of a limit (gateway/takings.py)
├── ServerError            a Remit server cannot be reached, or gives no answer of its own
│   └── NotSentError       none was reached: the request has no effect
├── JobEndedError          an awaited job failed or was cancelled (service/handle.py)
├── InterruptedByUserError  Ctrl-C or SIGTERM (cli/errors.py)
├── LackingError           this process lacks what a job needs; another may have it (jobs/routes.py)
└── RunError               raised inside recipe code
    ├── CallError          a call did not end well; carries the outcome (jobs/results.py)
    ├── ModelError         a model gave no answer that can be used (jobs/answers.py)
    ├── NondeterminismError  the recipe left the recorded path; carries both sides
    └── VersionError       the recorded versions are not today's, and policy says refuse

ProviderError              raised by a provider, and no RemitError: the gateway turns it into an outcome
├── BrowserError           something that the browser or a page did not do (providers/browser/faults.py)
├── ListFailedError        an MCP server that could not be listed (providers/mcp/connection.py)
└── WebError               a page or a search backend that gave no answer (providers/web/faults.py)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal

from remit.codes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RemitError(Exception):
    """Base of the errors that Remit raises."""

    default: ClassVar[Code] = Code.UNHANDLED_EXCEPTION

    def __init__(self, message: str = "", *, code: Code | None = None, remedy: str = "") -> None:
        self.code = code or self.default
        self.message = message or self.code.meaning
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class UsageError(RemitError):
    """Input from a person or a program is wrong."""

    default = Code.USAGE


class SettingsError(UsageError):
    """A setting is unknown, or its value does not fit."""

    default = Code.SETTINGS_INVALID


class PolicyError(UsageError):
    """A policy rule is not valid."""

    default = Code.POLICY_INVALID


class NameInvalidError(UsageError):
    """A name breaks the naming rules."""

    default = Code.NAME_INVALID


class SchemaError(UsageError):
    """A JSON schema cannot be used."""

    default = Code.SCHEMA_INVALID


class NotCanonicalError(UsageError):
    """A value has no canonical JSON form."""

    default = Code.NOT_CANONICAL


class PlanError(UsageError):
    """A task graph is not valid."""

    default = Code.PLAN_INVALID


class NotFoundError(UsageError):
    """The name refers to nothing."""

    default = Code.JOB_NOT_FOUND


class RecordPrunedError(NotFoundError):
    """The events were removed on purpose, and a stub stands in their place."""

    default = Code.RECORD_PRUNED


class StateError(RemitError):
    """The job, step or question is in the wrong state for this."""

    default = Code.JOB_FINISHED


class BusyError(StateError):
    """There is no room for it now: the same request may succeed later."""

    default = Code.JOBS_FULL

    def __init__(self, message: str = "", *, code: Code | None = None, remedy: str = "", again_s: int = 1) -> None:
        self.again_s = again_s
        super().__init__(message, code=code, remedy=remedy)


class JournalError(RemitError):
    """The journal's storage refused or failed."""

    default = Code.JOURNAL_IO


class AppendConflictError(JournalError):
    """Another writer holds the stream now; nothing was written."""

    default = Code.APPEND_CONFLICT


class ChainBrokenError(JournalError):
    """A recorded event does not match its hash."""

    default = Code.CHAIN_BROKEN


class PayloadErasedError(ChainBrokenError):
    """A recorded value was erased deliberately: its event remains, its bytes are gone."""

    default = Code.PAYLOAD_ERASED


class ServerError(RemitError):
    """A Remit server cannot be reached, or did not answer itself."""

    default = Code.SERVER_UNREACHABLE


class NotSentError(ServerError):
    """A Remit server was not reached: nothing of the request was sent."""


class RunError(RemitError):
    """Raised inside recipe code."""

    default = Code.JOB_FAILED


class VersionError(RunError):
    """The recorded versions differ from today's, and `jobs.mismatch` says to refuse."""

    default = Code.EXECUTION_VERSION_MISMATCH


_TO_TAKE_THE_PATH: Final = (
    "Run the code that recorded this job, or let the code here take the recorded path where `run.version` is the "
    "recorded version (docs/recipes.md, Versions), then resume the job."
)


class NondeterminismError(RunError):
    """The recipe departed from its record: it requested another step than the journal holds."""

    default = Code.NONDETERMINISTIC

    def __init__(
        self, step: str, recorded: str, requested: str, *, code: Code | None = None, remedy: str = _TO_TAKE_THE_PATH
    ) -> None:
        self.step = step
        self.recorded = recorded
        self.requested = requested
        reason = f"step {step}: the journal holds {recorded}, but the recipe requests {requested}"
        super().__init__(reason, code=code, remedy=remedy)


class ProviderError(Exception):
    """Raised by a provider when a call cannot succeed; `cause` is a provider code of the tools contract.

    The provider's own `cause` is None where the tool itself failed. `code` overrides the outcome code that the gateway
    would derive from the cause, if it is one that a call can end with; any other code is taken as the cause. `detail`
    is JSON for faces that speak the provider's language; `frames` say where an exception behind it came from.
    `evidence` are candidates (`EvidenceCandidate`), kept as those of a result are. `effect` says what is known of what
    the call did, where the cause does not: `InvalidInput`, `ToolNotFound` and `AuthError` say that it did nothing.
    `again_ms` is how long a job waits, parked, before it makes a call again that a limit beyond the provider refused.
    `repaired` says what was repaired in what is told, as of a result.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: Code | None = Code.InvalidInput,
        code: Code | None = None,
        detail: object = None,
        frames: tuple[str, ...] = (),
        evidence: Sequence[object] = (),
        effect: Literal["", "none", "committed", "unknown"] = "",
        again_ms: int | None = None,
        repaired: Mapping[str, int] | None = None,
    ) -> None:
        self.again_ms = again_ms
        self.repaired = repaired
        self.effect = effect
        self.evidence = evidence
        self.frames = frames
        self.cause = cause
        self.code = code
        self.detail = detail
        super().__init__(message)
