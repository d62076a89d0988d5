"""A world in which every effect waits until the test lets it end, so that a test decides what is faster.

It counts branches as the live world does: where a run waits for something that the world does not know of, it hangs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

from remit.codes import Code
from remit.gateway.outcome import Outcome, refused
from remit.jobs.branch import RunBranch, current
from remit.jobs.effects.effects import Effects
from remit.jobs.effects.port import CallRequest, ModelQuestion, Wait, WaitAnswer
from remit.jobs.recipe import Recipes
from remit.jobs.run import Run
from remit.jobs.spans import Activity
from remit.jobs.state import CallRecord, JobHistory, ModelRecord, Value, WaitRecord
from remit.journal.event import Blob
from remit.journal.journal import Journal
from remit.journal.kinds import ChildEnded, ChildStarted, CommandStarted, CompensationCompleted, JobLabeled


class Effect(NamedTuple):
    """Something the run asked the world for."""

    step: str
    kind: str
    """`call`, or what is waited for."""
    name: str
    args: Any
    timeout_s: float | None = None

    @property
    def key(self) -> str:
        return self.step.rpartition(".")[2]


Tool = Callable[[dict[str, Any]], Any]
Choose = Callable[[int], int]


class ScriptedWorld:
    """Tools are functions of their arguments, waits have an answer by the name that is waited for."""

    def __init__(self, tools: dict[str, Tool] | None = None, answers: dict[str, WaitAnswer] | None = None) -> None:
        self.tools = tools or {}
        self.answers = answers or {}
        self.effects: list[Effect] = []
        self.children: list[str] = []
        self.undos: dict[str, Any] = {}
        self.shown: list[tuple[str, float | None, float | None]] = []
        self.most_pending = 0
        self.activity = Activity()
        self._pending: deque[tuple[asyncio.Future[None], Effect]] = deque()

    async def run(self, program: Callable[[Run], Awaitable[Any]], choose: Choose = lambda _count: 0) -> Any:
        """Run to the end; `choose` says which of so many pending effects ends next."""
        run = Run("job_1", "ann", Effects(JobHistory(), cast("Journal", None), self, self.activity), Recipes())
        task = asyncio.ensure_future(self._rooted(run, program))
        task.add_done_callback(lambda _task: self.activity.attention.set())
        try:
            while not task.done():
                await self.activity.attention.wait()
                self.activity.attention.clear()
                if self.activity.active == 0 and not task.done():
                    assert self._pending, "the run waits for nothing that could come"
                    self._end(choose(len(self._pending)))
        finally:
            task.cancel()
        return await task

    def _end(self, index: int) -> None:
        future, _ = self._pending[index]
        del self._pending[index]
        self.activity.unblock()
        future.set_result(None)

    async def _rooted(self, run: Run, program: Callable[[Run], Awaitable[Any]]) -> Any:
        current.set(RunBranch("", asyncio.current_task()))
        return await program(run)

    async def _pend(self, effect: Effect) -> None:
        self.effects.append(effect)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((future, effect))
        self.most_pending = max(self.most_pending, len(self._pending))
        self.activity.block()
        await future

    # --- the handler

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:
        if request.undo is not None:
            self.undos[request.step] = request.undo
        await self._pend(Effect(request.step, "call", request.tool, request.args, request.timeout_s))
        if request.tool not in self.tools:
            return refused(Code.UNKNOWN_TOOL, f"no tool is named {request.tool}")
        given = self.tools[request.tool](request.args)
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, Outcome) else Outcome(status="ok", value=given)

    async def wait(self, wait: Wait, record: WaitRecord | None) -> WaitAnswer:
        name = wait.key if wait.type == "signal" else wait.type
        seconds = None if wait.due_at is None else wait.due_at / 1_000_000
        await self._pend(Effect(wait.step, wait.type, name, getattr(wait, "question", None), seconds))
        return self.answers.get(name, WaitAnswer())

    default_model = ""

    async def model_differs(self, started: CommandStarted, recorded: str, current: str) -> None:
        raise NotImplementedError

    async def ask(self, question: ModelQuestion, record: ModelRecord) -> Outcome:
        raise NotImplementedError

    async def value(self, step: str, kind: type[Value]) -> Value:
        raise NotImplementedError

    async def poll(self, wait: Wait) -> WaitAnswer | None:
        return None

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> None:
        self.children.append(started.name)

    async def child_ended(self, ended: ChildEnded, blobs: tuple[Blob, ...]) -> None:
        """Keep nothing of it."""

    async def patch(self, name: str) -> None:
        """Keep nothing of it."""

    async def label(self, labeled: JobLabeled) -> None:
        raise NotImplementedError

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]]) -> None:
        self.undos[step] = undo

    async def compensate(self, step: str) -> CompensationCompleted:
        raise NotImplementedError

    def progress(self, done: float | None, total: float | None, message: str, /) -> None:
        self.shown.append((message, done, total))

    def now(self) -> int:
        return 0
