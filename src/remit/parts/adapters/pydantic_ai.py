"""The governed catalog as a toolset of pydantic-ai.

agent = Agent("openai:…", toolsets=[RemitToolset(remit, ["fs.*"])])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.parts.adapters.caller import EVERY, Governed, not_installed, told, traced

try:
    from pydantic_ai import ToolReturn
    from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_ai.toolsets.abstract import ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ModuleNotFoundError as missing:
    raise not_installed("pydantic-ai", missing) from missing

if TYPE_CHECKING:
    from remit.parts.adapters.caller import OpenRemit

_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_ANY_ARGUMENTS: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""Remit's gate checks arguments against the tool's own schema."""
_RETRIES: Final = 2
"""The number of times that a model may correct the arguments of a call."""


class RemitToolset(AbstractToolset[Any]):
    """Tools of a Remit, each call checked, recorded, and approved if policy asks a person.

    A call is made once for each call id of a conversation: resumed by a durable engine, it gets the recorded outcome.
    The tools' full names fit one of `tools`. A call that needs a person waits for `patience_s` seconds (None: as long
    as it takes), and then ends the run with `DeferredToolRequests`, whose metadata name the confirmation. Once it is
    decided in Remit, continue with `DeferredToolResults(approvals={id: True})`: what Remit's person decided is what
    happens.
    """

    def __init__(
        self, remit: OpenRemit, tools: Sequence[str] = EVERY, *, patience_s: float | None = None, name: str = "remit"
    ) -> None:
        self._governed = Governed(remit, tools, patience_s)
        self._name = name
        self._names: dict[str, str] = {}

    @property
    def id(self) -> str:
        """The toolset's name within its agent."""
        return self._name

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - the framework's
        """The tools that may be called now."""
        views = await self._governed.offered()
        self._names = {view.wire_name: view.name for view in views}
        return {
            view.wire_name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=view.wire_name,
                    description=view.description,
                    parameters_json_schema=view.input_schema or _NOTHING,
                ),
                max_retries=_RETRIES,
                args_validator=_ANY_ARGUMENTS,
            )
            for view in views
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - the framework's
    ) -> ToolReturn:
        """Call a tool. Raises what the framework has for calls that wait, failed, or have wrong arguments."""
        scope = ctx.conversation_id or ctx.run_id or self._governed.scope
        call = ctx.tool_call_id or self._governed.scope
        outcome = await self._governed.call(self._names.get(name, name), tool_args, "pydantic-ai", scope, call)
        if outcome.ok:
            return ToolReturn(outcome.value, metadata=traced(outcome))
        if outcome.status == "pending":
            raise ApprovalRequired(metadata=traced(outcome))
        if outcome.code is Code.INVALID_TOOL_ARGS:
            raise ModelRetry(told(outcome))
        raise ToolFailed(told(outcome))
