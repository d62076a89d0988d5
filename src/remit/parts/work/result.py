"""A work result: what an executor says of a run (contract: executors, "WorkResult"). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import read_document, require_unknown, unreadable
from remit.parts.work.order import SCHEMA_VERSION, Int32
from remit.parts.work.references import IssueRef, RunId

Status = Literal["ok", "fail", "blocked"]
Verdict = Literal["pass", "fail", "n/a"]

RESULT_CODES: Final = frozenset(
    code.name
    for code in (
        Code.dep_unresolved,
        Code.test_failed,
        Code.ci_failed,
        Code.review_changes_requested,
        Code.env_unavailable,
        Code.permission_denied,
        Code.output_unparseable,
        Code.stale_run,
        Code.manual_intervention,
        Code.outcome_unknown,
    )
)
"""Why a run did not succeed."""
ABSENT: Final = "none"
"""Written where there is no pull request or no commit."""


class Changes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the work can be looked at."""

    pr: str = ""
    """The URL of a pull request."""
    commit: str = ""
    """The URL or the hash of a commit."""

    def __bool__(self) -> bool:
        return bool(self.pr or self.commit)


class Test(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evidence of one test, or that there is nothing to run."""

    __test__ = False  # of pytest: it looks for classes of this name
    command: str = ""
    result: Verdict
    evidence: str = ""
    """Where the output is: a file of the context pack, or a URL."""


class WorkResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an executor says of a run."""

    issue_ref: str
    run_id: str
    status: Status
    changes: Changes = Changes()
    tests: tuple[Test, ...] = ()
    summary: str = ""
    blocked_by: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    """Logs and reports: paths in the context pack, or URLs."""
    result_code: str = ""
    schema_version: Int32 = SCHEMA_VERSION
    unknown_json: str = ""
    """Fields that a newer version added, as a JSON object; they are written again with the rest."""
    unknown_fields: bytes = b""
    """The same of a result that came in binary."""

    def missing(self) -> Iterable[str]:
        """Return what the contract wants and the result does not say, as its fields are called."""
        if not self.changes:
            yield "changes"
        if not self.tests:
            yield "tests"
        if not self.summary:
            yield "summary"

    def tidied(self) -> WorkResult:
        """Return the result without the word for what is absent."""
        changes = Changes(pr=_present(self.changes.pr), commit=_present(self.changes.commit))
        return msgspec.structs.replace(self, changes=changes)

    def check(self, code: Code = Code.output_unparseable) -> None:
        """Raise UsageError with this code for a field that breaks the contract."""
        try:
            IssueRef.parse(self.issue_ref)
            RunId.parse(self.run_id)
            msgspec.json.encode(self)
        except UsageError as error:
            raise UsageError(error.message, code=code, remedy=error.remedy) from error
        except UnicodeEncodeError as error:  # half of a surrogate pair
            raise unreadable("work result", code, error) from error
        require_unknown(self.unknown_json, "work result", code)
        if self.result_code and self.result_code not in RESULT_CODES:
            reason = f"{self.result_code[:80]!r} is not a result_code"
            raise UsageError(reason, code=code, remedy="docs/work.md lists them.")

    def require_echo(self, issue_ref: str, run_id: str) -> None:
        """Raise UsageError (output_unparseable) unless the result names the issue and the run of its order."""
        if (self.issue_ref, self.run_id) != (issue_ref, run_id):
            reason = f"the result names {self.issue_ref} {self.run_id}, and its order {issue_ref} {run_id}"
            raise UsageError(reason, code=Code.output_unparseable, remedy="Repeat both as the order gives them.")


def read_result(data: bytes) -> WorkResult:
    """Read a result from JSON. Raise UsageError (output_unparseable)."""
    result = read_document(data, WorkResult, "work result", Code.output_unparseable).tidied()
    result.check()
    return result


def _present(text: str) -> str:
    return "" if text.strip().lower() == ABSENT else text.strip()
