"""Admit: the arguments against the tool's input schema (boundary call_args, direction internal)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome, refused
from remit.gateway.result import problem_text

if TYPE_CHECKING:
    from remit.gateway.services import Services

_log: Final = logging.getLogger("remit.gateway")


class Admit:
    """Checks arguments in `strict` mode, reports them in `warn`, lets them be in `off`; it never changes them."""

    def __init__(self, services: Services) -> None:
        self._mode = services.limits.schema_gate
        self._max_bytes = services.limits.max_value_bytes

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Refuse with INVALID_TOOL_ARGS or INVALID_BUDGET."""
        if not call.arguments_hash:
            return _refuse(call, "the arguments hold something JSON cannot: NaN, a huge integer or an unknown type")
        if len(call.encoded) > self._max_bytes:
            return _refuse(call, f"the arguments take {len(call.encoded)} bytes; the limit is {self._max_bytes}")
        timeout: object = call.request.timeout_s
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
            return refused(Code.INVALID_BUDGET, f"a timeout of {timeout} s is not positive", "Give a positive timeout.")
        if self._mode != "off":
            problems = call.tool.input.problems(call.args)
            if problems:
                text = problem_text(problems)
                if self._mode == "strict":
                    return _refuse(call, text)
                _log.warning("schema_gate_warn tool=%s boundary=call_args: %s", call.tool.meta.name, text)
        return await proceed(call)


def _refuse(call: Call, why: str) -> Outcome:
    remedy = f"See the tool's schema: `remit tools {call.tool.meta.name}`."
    return refused(Code.INVALID_TOOL_ARGS, f"{call.tool.meta.name}: {why}", remedy)
