"""Names of work: an issue, an event of it, and a run on it (contract: executors, "Identity"). Pure."""

from __future__ import annotations

import re
from datetime import date
from typing import Final
from urllib.parse import quote

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.regex import regex

MAX_REFERENCE: Final = 512
"""Characters of an IssueRef."""
_SEGMENT: Final = regex(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?", re.ASCII)
_NUMBER: Final = regex(r"[1-9][0-9]{0,9}", re.ASCII)
_EVENT: Final = regex(r"(?P<issue>local#[1-9][0-9]{0,9})/e(?P<number>[1-9][0-9]{0,9})", re.ASCII)
_RUN: Final = regex(r"(\d{4}-\d{2}-\d{2})-([a-z][a-z0-9-]*)-(\d{4,})", re.ASCII)
_ROLE: Final = regex(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_LOCAL: Final = "local"


class IssueRef(msgspec.Struct, frozen=True):
    """An issue: `owner/repo#n`, `group/…/project#iid` or `local#id`, written as a forge's users write it."""

    project: str
    """The path of the project; `local` for issues that are kept here."""
    number: int

    @classmethod
    def parse(cls, text: str) -> IssueRef:
        """Read a reference. Raise UsageError (WORK_INVALID) for any other form, such as a forge's internal id."""
        project, mark, number = text.partition("#")
        segments = project.split("/")
        named = all(_SEGMENT.fullmatch(segment) for segment in segments)
        if len(text) > MAX_REFERENCE or not (mark and named and _NUMBER.fullmatch(number)):
            raise _invalid(
                text, "is not the reference of an issue", "Write owner/repo#12, group/project#12 or local#12."
            )
        if len(segments) == 1 and project != _LOCAL:
            raise _invalid(text, "names no owner", "Write owner/repo#12; issues that are kept here are local#12.")
        return cls(project, int(number))

    @property
    def is_local(self) -> bool:
        """Return whether the issue is kept here, by no forge."""
        return self.project == _LOCAL

    @property
    def file_name(self) -> str:
        """The reference as one component of a path; no two have the same."""
        return quote(str(self), safe="")

    def __str__(self) -> str:
        return f"{self.project}#{self.number}"


class EventRef(msgspec.Struct, frozen=True):
    """An event of an issue that is kept here, such as `local#12/e34`."""

    issue: IssueRef
    number: int

    @classmethod
    def parse(cls, text: str) -> EventRef:
        """Read a reference. Raise UsageError (WORK_INVALID)."""
        match = _EVENT.fullmatch(text)
        if match is None:
            raise _invalid(text, "is not the reference of an event", "Write local#12/e34.")
        return cls(IssueRef.parse(match["issue"]), int(match["number"]))

    def __str__(self) -> str:
        return f"{self.issue}/e{self.number}"


class RunId(msgspec.Struct, frozen=True):
    """A run: `<YYYY-MM-DD>-<role>-<seq>`. It is unique within its issue alone."""

    day: str
    role: str
    sequence: str
    """The number of the run among those of its issue: four digits or more."""

    @classmethod
    def parse(cls, text: str) -> RunId:
        """Read an id. Raise UsageError (WORK_INVALID)."""
        match = _RUN.fullmatch(text) if len(text) <= MAX_REFERENCE else None
        if match is None:
            raise _invalid(text, "is not the id of a run", "Write it as 2026-02-14-backend-0001.")
        return cls(*match.groups())

    @classmethod
    def draw(cls, day: date, role: str, number: int) -> RunId:
        """Return the id of an issue's run of this number. Raise UsageError (WORK_INVALID) for the role."""
        return cls(day.isoformat(), require_role(role), f"{number:04}")

    def __str__(self) -> str:
        return f"{self.day}-{self.role}-{self.sequence}"


def require_role(role: str) -> str:
    """Return a role. Raise UsageError (WORK_INVALID) for a name that no RunId can carry."""
    if not _ROLE.fullmatch(role):
        raise _invalid(role, "is not a role", "Use lower-case letters, digits and `-`, a letter first.")
    return role


def _invalid(text: str, reason: str, remedy: str) -> UsageError:
    return UsageError(f"{text[:MAX_REFERENCE]!r} {reason}", code=Code.WORK_INVALID, remedy=remedy)
