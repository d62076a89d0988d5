"""Runs one function tool in a process of its own: `python -m remit.tools.alone MODULE NAME`.

The call comes as JSON on stdin, with its secrets: they are in no environment, no argument and no file, and what the
function starts cannot read them there. The answer goes to stdout as JSON, and what the function prints to stderr.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from operator import attrgetter
from typing import Any, Final

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import NotCanonicalError, ProviderError
from remit.tools.function import FunctionTool
from remit.tools.provider import CallContext, EvidenceCandidate, JobFacts, LogLevel, ToolResult

_FACTS: Final = (
    "stream", "step", "invocation_id", "idempotency_key", "attempt", "principal", "trace_id", "span_id", "timeout_s",
    "now", "untrusted", "within",
)  # fmt: skip


class EnclosedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call as the function's process gets it."""

    args: dict[str, Any]
    facts: dict[str, Any] = {}
    """Facts of its CallContext; empty: it takes none."""
    job: JobFacts | None = None
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        """Leave out what may be secret."""
        return "<enclosed call>"


def enclosed_call(tool: FunctionTool[..., Any], args: dict[str, Any], ctx: CallContext) -> bytes:
    """Return a call as `main` reads it. Raises ProviderError (SECRET_DENIED) for a secret that the call has not."""
    if tool.context is None:
        return msgspec.json.encode(EnclosedCall(args))
    secrets = {name: ctx.secret(name) for name in tool.secrets}
    facts = {name: getattr(ctx, name) for name in _FACTS}
    return msgspec.json.encode(EnclosedCall(args, facts, ctx.job, secrets))


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
    refused: tuple[str, ...] = ()
    """The secrets that were not accepted."""


class _HandedSecrets:
    """The secrets that came with the call (`remit.tools.provider.SecretsOfCall`)."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self.refused: dict[str, None] = {}

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def refuse(self, name: str) -> None:
        self.refused[name] = None


def _context(call: EnclosedCall, secrets: _HandedSecrets) -> CallContext | None:
    """The call as the function may know it: what it reports are lines on stderr."""

    def report(_done: float, _total: float | None, message: str) -> None:
        _line(message, "info")

    return (
        CallContext(**call.facts, job=call.job, secrets=secrets, progress=report, lines=_line) if call.facts else None
    )


def _line(text: str, _level: LogLevel) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def answer(module: str, name: str, call: EnclosedCall) -> FunctionAnswer:
    """Call the tool `name` of a module; whatever goes wrong is in the answer, and which secrets were not accepted."""
    secrets = _HandedSecrets(call.secrets)
    result = _answer(module, name, call.args, _context(call, secrets))
    return msgspec.structs.replace(result, refused=tuple(secrets.refused))


def _answer(module: str, name: str, args: dict[str, Any], ctx: CallContext | None) -> FunctionAnswer:
    try:
        function = attrgetter(name)(importlib.import_module(module))
        if not isinstance(function, FunctionTool):
            return FunctionAnswer(
                failure=FunctionFailure(f"{module}.{name} is not a tool", cause=Code.ToolNotFound.name)
            )
        result = asyncio.run(function.invoke(args, ctx))
    except ProviderError as error:
        cause, code = (each.name if each is not None else "" for each in (error.cause, error.code))
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
    call = msgspec.json.decode(sys.stdin.buffer.read(), type=EnclosedCall)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # programs that the function starts get none of it
    result = answer(sys.argv[1], sys.argv[2], call)
    with open(stdout, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
