"""The result of a run, judged by what the adapter saw. The word of the executor may lower it, and never raises it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from remit.codes import Code
from remit.record.heads import SESSION
from remit.work.executors.leavings import shown
from remit.work.executors.port import Ending, Turn
from remit.work.executors.publication import Published
from remit.work.executors.worktree import Settled
from remit.work.order import WorkOrder
from remit.work.result import Changes, Status, Test, WorkResult
from remit.work.workflow import Mode

_MODES: Final[Mapping[Mode, str]] = {
    "governed": "governed: each passed the gate",
    "ask": "asked about, as far as it asked",
    "free": "free: none passed the gate",
}


class Facts(NamedTuple):
    """What the adapter saw of a run."""

    ending: Ending
    base: str
    """The commit that the work began at."""
    head: str
    """The commit that stood there when all had ended."""
    commits: bool
    """Whether the executor was to change something."""
    tests: tuple[Test, ...] = ()
    """The acceptance commands, as the adapter ran them."""
    forbidden: tuple[str, ...] = ()
    """Paths that changed and may not."""
    interfaces: tuple[str, ...] = ()
    """Interfaces that changed though the order names no contracts."""
    strayed: bool = False
    """Whether what stands there does not follow what the work began at."""
    claim: WorkResult | None = None
    """The result that the executor left."""
    published: Published = Published()
    settled: Settled = Settled((), ())
    """The rest that the program left, beside its commit."""


class Fault(NamedTuple):
    """Why a run did not succeed."""

    status: Status
    code: Code | None
    why: str


def judge(order: WorkOrder, facts: Facts) -> WorkResult:
    """Return the result of a run."""
    fault = next(_faults(facts), None)
    claim = facts.claim
    return WorkResult(
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        status=fault.status if fault is not None else "ok",
        changes=_changes(facts),
        tests=facts.tests or (_own_test(facts),),
        summary=_summary(facts, fault),
        blocked_by=claim.blocked_by if claim is not None else (),
        questions=claim.questions if claim is not None else (),
        artifacts=(*_files(claim), *_session(facts)),
        result_code=fault.code.name if fault is not None and fault.code is not None else "",
    )


def _summary(facts: Facts, fault: Fault | None) -> str:
    claimed = facts.claim.summary if facts.claim is not None else ""
    said = ": ".join(part for part in (fault.why if fault is not None else "", claimed) if part) or _said(facts)
    problem, (left_out, gone) = facts.published.problem, facts.settled
    more = (
        f" It is not shown as a pull request: {problem}" if problem else "",
        f" Left out of the commit: {shown(left_out)}." if left_out else "",
        f" It left, and Remit cleared: {', '.join(gone)}." if gone else "",
    )
    end = "." if any(more) and not said.endswith((".", "!", "?")) else ""
    return f"{said}{end}{''.join(more)}"


def _faults(facts: Facts) -> Iterator[Fault]:
    """Return what speaks against a run, the weightiest first."""
    ending, claim = facts.ending, facts.claim
    turn = ending.turn or Turn()
    yield from _cut_short(ending)
    if turn.fault:
        yield Fault("fail", None, f"it failed: {turn.fault}")
    if ending.stopped or not turn.terminal:
        yield Fault("fail", Code.outcome_unknown, "it ended without a word that its work is over")
    yield from _breaches(facts, turn.denied)
    if any(test.result == "fail" for test in facts.tests):
        yield Fault("fail", Code.test_failed, "the acceptance commands do not pass")
    if claim is not None and claim.status != "ok":
        code = Code.__members__.get(claim.result_code)
        if code is Code.env_unavailable:  # such a run is not counted as failed: only what was seen says so
            yield Fault(claim.status, None, f"it says so itself, as {code.name}")
        yield Fault(claim.status, code, "it says so itself")
    if facts.head == facts.base and any(not each.standing for each in facts.settled.left_out):
        yield Fault("blocked", Code.manual_intervention, "a rule leaves out of the commit whatever it did")
    if ending.exit_code != 0:
        code = Code.test_failed if not facts.commits else None
        yield Fault("fail", code, f"it ended with exit code {ending.exit_code}")


def _cut_short(ending: Ending) -> Iterator[Fault]:
    """Return why a program did not come to its own end."""
    if ending.error:
        yield Fault("fail", Code.env_unavailable, f"it could not be started: {ending.error}")
    if ending.timed_out:
        yield Fault("fail", Code.outcome_unknown, f"it did not end within {ending.timeout:g} s")
    elif ending.stopped and ending.exit_code is None:  # the work itself has not failed
        yield Fault("fail", Code.env_unavailable, "it ended with the process that ran it")


def _breaches(facts: Facts, denied: int) -> Iterator[Fault]:
    """Return what a run did against its constraints."""
    if facts.forbidden:
        named = ", ".join(facts.forbidden[:5])
        yield Fault("fail", Code.permission_denied, f"it changed what it may not: {named}")
    if facts.strayed:
        yield Fault("fail", Code.permission_denied, "its commit does not follow the one that it was to begin at")
    if denied:
        yield Fault("fail", Code.permission_denied, f"{denied} of its calls were refused")
    if facts.interfaces:
        named = ", ".join(facts.interfaces[:5])
        yield Fault("blocked", Code.manual_intervention, f"the order names no contracts, and it changed {named}")


def _changes(facts: Facts) -> Changes:
    """Return the commit and the pull request that were seen. A test suite leaves what it tested."""
    return Changes(pr=facts.published.url, commit=facts.head if facts.head != facts.base or not facts.commits else "")


def _own_test(facts: Facts) -> Test:
    """Return the run as its own evidence, if it was a test; else that there is none."""
    if facts.commits:
        return Test(result="n/a")
    ending = facts.ending
    command = " ".join((ending.program, *ending.args))
    return Test(command=command, result="pass" if ending.passed else "fail", evidence="stdout.log")


def _said(facts: Facts) -> str:
    if not facts.commits:
        return "It passed."
    did = "It committed its work" if facts.head != facts.base else "It changed nothing"
    did = "It committed nothing" if facts.head == facts.base and facts.settled.left_out else did
    turn = facts.ending.turn
    return f"{did}." if turn is None else f"{did}. Its calls were {_MODES[turn.mode]}."


def _files(claim: WorkResult | None) -> tuple[str, ...]:
    """Return what the executor names for people to look at; which sessions it had, only the adapter knows."""
    if claim is None:
        return ()
    named = (*claim.artifacts, *([claim.changes.pr] if claim.changes.pr else []))
    return tuple(name for name in named if not name.startswith(f"{SESSION}/"))


def _session(facts: Facts) -> tuple[str, ...]:
    """Return the sessions in which an agent's calls, and its questions, are recorded."""
    turn = facts.ending.turn or Turn()
    return tuple(f"{SESSION}/{name}" for name in (turn.trace, turn.asked) if name)
