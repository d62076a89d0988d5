"""The schema gate: a value at a boundary against its schema (contract: tickets, "Gates").

`strict` refuses what does not fit, `warn` counts and reports it and lets it pass, `off` does not look. The gate never
changes a value and never raises. It serves every boundary: calls and their results here, tickets where they come in.

The schemas and rules behind recorded hashes: each is kept once, and can be read when tool or rules are others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec

from remit.canonical import canonical
from remit.codes import Code
from remit.journal.event import Blob
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.writer import StreamWriter
    from remit.metrics import Registry
    from remit.policy.rules import Policy
    from remit.tools.explain import SchemaProblem
    from remit.tools.tool import Tool


Mode = Literal["off", "warn", "strict"]
Direction = Literal["ingress", "internal"]

WARN: Final = "schema_gate_warn"
"""Audit name of a value that did not fit and passed."""
REJECT: Final = "schema_gate_reject"
"""Audit name of a value that was refused."""
_SHOWN: Final = 5
_MAX_TEXT: Final = 1_000
_log: Final = logging.getLogger("remit.gateway")


class GateTally:
    """The number of problems that the gate let pass."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


_tally: Final[ContextVar[GateTally | None]] = ContextVar("schema_warnings", default=None)


@contextmanager
def warnings_counted() -> Iterator[GateTally]:
    """Count the warnings of what is done within the block, for a face that tells its client."""
    tally = GateTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


class Boundary(NamedTuple):
    """A place where values are checked."""

    name: str
    """Such as `call_args`, `call_result`, `ticket_create`, `ticket_complete`, `ticket_derive`."""
    direction: Direction
    """`ingress`: the value comes from outside; `internal`: from a part of Remit or a tool."""
    kind: str
    """The owner of the value: `tool`, or the kind of a ticket."""
    code: Code = Code.SCHEMA_VALIDATION_FAILED
    """The code of a refusal."""


CALL_ARGS: Final = Boundary("call_args", "internal", "tool", Code.INVALID_TOOL_ARGS)
CALL_RESULT: Final = Boundary("call_result", "internal", "tool", Code.RESULT_INVALID)


class Checks(Protocol):
    """A schema that can check values."""

    def problems(self, value: Any) -> Sequence[SchemaProblem]:
        """Return what is wrong with a value; empty if it fits. Never raises."""
        ...


class Misfit(msgspec.Struct, frozen=True):
    """A value that does not fit its schema."""

    problems: tuple[SchemaProblem, ...]
    rejected: bool
    """Whether it must not pass."""

    @property
    def text(self) -> str:
        """The first problems, in one line for people. They never quote the value."""
        return line("; ".join(self.lines), _MAX_TEXT)

    @property
    def lines(self) -> tuple[str, ...]:
        """Each of the first problems: place, words and code."""
        return tuple([f"{each.path or '/'} {each.message} ({each.code.name})" for each in self.problems[:_SHOWN]])

    @property
    def codes(self) -> tuple[str, ...]:
        """The warn codes of all problems, each once."""
        return tuple(dict.fromkeys(each.code.name for each in self.problems))


class SchemaGate:
    """Checks, counts and reports."""

    def __init__(self, mode: Mode, metrics: Registry) -> None:
        self._mode = mode
        self._warnings = metrics.counter(
            "schema_warning_total",
            "Problems that the schema gate found and did not refuse.",
            "warn_code",
            "kind",
            "direction",
            "boundary",
        )
        self._rejects = metrics.counter(
            "schema_strict_reject_total", "Values that the schema gate refused.", "kind", "direction", "boundary"
        )

    def check(self, boundary: Boundary, schema: Checks, value: Any, of: str) -> Misfit | None:
        """Give the misfit of a value; None if it fits or the gate is off. `of` names the tool or ticket in the log."""
        if self._mode == "off":
            return None
        problems = schema.problems(value)
        return self._misfit(boundary, tuple(problems), of) if problems else None

    def _misfit(self, boundary: Boundary, problems: tuple[SchemaProblem, ...], of: str) -> Misfit:
        misfit = Misfit(problems, rejected=self._mode == "strict")
        name, direction, kind, _ = boundary
        if misfit.rejected:
            self._rejects.add(kind, direction, name)
        else:
            tally = _tally.get()
            if tally is not None:
                tally.count += len(problems)
            for problem in problems:
                self._warnings.add(problem.code.name, kind, direction, name)
        audit, level = (REJECT, logging.INFO) if misfit.rejected else (WARN, logging.WARNING)
        _log.log(level, "%s %s=%s boundary=%s direction=%s: %s", audit, kind, of, name, direction, misfit.text)
        return misfit


class KeptTexts:
    """Texts that this process has recorded already, and with whose events."""

    def __init__(self) -> None:
        self._with: dict[str, StreamWriter] = {}

    def schemas(self, tool: Tool, writer: StreamWriter) -> tuple[Blob, ...]:
        """Return the blobs for the writer's next events: each schema's canonical form, under its own hash."""
        writers, output = self._with, tool.output
        of_input = writers.get(tool.input.hash)
        of_output = of_input if output is None else writers.get(output.hash)
        if of_input is not None and of_input.failure is None and of_output is not None and of_output.failure is None:
            return ()  # as for every call but a tool's first
        texts = []
        for compiled, schema in ((tool.input, tool.meta.input_schema), (tool.output, tool.meta.output_schema)):
            if compiled is not None and self._lacks(compiled.hash):
                self._with[compiled.hash] = writer
                texts.append(Blob(compiled.hash, canonical(schema)))
        return tuple(texts)

    def rules(self, policy: Policy, writer: StreamWriter) -> tuple[Blob, ...]:
        """Return the blobs for the writer's next events: the policy's text, and those of what is added to it."""
        record = self._with.get(policy.hash)
        if record is not None and record.failure is None:
            return ()  # as for every call but the first under these rules
        texts = ((policy.hash, policy.text), *((each.key, each.text) for each in policy.overlays))
        blobs = [Blob(digest, text) for digest, text in texts if self._lacks(digest)]
        self._with.update((blob.digest, writer) for blob in blobs)
        return tuple(blobs)

    def _lacks(self, digest: str) -> bool:
        """Return whether it was never recorded, or with events that the storage lost or refused."""
        writer = self._with.get(digest)
        return writer is None or writer.failure is not None
