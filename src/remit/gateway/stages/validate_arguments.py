"""ValidateArguments: the arguments against the tool's input schema (boundary call_args, direction internal)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from remit.canonical import canonical
from remit.codes import Code
from remit.errors import NotCanonicalError
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused
from remit.gateway.result import words
from remit.gateway.schema_gate import CALL_ARGS
from remit.large import LARGE

if TYPE_CHECKING:
    from remit.gateway.services import Services


class ValidateArguments:
    """Checks arguments in `strict` mode, reports them in `warn`, lets them be in `off`; it never changes them."""

    def __init__(self, services: Services) -> None:
        self._gate = services.schema_gate
        self._max_bytes = services.limits.max_value_bytes

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Refuse with INVALID_TOOL_ARGS or INVALID_BUDGET, or set `misfit`."""
        call.stage = "validate_arguments"
        if not call.arguments_hash:
            return _unfit(call)
        if len(call.encoded) > self._max_bytes:
            return _refuse(call, f"the arguments have {len(call.encoded)} bytes; the limit is {self._max_bytes}")
        timeout: object = call.request.timeout_s
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            return refused(Code.INVALID_BUDGET, f"a timeout of {timeout} s is not positive", "Give a positive timeout.")
        tool = call.tool
        if len(call.encoded) > LARGE:  # in a thread, so that it holds no one else up
            call.misfit = await asyncio.to_thread(self._gate.check, CALL_ARGS, tool.input, call.args, tool.meta.name)
        else:
            call.misfit = self._gate.check(CALL_ARGS, tool.input, call.args, tool.meta.name)
        if call.misfit is not None and call.misfit.rejected:
            return _refuse(call, call.misfit.text)
        return await proceed(call)


def _unfit(call: Call) -> Outcome:
    """Refuse arguments that have no canonical form, and say which of them has none."""
    reason, remedy = "they changed meanwhile", "Give the call a copy."
    try:
        canonical(call.args)
    except NotCanonicalError as error:
        reason, remedy = error.message, error.remedy
    except (TypeError, ValueError, OverflowError, RecursionError, RuntimeError) as error:
        reason, remedy = words(error), ""
    text = f"the arguments contain a value that JSON cannot represent: {reason}"
    return _refuse(call, text, remedy)


def _refuse(call: Call, reason: str, remedy: str = "") -> Outcome:
    remedy = remedy or f"See the tool's schema: `remit tools {call.tool.meta.name}`."
    return refused(Code.INVALID_TOOL_ARGS, f"{call.tool.meta.name}: {reason}", remedy)
