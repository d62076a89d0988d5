"""Invoke: the provider, within the deadline. The only place that calls one (rule 1)."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.codes import Code
from remit.errors import ProviderError
from remit.gateway.call import Call, Proceed
from remit.gateway.context import context_of
from remit.gateway.outcome import Outcome, failed
from remit.gateway.result import words
from remit.redact import mask

if TYPE_CHECKING:
    from remit.gateway.services import Services

_log: Final = logging.getLogger("remit.gateway")

_UNAVAILABLE: Final = frozenset({Code.ProviderClosed, Code.SpawnFailed, Code.ConnectionError})
_IN_DOUBT: Final = frozenset({Code.Timeout, Code.ConnectionError, Code.NetworkError, Code.BadGateway})
"""Causes after which nobody knows whether the tool did what it was asked to (rule 3)."""
_OK: Final = Outcome(status="ok")


class _Failure(NamedTuple):
    """What an exception means (contract: tickets, "Codes")."""

    code: Code
    cause: Code | None
    why: str
    doubt: bool = False
    """Whether the tool may have done what it was asked to all the same."""


class Invoke:
    """Calls the provider and turns whatever happens into an outcome."""

    def __init__(self, services: Services) -> None:
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:  # noqa: ARG002 - nothing comes after it
        """Set `duration_us`, and `result` where the provider answered.

        Cancellation by the caller passes through, whatever the provider makes of it.
        """
        limit = call.tool.meta.timeout_ms / 1000
        asked = call.request.timeout_s
        timeout = limit if asked is None else min(limit, asked)  # only stricter (rule 8)
        context = context_of(call, timeout_s=timeout, now=self._clock.now())
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        outcome = _OK
        began = self._clock.monotonic()
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                call.result = await call.tool.provider.invoke(call.tool.meta.name, call.args, context)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if task is not None and (task.cancelling() > cancels or (_cancelled(error) and cancels)):
                raise asyncio.CancelledError from error
            why = f"no answer within {timeout:g} s" if deadline.expired() else ""
            outcome = self._failed(call, error, why)
        call.duration_us = int((self._clock.monotonic() - began) * 1_000_000)
        if outcome is _OK and task is not None and task.cancelling() > cancels:
            # The provider answered instead of stopping: the answer is recorded, then the caller is cancelled after all.
            task.uncancel()
            task.cancel()
        return outcome

    def _failed(self, call: Call, error: BaseException, late: str) -> Outcome:
        meta = call.tool.meta
        if late:
            failure = _Failure(Code.TOOL_TIMEOUT, Code.Timeout, late, doubt=True)
        else:
            failure = _failure(error)
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("%s raised: %s", meta.name, mask("".join(traceback.format_exception(error))))
        uncertain = failure.doubt and not meta.repeatable
        remedy = "Look at the reason; the same call will fail again."
        if uncertain:
            remedy = "It may have happened: find out before it is done again."
        elif failure.code.retryable:
            remedy = "Try again."
        why = f"{meta.name}: {failure.why}"
        return failed(failure.code, why, remedy, cause=failure.cause, uncertain=uncertain)


def _cancelled(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError)


def _failure(error: BaseException) -> _Failure:
    if isinstance(error, ProviderError):
        return _provider_failure(error)
    if isinstance(error, TimeoutError):
        return _Failure(Code.TOOL_TIMEOUT, Code.Timeout, words(error), doubt=True)
    if isinstance(error, ConnectionError):
        return _Failure(Code.TOOL_UNAVAILABLE, Code.ConnectionError, words(error), doubt=True)
    if _cancelled(error):
        return _Failure(Code.TOOL_UNAVAILABLE, None, "the provider gave the call up", doubt=True)
    return _Failure(Code.TOOL_EXEC_FAILED, None, words(error))


def _provider_failure(error: ProviderError) -> _Failure:
    cause, code = getattr(error, "cause", None), getattr(error, "code", None)
    why = words(error).removeprefix("ProviderError: ")
    if not isinstance(cause, Code):
        cause = None
    if isinstance(code, Code) and code.status in {"blocked", "failed"}:
        doubt = code in {Code.TOOL_TIMEOUT, Code.TOOL_UNAVAILABLE} and cause in {None, *_IN_DOUBT}
        return _Failure(code, cause, why, doubt)
    if cause is Code.Timeout:
        return _Failure(Code.TOOL_TIMEOUT, cause, why, doubt=True)
    code = Code.TOOL_UNAVAILABLE if cause in _UNAVAILABLE else Code.TOOL_EXEC_FAILED
    return _Failure(code, cause, why, cause in _IN_DOUBT)
