"""TakeLimits: the call takes its part of what rules allow so often, or up to a sum, just before it is announced.

Queue: a tool that runs only so often at once is waited for before anything is announced.

TakeTurn: a tool or model with a limit in the settings is waited for, over all processes, or the call is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.clock import SECOND
from remit.codes import Code
from remit.gateway.call import Call, Proceed, outrun
from remit.gateway.outcome import Outcome, refused
from remit.gateway.takings import LimitUnprovenError
from remit.gateway.turnstiles import LimitCaller
from remit.ids import new_id

if TYPE_CHECKING:
    import asyncio

    from remit.gateway.services import Services
    from remit.gateway.turns import End, Obstacle
    from remit.gateway.turnstiles import Turnstile, Turnstiles
    from remit.settings.sections.calls import CallLimit


class TakeLimits:
    """Lets no two calls take the last one."""

    def __init__(self, services: Services) -> None:
        self._takings = services.takings
        self._confirmations = services.confirmations

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Take, or set `outrun`: then policy decides again, since the limit is reached now.

        Refuse with the code of what is wrong if what was taken before cannot be proven.
        """
        call.stage = "take_limits"
        return self._take(call, proceed) if call.parts else proceed(call)

    async def _take(self, call: Call, proceed: Proceed) -> Outcome:
        try:
            taken = await self._takings.take(call.parts)
        except LimitUnprovenError as error:
            return error.outcome
        if taken:
            return await proceed(call)
        limits = ", ".join(f"{part.taken.rule_id} ({part.limit})" for part in call.parts)
        return outrun(call, self._confirmations, f"other calls used up the limit: {limits}")


class Queue:
    """Lets calls in as there is room, in the order they came. The slots are the provider's."""

    def __init__(self, services: Services) -> None:
        pass

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Wait for a slot; policy decides again on a call that had to.

        A call that ends here is not announced: it is never in doubt, and no deadline runs yet.
        """
        call.stage = "queue"
        slots = call.tool.slots
        return proceed(call) if slots is None or call.admitted else _in(slots, call, proceed)


async def _in(slots: asyncio.Semaphore, call: Call, proceed: Proceed) -> Outcome:
    waits = slots.locked()
    async with slots:
        if not waits:
            return await proceed(call)
        call.admitted = True  # what allowed the call may have ended meanwhile; it keeps its place
        try:
            return await call.decide_again()
        finally:
            call.admitted = False


_UNREACHABLE: Final = frozenset(
    {Code.TOOL_UNAVAILABLE, Code.TOOL_TIMEOUT, Code.MODEL_OVERLOADED, Code.MODEL_FAILED, Code.MODEL_TIMEOUT}
)
_ANSWER_S: Final = 600.0
"""Seconds after which the place of a model call whose process died is free; a call may take longer."""
_MOMENT: Final = SECOND // 10
"""Microseconds; a call that waited longer is decided again."""


class TakeTurn:
    """Lets calls in as often, and as many at once, as the settings say.

    It stands before the queue for a slot of this process: a call that waits here holds no slot.
    """

    def __init__(self, services: Services) -> None:
        self._turnstiles = services.turnstiles
        self._clock = services.journal.clock

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Refuse with RATE_LIMITED, CONCURRENCY_LIMITED or CIRCUIT_OPEN; policy decides again on a call that waited.

        To a job the refusal says when its turn comes.

        A call that ends before it is announced does not count.
        """
        call.stage = "take_turn"
        turnstiles = self._turnstiles
        if turnstiles is None or call.turned:
            return proceed(call)
        names = _names(call)
        if not (patterns := turnstiles.patterns(*names)):
            return proceed(call)
        return self._pass(turnstiles, patterns, names[-1], call, proceed)

    async def _pass(
        self, turnstiles: Turnstiles, patterns: tuple[str, ...], name: str, call: Call, proceed: Proceed
    ) -> Outcome:
        request, began, turn = call.request, self._clock.now(), new_id("turn")
        lasts = call.timeout_s if call.asking is None else min(call.timeout_s, _ANSWER_S)
        labels = request.job.labels if request.job is not None else {}
        caller = LimitCaller(name, request.principal, request.recipe, labels)
        passed: list[Turnstile] = []
        end: End = "unknown"  # as for a call that is cancelled
        try:
            for pattern in patterns:
                turnstile = turnstiles.turnstile(pattern, caller)
                share = caller.value(turnstile.limit.share)
                if (obstacle := await turnstile.enter(turn, share, lasts, request.line)) is not None:
                    return self._refused(name, pattern, turnstile.limit, obstacle, lines=request.line is not None)
                passed.append(turnstile)
            call.turned = True
            waited = self._clock.now() - began > _MOMENT
            outcome = await (call.decide_again() if waited else proceed(call))
            end = "unreachable" if outcome.code in _UNREACHABLE else "answered"
            return outcome
        finally:
            call.turned = False
            for turnstile in passed:
                await turnstile.leave(turn, end if call.invocation_id else "unused")

    def _refused(self, name: str, pattern: str, limit: CallLimit, obstacle: Obstacle, *, lines: bool) -> Outcome:
        after = obstacle.at - self._clock.now()
        wait = max(1, -(-after // SECOND))
        match obstacle.code:
            case Code.RATE_LIMITED:
                clause = f"allows {limit.rate}"
            case Code.CONCURRENCY_LIMITED:
                clause, wait = f"allows {limit.concurrency} at once", 1
            case _:
                clause = f"leaves it alone after {limit.breaker} failures to reach it in a row"
        reason = f'{name}: limits."{pattern}" {clause}'
        if lines:
            return replace(refused(obstacle.code, reason), again_ms=max(0, -(-after // 1_000)), turn_at=obstacle.place)
        return replace(refused(obstacle.code, reason, f"Try again in {wait} s."), again_ms=wait * 1_000)


def _names(call: Call) -> tuple[str, ...]:
    """The names under which limits know what is called: of a model, its provider's and its own."""
    name = call.tool.meta.name
    return (name,) if call.asking is None else (name, f"{name}.{call.asking.model.name.model}")
