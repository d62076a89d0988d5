"""The governed catalog as tools of LangChain and LangGraph.

agent = create_agent(model, tools=await langchain_tools(remit, ["fs.*"]))
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from remit.errors import UsageError
from remit.parts.adapters.caller import EVERY, Governed, not_installed, told, traced

try:
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import PrivateAttr
except ModuleNotFoundError as missing:
    raise not_installed("langgraph", missing) from missing

if TYPE_CHECKING:
    from remit.parts.adapters.caller import OpenRemit
    from remit.record.views import ToolView

_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_identity: Final[ContextVar[tuple[str, str]]] = ContextVar("remit_langchain_call")
"""Thread and call id of the call under way."""


async def langchain_tools(
    remit: OpenRemit, tools: Sequence[str] = EVERY, *, patience_s: float | None = None
) -> list[BaseTool]:
    """Tools whose full names fit one of `tools`, each call checked, recorded, and approved if policy asks a person.

    A call is made once for each call id of a thread: resumed from a checkpoint, it gets the recorded outcome. A call
    that needs a person waits for `patience_s` seconds (None: as long as it takes); then the model reads that it waits.
    """
    governed = Governed(remit, tools, patience_s)
    loop = asyncio.get_running_loop()
    return [RemitTool.of(view, governed, loop) for view in await governed.offered()]


class RemitTool(BaseTool):
    """One tool of a Remit."""

    _tool: str = PrivateAttr("")
    _governed: Governed = PrivateAttr()
    _loop: asyncio.AbstractEventLoop = PrivateAttr()

    @classmethod
    def of(cls, view: ToolView, governed: Governed, loop: asyncio.AbstractEventLoop) -> RemitTool:
        """The tool of a view; Remit lives in `loop`."""
        tool_adapter = cls(
            name=view.wire_name,
            description=view.description,
            args_schema=view.input_schema or _NOTHING,
            response_format="content_and_artifact",
            handle_tool_error=True,
        )
        tool_adapter._tool, tool_adapter._governed, tool_adapter._loop = view.name, governed, loop
        return tool_adapter

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **named: Any) -> Any:
        """Run the tool, knowing which call of which thread it is."""
        token = _identity.set(self._known_by(named))
        try:
            return await super().arun(tool_input, *args, **named)
        finally:
            _identity.reset(token)

    def run(self, tool_input: str | dict[str, Any], *args: Any, **named: Any) -> Any:
        """The same for programs without a loop of their own."""
        token = _identity.set(self._known_by(named))
        try:
            return super().run(tool_input, *args, **named)
        finally:
            _identity.reset(token)

    async def _arun(self, **args: Any) -> tuple[str, dict[str, Any]]:
        thread, call = _identity.get()
        if asyncio.get_running_loop() is self._loop:
            return await self._called(args, thread, call)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._called(args, thread, call), self._loop))

    def _run(self, **args: Any) -> tuple[str, dict[str, Any]]:
        thread, call = _identity.get()
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            raise UsageError("a tool of Remit would stop the loop that it runs in", remedy="Use `ainvoke`.")
        return asyncio.run_coroutine_threadsafe(self._called(args, thread, call), self._loop).result()

    async def _called(self, args: dict[str, Any], thread: str, call: str) -> tuple[str, dict[str, Any]]:
        outcome = await self._governed.call(self._tool, args, "langgraph", thread, call)
        if not outcome.ok:
            raise ToolException(told(outcome))
        return told(outcome), traced(outcome)

    def _known_by(self, named: dict[str, Any]) -> tuple[str, str]:
        configurable = (named.get("config") or {}).get("configurable") or {}
        thread = str(configurable.get("thread_id") or self._governed.scope)
        return thread, str(named.get("tool_call_id") or named.get("run_id") or "")
