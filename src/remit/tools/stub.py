"""A provider without a world: the same call gives the same answer, on every machine, offline.

It stands in for tools that are not there (`NO_MCP=true`), and plays scripts in tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NameInvalidError, NotCanonicalError, ProviderError
from remit.tools.meta import JsonSchema, Level, Risk, ToolMeta
from remit.tools.names import check_name, check_provider_id
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult

ECHO_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "stub": {"const": True},
        "tool": {"type": "string"},
        "args_digest": {"type": "string", "description": "SHA-256 of the canonical arguments"},
    },
    "required": ["stub", "tool", "args_digest"],
}
"""The schema that a tool without a script answers."""


class StubAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted answer."""

    value: Any = None
    error: Exception | None = None
    """Raised in place of an answer."""
    after: asyncio.Event | None = None
    """The call waits for this event before it answers."""
    begun: asyncio.Event | None = None
    """Set when the call arrives."""
    evidence: tuple[EvidenceCandidate, ...] = ()


class Received(msgspec.Struct, frozen=True):
    """A call as it arrived."""

    name: str
    args: dict[str, Any]
    ctx: CallContext


Behaviour = Sequence[StubAnswer] | Callable[[dict[str, Any]], Any]
"""Answers in their order, or a function from arguments to the value."""


class StubProvider:
    """Answers from scripts; without one, with a digest of the arguments.

    It offers the tools, and what `source` gives whenever they are listed. Each script belongs to one of the tools by
    name. Raises NameInvalidError if one does not.
    """

    def __init__(
        self,
        tools: Iterable[ToolMeta] = (),
        scripts: Mapping[str, Behaviour] | None = None,
        *,
        provider_id: str = "stub",
        source: Callable[[], Awaitable[Iterable[ToolMeta]]] | None = None,
    ) -> None:
        self._source = source
        self._provider_id = check_provider_id(provider_id)
        self._metas = {meta.name: meta for meta in tools}
        self._scripts: dict[str, Iterator[StubAnswer] | Callable[[dict[str, Any]], Any]] = {}
        for name, behaviour in (scripts or {}).items():
            if name not in self._metas:
                raise NameInvalidError(f"there is a script for {name}, which the stub does not offer")
            self._scripts[name] = behaviour if callable(behaviour) else iter(behaviour)
        self._closed = False
        self.received: list[Received] = []
        """Every call so far."""

    @classmethod
    def standing_in(cls, names: Iterable[str], *, provider_id: str = "stub") -> StubProvider:
        """A stub that takes any arguments under each of these names and touches nothing. Raises NameInvalidError."""
        return cls([_stand_in(name) for name in names], provider_id=provider_id)

    @property
    def provider_id(self) -> str:
        return self._provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._check_open()
        if self._source is not None:
            self._metas.update({meta.name: meta for meta in await self._source()})
        return [self._listed(self._metas[name]) for name in sorted(self._metas)]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._check_open()
        if name not in self._metas:
            raise ProviderError(f"the stub does not offer {name}", cause=Code.ToolNotFound)
        self.received.append(Received(name, args, ctx))
        script = self._scripts.get(name)
        if script is None:
            return ToolResult({"stub": True, "tool": name, "args_digest": _digest(args)})
        if callable(script):
            return ToolResult(script(args))
        answer = next(script, None)
        if answer is None:
            raise RuntimeError(f"the script of {name} has no answer left")
        return await _played(answer)

    async def close(self) -> None:
        self._closed = True

    def _listed(self, meta: ToolMeta) -> ToolMeta:
        output = meta.output_schema if meta.name in self._scripts else ECHO_SCHEMA
        definition = meta.definition and {**meta.definition, "outputSchema": output}
        return msgspec.structs.replace(meta, provider_id=self._provider_id, output_schema=output, definition=definition)

    def _check_open(self) -> None:
        if self._closed:
            raise ProviderError(f"the provider {self._provider_id} is closed", cause=Code.ProviderClosed)


def _stand_in(name: str) -> ToolMeta:
    return ToolMeta(
        name=check_name(name),
        provider_id="stub",
        description="Stands in for a tool that is not available here.",
        input_schema={"type": "object"},
        capability_level=Level.L0,
        risk_level=Risk.READ_ONLY,
        side_effects=False,
        requires_confirm=False,
    )


async def _played(answer: StubAnswer) -> ToolResult:
    if answer.begun is not None:
        answer.begun.set()
    if answer.after is not None:
        await answer.after.wait()
    if answer.error is not None:
        raise answer.error
    return ToolResult(answer.value, answer.evidence)


def _digest(args: dict[str, Any]) -> str:
    try:
        return digest(args)
    except NotCanonicalError as error:
        raise ProviderError(str(error), cause=Code.InvalidInput) from error
