"""The text form of a result: a header of `Key: Value` lines, an empty line, and a body that is not parsed. Pure.

IssueRef: org/contracts#123
RunId: 2026-02-14-backend-0003
Status: ok
PR: https://git.example/org/backend/pull/45
Commit: none
Tests: go test ./... => pass

I updated the handler to use the new contracts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import MAX_DOCUMENT
from remit.parts.work.references import RunId
from remit.parts.work.result import ABSENT, Changes, Test, WorkResult

KEYS: Final = {
    "issueref": "IssueRef",
    "runid": "RunId",
    "status": "Status",
    "pr": "PR",
    "commit": "Commit",
    "tests": "Tests",
    "evidence": "Evidence",
    "summary": "Summary",
    "blockedby": "BlockedBy",
    "questions": "Questions",
    "resultcode": "ResultCode",
}
"""The keys of the header, by how they are recognised: in any case, with `_`, `-` or spaces."""
ANCHORS: Final = ("IssueRef", "RunId", "Status")
"""Keys without which a result belongs to no run."""
_ARROW: Final = "=>"
_NOT_RUN: Final = "n/a"
_LINE: Final = 4_000
_BY_HAND: Final = "Handed in by hand."


class Envelope(msgspec.Struct, frozen=True):
    """The header's values by key, and the body."""

    header: dict[str, list[str]]
    body: str

    def value(self, key: str) -> str:
        """Return the first value of a key; empty for `none`, and for a key that is not there."""
        return next((text for text in self.header.get(key, ()) if text.lower() != ABSENT), "")

    @property
    def missing(self) -> tuple[str, ...]:
        """The keys that a result needs and this one lacks; either of `PR` and `Commit` will do."""
        lacking = [key for key in (*ANCHORS, "Tests") if not self.value(key)]
        return (*lacking, *(() if self.value("PR") or self.value("Commit") else ("PR or Commit",)))


def open_envelope(data: bytes) -> Envelope:
    """Split a text into header and body. Raise UsageError (output_unparseable)."""
    if len(data) > MAX_DOCUMENT:
        raise _unparseable(f"it has {len(data):,} bytes; {MAX_DOCUMENT:,} are the most")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    head, _, body = text.lstrip("\n").partition("\n\n")
    header: dict[str, list[str]] = {}
    for line in head.splitlines():
        name, colon, value = line.partition(":")
        key = KEYS.get(name.strip().lower().replace("_", "").replace("-", "").replace(" ", ""))
        if colon and key:
            header.setdefault(key, []).append(value.strip()[:_LINE])
    return Envelope(header, body)


def read_envelope(data: bytes) -> WorkResult:
    """Read a result from its text form. Raise UsageError (output_unparseable), which names missing keys."""
    envelope = open_envelope(data)
    absent = [key for key in ANCHORS if not envelope.value(key)]
    if absent:
        raise _unparseable(f"its header lacks {', '.join(absent)}")
    values: dict[str, Any] = {
        "issue_ref": envelope.value("IssueRef"),
        "run_id": envelope.value("RunId"),
        "status": envelope.value("Status").lower(),
        "changes": Changes(pr=envelope.value("PR"), commit=envelope.value("Commit")),
        "tests": tuple(_tests(envelope)),
        "summary": envelope.value("Summary") or _first_line(envelope.body),
        "blocked_by": _listed(envelope.value("BlockedBy")),
        "questions": tuple(text for text in envelope.header.get("Questions", ()) if text.lower() != ABSENT),
        "result_code": envelope.value("ResultCode"),
    }
    try:
        result = msgspec.convert(values, WorkResult)
    except msgspec.ValidationError as error:
        raise _unparseable(str(error)) from error
    result.check()
    return result


def write_envelope(result: WorkResult, body: str = "") -> bytes:
    """Return the text form of a result."""
    rows = [
        ("IssueRef", result.issue_ref),
        ("RunId", result.run_id),
        ("Status", result.status),
        ("PR", result.changes.pr or ABSENT),
        ("Commit", result.changes.commit or ABSENT),
        *_test_rows(result.tests),
        *([("Summary", _first_line(result.summary))] if result.summary else []),
        *([("BlockedBy", ", ".join(result.blocked_by))] if result.blocked_by else []),
        *(("Questions", _first_line(question)) for question in result.questions),
        *([("ResultCode", result.result_code)] if result.result_code else []),
    ]
    header = "\n".join(f"{key}: {value}" for key, value in rows)
    return f"{header}\n\n{body}".encode("utf-8", "replace")


def said_by_hand(
    issue: str,
    run: str,
    status: str,
    pr: str,
    commit: str,
    tests: Collection[str],
    summary: str,
    blocked_by: Iterable[str] = (),
) -> bytes:
    """Return the text form of what a person says of a run, each of `tests` such as `make test => pass`."""
    rows = [
        *(("IssueRef", issue), ("RunId", run), ("Status", status), ("PR", pr or ABSENT), ("Commit", commit or ABSENT)),
        *(("Tests", test) for test in tests or (_NOT_RUN,)),
        *(("Summary", summary or _BY_HAND), ("BlockedBy", ", ".join(blocked_by) or ABSENT)),
    ]
    return "\n".join(f"{key}: {' '.join(value.split())}" for key, value in rows).encode(errors="replace")


def belongs_to_a_run(data: bytes) -> bool:
    """Return whether a text that could not be read still names its run."""
    try:
        RunId.parse(open_envelope(data).value("RunId"))
    except UsageError:
        return False
    return True


def _tests(envelope: Envelope) -> Iterator[Test]:
    evidence = envelope.header.get("Evidence", [])
    for place, text in enumerate(envelope.header.get("Tests", [])):
        shown = evidence[place] if place < len(evidence) and evidence[place].lower() != ABSENT else ""
        command, arrow, verdict = (part.strip() for part in text.rpartition(_ARROW))
        if text.lower() in {_NOT_RUN, ABSENT, ""}:
            yield Test(result="n/a", evidence=shown)
        elif not arrow or verdict.lower() not in {"pass", "fail", _NOT_RUN}:
            yield Test(command=text, result="n/a", evidence=shown)
        else:
            yield msgspec.convert({"command": command, "result": verdict.lower(), "evidence": shown}, Test)


def _test_rows(tests: tuple[Test, ...]) -> Iterator[tuple[str, str]]:
    for test in tests:
        yield "Tests", f"{_first_line(test.command)} {_ARROW} {test.result}" if test.command else test.result
        yield "Evidence", _first_line(test.evidence) or ABSENT
    if not tests:
        yield "Tests", _NOT_RUN


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_LINE]


def _unparseable(reason: str) -> UsageError:
    remedy = "Write the keys IssueRef, RunId, Status, PR or Commit, and Tests, one a line, then an empty line."
    return UsageError(
        f"the text of the work result cannot be read: {reason}", code=Code.output_unparseable, remedy=remedy
    )
