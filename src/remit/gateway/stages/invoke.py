"""Invoke: the provider, within the deadline. The only place that calls one (rule 1).

Deadlines of running calls: one timer of the event loop for all of them, for a timer each costs more than a call.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.codes import NOTE, Code
from remit.errors import ProviderError
from remit.frames import frames_of
from remit.gateway.call import Call, Proceed
from remit.gateway.context import CallLog, context_of
from remit.gateway.outcome import LIMITED, Outcome, failed
from remit.gateway.result import words
from remit.journal.effects import FAILED, READS, UNHEARD, Effect, of_failure
from remit.redact import mask
from remit.tasks import own
from remit.tools.provider import ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.gateway.services import Services


class Deadline:
    """One call's; what it cancels with its task is told from a cancellation by the caller by counting."""

    __slots__ = ("began", "expired", "task", "when")

    def __init__(self, task: asyncio.Task[object], began: float, when: float) -> None:
        self.task = task
        self.began = began
        self.when = when
        self.expired = False
        """Whether the task was cancelled because time was up."""


class Deadlines:
    """Cancels tasks whose time is up."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, task: asyncio.Task[object], timeout_s: float) -> Deadline:
        """Cancel the task after `timeout_s`, unless `stop` comes first."""
        loop = task.get_loop()
        if loop is not self._loop:  # what another loop left behind can never happen any more
            self._loop, self._timer = loop, None
            self._running.clear()
        began = loop.time()
        deadline = Deadline(task, began, began + timeout_s)
        self._running.add(deadline)
        if self._timer is None or deadline.when < self._timer.when():
            self._arm(loop, deadline.when)
        return deadline

    def extend(self, deadline: Deadline, timeout_s: float, until: float) -> None:
        """Give the task `timeout_s` from now on, but not beyond `until`, on the loop's clock."""
        deadline.when = max(deadline.when, min(deadline.task.get_loop().time() + timeout_s, until))

    def stop(self, deadline: Deadline) -> None:
        """The task is done with what the deadline was for, or was cancelled by it."""
        self._running.discard(deadline)
        if deadline.expired:
            deadline.task.uncancel()

    def _arm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(when, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the calls whose time is over, in that order, and wait for the next of those that have not ended."""
        self._timer = None
        now = loop.time()
        for deadline in sorted((each for each in self._running if each.when <= now), key=lambda each: each.when):
            self._running.discard(deadline)
            deadline.expired = True
            deadline.task.cancel()
        if self._running:
            self._arm(loop, min(deadline.when for deadline in self._running))


_log: Final = logging.getLogger("remit.gateway")

_UNAVAILABLE: Final = frozenset({Code.ProviderClosed, Code.SpawnFailed, Code.ConnectionError})
_OK: Final = Outcome(status="ok")


class _Failure(NamedTuple):
    """The meaning of an exception (contract: tickets, "Codes")."""

    code: Code
    cause: Code | None
    reason: str
    doubt: bool = False
    """Whether the tool may have done what it was asked to all the same."""


class Invoke:
    """Calls the provider and turns whatever happens into an outcome."""

    def __init__(self, services: Services) -> None:
        self._catalog = services.catalog
        self._clock = services.journal.clock
        self._deadlines = Deadlines()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:  # noqa: ARG002 - nothing comes after it
        """Set `duration_us`, and `result` where the provider answered, or attached evidence to a failure.

        Cancellation by the caller passes through, whatever the provider makes of it.
        """
        call.stage = "invoke"
        task = asyncio.current_task()
        if task is None:
            msg = "a tool is called from a task"
            raise AssertionError(msg)
        timeout = call.timeout_s
        log = CallLog(call, task.get_loop())
        context = context_of(
            call,
            self._catalog,
            task.get_loop(),
            timeout_s=timeout,
            now=self._clock.now(),
            moves=lambda: self._deadlines.extend(deadline, timeout, deadline.began + call.longest_s),
            lines=log,
        )
        context = context if call.secrets is None else call.secrets.given_to(context)
        cancels, outcome, began = task.cancelling(), _OK, self._clock.monotonic()
        deadline = self._deadlines.start(task, timeout)
        try:
            meta = call.tool.meta
            result = await own(call.tool.provider.invoke(meta.name, call.args, context), task)
            call.result = result if call.secrets is None else await call.secrets.without(result)
        except BaseException as error:
            self._deadlines.stop(deadline)
            if isinstance(error, KeyboardInterrupt | GeneratorExit):
                raise
            if task.cancelling() > cancels or (cancels and isinstance(error, asyncio.CancelledError)):
                raise asyncio.CancelledError from error
            outcome = self._failed(call, error, f"no answer within {timeout:g} s" if deadline.expired else "")
        else:
            self._deadlines.stop(deadline)
            if task.cancelling() > cancels:
                # The provider answered instead of stopping: that is recorded, then the caller is cancelled after all.
                task.uncancel()
                task.cancel()
        call.duration_us = int((self._clock.monotonic() - began) * 1_000_000)
        await log.end()
        return outcome

    def _failed(self, call: Call, error: BaseException, late: str) -> Outcome:
        meta = call.tool.meta
        if late:
            failure = _Failure(Code.TOOL_TIMEOUT, Code.Timeout, late, doubt=True)
        else:
            failure = _failure(error)
            text: Callable[[str], str] = str if call.secrets is None else call.secrets.text
            failure = failure._replace(reason=text(failure.reason))
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("%s raised: %s", meta.name, mask(text("".join(traceback.format_exception(error)))))
        unknown = failure.code is Code.OUTCOME_UNKNOWN and meta.side_effects
        reported = getattr(error, "effect", "") if isinstance(error, ProviderError) and not late else ""
        effect = _effect(failure, reported) if meta.side_effects else READS
        uncertain = effect.known == "unknown" and failure.doubt and (unknown or not meta.repeatable)
        remedy = "See the reason."
        if uncertain:
            remedy = "The call may have taken effect: find out before you repeat it."
        elif failure.code.retryable and failure.cause is not Code.SpawnFailed:
            remedy = "Try again."
        elif failure.code.retryable or (failure.cause is not None and failure.cause.retryable):
            remedy = "See the reason, then try again."
        reason = f"{meta.name}: {failure.reason}"
        # A subclass may not have called ProviderError's own constructor.
        evidence = getattr(error, "evidence", ()) if isinstance(error, ProviderError) and not late else ()
        repaired = getattr(error, "repaired", None) if isinstance(error, ProviderError) and not late else None
        result = ToolResult(None, tuple(evidence), repaired) if evidence or repaired else None
        call.result = result if result is None or call.secrets is None else call.secrets.result(result)
        detail = getattr(error, "detail", None) if isinstance(error, ProviderError) and not late else None
        detail = detail if call.secrets is None else call.secrets.value(detail)
        frames = getattr(error, "frames", ()) if isinstance(error, ProviderError) else frames_of(error)
        frames = () if late else frames
        again_ms = getattr(error, "again_ms", None) if failure.code in LIMITED else None
        return failed(
            failure.code,
            reason,
            remedy,
            cause=failure.cause,
            uncertain=uncertain,
            detail=detail,
            frames=frames,
            effect=effect,
            again_ms=again_ms,
        )


def _effect(failure: _Failure, declared: object) -> Effect:
    """Return what is known of the effect: as the provider says, or as its failure does."""
    if declared in {"none", "committed"}:
        return Effect("none" if declared == "none" else "committed", "tool")
    known = of_failure(failure.code.name, failure.cause.name if failure.cause else "", unheard=failure.doubt)
    return FAILED if declared == "unknown" and not failure.doubt else known


def _failure(error: BaseException) -> _Failure:
    if isinstance(error, ProviderError):
        return _provider_failure(error)
    if isinstance(error, TimeoutError):
        return _Failure(Code.TOOL_TIMEOUT, Code.Timeout, words(error), doubt=True)
    if isinstance(error, ConnectionError):
        return _Failure(Code.TOOL_UNAVAILABLE, Code.ConnectionError, words(error), doubt=True)
    if isinstance(error, asyncio.CancelledError):
        return _Failure(Code.TOOL_UNAVAILABLE, None, "the provider gave up the call", doubt=True)
    return _Failure(Code.TOOL_EXEC_FAILED, None, words(error))


def _provider_failure(error: ProviderError) -> _Failure:
    cause, code = getattr(error, "cause", None), getattr(error, "code", None)
    reason = words(error).removeprefix(f"{type(error).__name__}: ")
    if not isinstance(cause, Code):
        cause = None
    if isinstance(code, Code) and code.status == NOTE and cause in {None, Code.InvalidInput}:
        cause = code  # what the provider calls it; the outcome's own code is one of the contract's
    if isinstance(code, Code) and code.status in {"blocked", "failed"}:
        unheard = code in {Code.TOOL_TIMEOUT, Code.TOOL_UNAVAILABLE} and (cause is None or cause.name in UNHEARD)
        doubt = unheard or code is Code.OUTCOME_UNKNOWN
        return _Failure(code, cause, reason, doubt)
    if cause is Code.Timeout:
        return _Failure(Code.TOOL_TIMEOUT, cause, reason, doubt=True)
    code = Code.TOOL_UNAVAILABLE if cause in _UNAVAILABLE else Code.TOOL_EXEC_FAILED
    return _Failure(code, cause, reason, cause is not None and cause.name in UNHEARD)
