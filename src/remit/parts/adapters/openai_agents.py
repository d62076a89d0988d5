"""The governed catalog as function tools of the OpenAI Agents SDK.

agent = Agent(name="…", tools=await function_tools(remit, ["fs.*"], run="order-17"))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.parts.adapters.caller import EVERY, Governed, not_installed, told

try:
    from agents import FunctionTool
    from agents.tool_context import ToolContext
except ModuleNotFoundError as missing:
    raise not_installed("openai-agents", missing) from missing

if TYPE_CHECKING:
    from remit.parts.adapters.caller import OpenRemit

_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


async def function_tools(
    remit: OpenRemit, tools: Sequence[str] = EVERY, *, run: str = "", patience_s: float | None = None
) -> list[FunctionTool]:
    """Tools whose full names fit one of `tools`, each call checked, recorded, and approved if policy asks a person.

    A call is made once for each call id of `run`, which names the work across processes (such as a session's id);
    empty: the tools of this very call. A call that needs a person waits for `patience_s` seconds (None: as long as it
    takes); then the model reads that it waits.
    """
    governed = Governed(remit, tools, patience_s)
    scope = run or governed.scope
    return [
        FunctionTool(
            name=view.wire_name,
            description=view.description,
            params_json_schema=view.input_schema or _NOTHING,
            on_invoke_tool=_invoked(governed, view.name, scope),
            strict_json_schema=False,  # it would rewrite the schema; the gate checks against the tool's own
        )
        for view in await governed.offered()
    ]


def _invoked(governed: Governed, tool: str, scope: str) -> Callable[[ToolContext[Any], str], Awaitable[str]]:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            args = arguments_of(arguments)
        except InvalidArgumentsError as error:
            return f"Invalid arguments: {error}"
        return told(await governed.call(tool, args, "openai-agents", scope, context.tool_call_id))

    return invoke
