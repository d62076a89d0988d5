"""The tools of agents that ask the gate by hooks: once a call may run, the agent makes it, and says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.hooks.hook import PROVIDER, Hook, common_args, meta_of, step_of
from remit.tools.provider import CallContext, ClientReport, ToolResult

if TYPE_CHECKING:
    from remit.tools.meta import ToolMeta

_ELSEWHERE: Final = "the agent itself makes this call"


class AgentCall:
    """A call of an agent on its way: asked about, begun, ended."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.name, self.kind = step_of(hook)
        self.args = common_args(hook, self.kind)
        self.invocation_id = ""
        self.passed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the gate let it through: its intent is on disk."""
        self.ended: asyncio.Future[tuple[Hook | None, ClientReport]] = asyncio.get_running_loop().create_future()
        """The report of its agent; None in its place: there came none."""

    def settle(self, *, passed: bool) -> None:
        """Say whether it may run, once."""
        if not self.passed.done():
            self.passed.set_result(passed)

    def end(self, hook: Hook | None, *remarks: str) -> None:
        """Say how it ended, once."""
        if not self.ended.done():
            open_ = hook is not None and hook.background
            marks = (*remarks, "background") if open_ else remarks
            self.ended.set_result((hook, ClientReport(by=self.hook.agent, remarks=marks, open=open_)))


CALL: Final[ContextVar[AgentCall | None]] = ContextVar("remit_agent_call", default=None)
"""The call that the running task takes through the gate."""


class AgentTools:
    """The provider: each tool is known once an agent has used it."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._reports: dict[str, ClientReport] = {}
        self._changed: Callable[[], None] = lambda: None

    @property
    def provider_id(self) -> str:
        return PROVIDER

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def learn(self, name: str, kind: str) -> None:
        """Offer a tool from now on, as an agent has it."""
        if self._kinds.get(name) != kind:
            self._kinds[name] = kind
            self._changed()

    async def list_tools(self) -> Sequence[ToolMeta]:
        return [meta_of(name, kind) for name, kind in self._kinds.items()]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:  # noqa: ARG002 - the port's
        call = CALL.get()
        if call is None or call.name != name:
            raise ProviderError(_ELSEWHERE, code=Code.TOOL_UNAVAILABLE, cause=Code.InvalidInput)
        call.invocation_id = ctx.invocation_id
        call.settle(passed=True)
        hook, report = await call.ended
        if hook is None:
            raise ProviderError(f"{call.hook.agent} did not say how it ended", code=Code.OUTCOME_UNKNOWN)
        self._reports[ctx.invocation_id] = report
        if hook.moment == "failed":
            raise ProviderError(hook.error, cause=None)
        return ToolResult(hook.result)

    def report(self, invocation_id: str) -> ClientReport | None:
        return self._reports.pop(invocation_id, None)

    async def close(self) -> None:
        """Nothing is open: calls under way end with their agents."""
