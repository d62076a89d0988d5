"""Runs one function tool in a process of its own: `python -m remit.tools.alone MODULE NAME`.

Arguments come as JSON on stdin; the answer goes to stdout as JSON. What the function prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from operator import attrgetter
from typing import Any

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import NotCanonicalError, ProviderError
from remit.tools.function import FunctionTool
from remit.tools.provider import EvidenceCandidate, ToolResult


class FunctionFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the function gave nothing."""

    message: str
    cause: str = ""
    code: str = ""


class FunctionAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the function gave."""

    value: Any = None
    evidence: tuple[EvidenceCandidate, ...] = ()
    failure: FunctionFailure | None = None


def answer(module: str, name: str, args: dict[str, Any]) -> FunctionAnswer:
    """Call the tool `name` of a module; whatever goes wrong is in the answer."""
    try:
        function = attrgetter(name)(importlib.import_module(module))
        if not isinstance(function, FunctionTool):
            return FunctionAnswer(
                failure=FunctionFailure(f"{module}.{name} is not a tool", cause=Code.ToolNotFound.name)
            )
        result = asyncio.run(function.invoke(args))
    except ProviderError as error:
        cause, code = (one.name if one is not None else "" for one in (error.cause, error.code))
        return FunctionAnswer(failure=FunctionFailure(str(error), cause, code))
    except Exception as error:  # noqa: BLE001 - the function is not ours, and its caller hears of all of it
        return FunctionAnswer(failure=FunctionFailure(f"{type(error).__name__}: {error}"))
    return _whole(result)


def _whole(result: ToolResult) -> FunctionAnswer:
    """A result as the gateway would take it: encoding makes null of a NaN."""
    try:
        as_json(result.value)
    except NotCanonicalError as error:
        reason = f"the tool returned a value that JSON cannot represent: {error.message}"
        return FunctionAnswer(failure=FunctionFailure(reason, Code.BadGateway.name, Code.RESULT_NOT_ENCODABLE.name))
    return FunctionAnswer(result.value, result.evidence)


def main() -> None:
    """Answer one call."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    result = answer(sys.argv[1], sys.argv[2], msgspec.json.decode(sys.stdin.buffer.read()))
    with open(stdout, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
