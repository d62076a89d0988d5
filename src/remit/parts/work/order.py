"""A work order: what an executor is asked to do (contract: executors, "WorkOrder"). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import read_document, require_unknown
from remit.parts.work.references import IssueRef, RunId, require_role

SCHEMA_VERSION: Final = 1
"""Of orders and results. Fields are only added, so a worker that knows an older version reads a newer order."""
NO_CONTRACTS: Final = "none"
Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""As large as protobuf's int32."""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that is run for its verdict: exit code 0 is a pass."""

    args: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    timeout_seconds: Int32 = 600
    """Seconds that it may take."""


class Constraints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the work must keep to. The control plane looks whether it did."""

    forbidden_paths: tuple[str, ...] = ()
    """Patterns of paths that may not change, such as `migrations/**`."""
    interface_paths: tuple[str, ...] = ()
    """Patterns of paths that other work relies on: they change only if the order names its contracts."""
    commands: tuple[Command, ...] = ()
    """Acceptance: the adapter runs each of them on what the run left."""
    target_branch: str = ""
    """The branch that the work starts from and is meant for; empty: where the repository stands."""
    notes: tuple[str, ...] = ()
    """Rules for the worker, in words."""


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an executor is asked to do, for one run."""

    issue_ref: str
    run_id: str
    role: str
    repo_dir: str
    """The folder to work in: the run's own worktree."""
    spec_ref: str = ""
    spec_snapshot: str = ""
    """The specification as it was when the run began, in Markdown."""
    contracts_ref: str = NO_CONTRACTS
    constraints: Constraints = Constraints()
    depends_on: tuple[str, ...] = ()
    """The issues that this one builds on."""
    lease_ttl: Int32 = 0
    """Seconds that the run may take; 0: as long as its executor may."""
    schema_version: Int32 = SCHEMA_VERSION
    unknown_json: str = ""
    """Fields that a newer version added, as a JSON object; they are written again with the rest."""
    unknown_fields: bytes = b""
    """The same of an order that came in binary."""

    @property
    def issue(self) -> IssueRef:
        """The issue."""
        return IssueRef.parse(self.issue_ref)

    @property
    def run(self) -> RunId:
        """The run."""
        return RunId.parse(self.run_id)

    def check(self) -> None:
        """Raise UsageError (WORK_INVALID) for a field that breaks the contract."""
        require_unknown(self.unknown_json, "work order", Code.WORK_INVALID)
        role = require_role(self.role)
        if self.run.role != role:
            raise UsageError(f"{self.run_id} is no run of the role {role}", code=Code.WORK_INVALID)
        _ = [IssueRef.parse(reference) for reference in (self.issue_ref, *self.depends_on)]
        if not self.repo_dir:
            raise UsageError("a work order names no folder", code=Code.WORK_INVALID, remedy="Give repo_dir.")
        if any(not command.args for command in self.constraints.commands):
            raise UsageError("a command of the constraints names no program", code=Code.WORK_INVALID)

    def warnings(self) -> Iterable[str]:
        """Return what a person may want to fix before the work begins."""
        if not (self.spec_ref or self.spec_snapshot):
            yield "The order has neither spec_ref nor spec_snapshot: the executor has the title alone to go by."
        if not self.contracts_ref:
            yield 'The order names no contracts; write contracts_ref = "none" where no interface is touched.'


def read_order(data: bytes) -> WorkOrder:
    """Read an order from JSON. Raise UsageError (WORK_INVALID)."""
    order = read_document(data, WorkOrder, "work order", Code.WORK_INVALID)
    order.check()
    return order
