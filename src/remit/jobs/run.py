"""The run as recipe code sees it. Everything that is not deterministic goes through here, and is recorded.

The effects that a recipe asked for. One that it never awaited has not happened, and its job fails by name.

`run.call(…)` without `await` makes a coroutine that never starts: the recipe continues as if the call had been made.

Runs parts of a run beside one another, each as a branch with places of its own (branch.py).
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from hashlib import sha256
from types import CodeType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import RunError, UsageError
from remit.gateway.outcome import Outcome
from remit.ids import encode
from remit.jobs.answers import (
    NO_BUDGET,
    NO_SAMPLING,
    AgentAnswer,
    CallError,
    Compensated,
    Confirmed,
    ModelAnswer,
    answer_to,
    form_of,
    schema_of,
)
from remit.jobs.bound import RecipeCall, args_of
from remit.jobs.branch import Countdown, RunBranch, asking, current, ends
from remit.jobs.effects.port import ModelQuestion, Undo, Wait, checked_undo
from remit.jobs.end import error_info
from remit.jobs.skills import AGENT
from remit.jobs.spans import Span, due, seconds_of, words
from remit.journal.blobs import pack
from remit.journal.kinds import ChildStarted, JobCreated, JobLabeled, RandomRecorded, TimeRecorded, UuidRecorded
from remit.journal.labels import LONGEST_TITLE, MOST, Label, check_key, text_of
from remit.models.message import user
from remit.models.thread import EMPTY, Thread
from remit.tools.hints import from_json

if TYPE_CHECKING:
    from remit.gateway.budget import Budget
    from remit.gateway.conversation import Conversation
    from remit.jobs.bound import RecipeTable
    from remit.jobs.effects.effects import Effects
    from remit.journal.journal import Journal
    from remit.models.message import Message
    from remit.models.prompt import Sampling, ToolSpec
    from remit.tools.function import FunctionTool


P = ParamSpec("P")
R = TypeVar("R")

_MANY: Final = 64
"""So many are remembered before those that were awaited are forgotten."""


class RunRequests:
    """Remembers the coroutines of a run's effects, and where they were made."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: list[tuple[Coroutine[Any, Any, Any], CodeType, int]] = []

    def add(self, coroutine: Coroutine[Any, Any, Any], code: CodeType, instruction: int) -> None:
        """Remember a coroutine that an instruction of `code` made."""
        if len(self._requests) >= _MANY:
            self._requests = [request for request in self._requests if _unstarted(request[0])]
        self._requests.append((coroutine, code, instruction))

    def settle(self) -> None:
        """End the requests of a recipe that returned. Raises RunError (NOT_AWAITED) if one was never awaited."""
        forgotten = self.close()
        if forgotten:
            coroutine, code, instruction = forgotten[0]
            name = getattr(coroutine, "__name__", "call").lstrip("_")
            raise RunError(
                f"run.{name} at {code.co_filename}:{_line(code, instruction)} was not awaited: it did not happen",
                code=Code.NOT_AWAITED,
                remedy=f"Write `await run.{name}(…)`, or give it to run.gather.",
            )

    def close(self) -> list[tuple[Coroutine[Any, Any, Any], CodeType, int]]:
        """Close the coroutines that were never awaited, and return them."""
        forgotten = [request for request in self._requests if _unstarted(request[0])]
        self._requests.clear()
        for coroutine, _, _ in forgotten:
            coroutine.close()
        return forgotten


class Requesting(Protocol):
    """The noun that has requests."""

    @property
    def requests(self) -> RunRequests:
        """The requests of the run."""
        ...


S = TypeVar("S", bound=Requesting)


def effect(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Make a run remember each coroutine of a method until it is awaited."""

    @wraps(method)
    def request(run: S, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine = method(run, *args, **kwargs)
        caller = sys._getframe(1)  # noqa: SLF001 - the only way to the caller's line that costs nothing
        run.requests.add(coroutine, caller.f_code, caller.f_lasti)
        return coroutine

    return request


def _unstarted(coroutine: Coroutine[Any, Any, Any]) -> bool:
    return inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED


def _line(code: CodeType, instruction: int) -> int:
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end and line is not None)
    return next(lines, code.co_firstlineno)


T = TypeVar("T")


class Branches:
    """The branches of one run."""

    def __init__(self, effects: Effects) -> None:
        self._activity = effects.activity
        self._matching = effects.matching

    async def gather(self, place: str, branches: Iterable[Awaitable[T]]) -> list[T]:
        """Run branches below `place`; their results in order, or the first error, once all have ended."""
        tasks = [self._start(branch, f"{place}.{index}.") for index, branch in enumerate(branches)]
        if not tasks:
            return []
        countdown = Countdown(len(tasks), self._activity.unblock)
        for task in tasks:
            task.add_done_callback(countdown.one)
        self._activity.block()
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self._matching.cut_short(place)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        for task in tasks:
            if not task.cancelled():
                task.exception()  # the first error is raised below; unseen, the others would be complained of
            elif task.cancelling():
                self._matching.over()  # not by its own code
        errors = [task.exception() for task in tasks if not task.cancelled()]  # all are looked at, one is raised
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            raise first
        return [task.result() for task in tasks]

    async def until(self, future: asyncio.Future[T]) -> T:
        """Wait for another branch, without keeping the job from being parked meanwhile."""
        if not future.done():
            self._matching.go_on()
            self._matching.refuse_limit()
            self._activity.block()
            future.add_done_callback(lambda _future: self._activity.unblock())
        return await future

    async def within(self, work: Awaitable[T], prefix: str) -> T:
        """Do work in the running task, with places below `prefix`."""
        token = current.set(RunBranch(prefix, asyncio.current_task(), current.get()))
        try:
            return await work
        finally:
            current.reset(token)

    def _start(self, branch: Awaitable[T], prefix: str) -> asyncio.Task[T]:
        self._activity.unblock()  # a branch more is active; its end takes it back
        context = copy_context()
        task = asyncio.get_running_loop().create_task(ends(branch), context=context)
        own = RunBranch(prefix, task, current.get())
        context.run(current.set, own)
        task.add_done_callback(partial(self._over, own))
        return task

    def _over(self, branch: RunBranch, _task: asyncio.Task[Any]) -> None:
        branch.task = None  # which holds the branch by its context: each would wait for the collector of garbage
        self._activity.block()


LONGEST_PATCH: Final = 200
"""Characters of the name of a change."""


class Run:
    """A durable run, as its recipe sees it.

    Effects are keyed by their place in the program, so a recipe must take the same way every time it runs: decide on
    recorded values only, read clock and chance here, and keep other I/O inside tools.
    """

    def __init__(self, job_id: str, principal: str, effects: Effects, recipes: RecipeTable, version: str = "") -> None:
        self.job_id = job_id
        self.principal = principal
        self.recipes = recipes
        """The recipes that this process can run; a recipe that decides on it takes another way where others are known.
        """
        self.version = version
        """The declared version of the recipe that the job began under: decide on it what `migrates` leaves to you."""
        self.requests = RunRequests()
        self._effects = effects
        self._branches = Branches(effects)

    def __repr__(self) -> str:
        return f"<run of {self.job_id} by {self.principal or 'nobody'}>"

    @overload
    async def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        /,
        *,
        key: str | None = None,
        timeout: Span | None = None,
        undo: Undo | None = None,
        conversation: Conversation | None = None,
    ) -> Outcome: ...

    @overload
    async def call(self, tool: FunctionTool[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def call(self, tool: FunctionTool[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @effect
    async def call(self, tool: str | FunctionTool[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a tool by name, as `call_named`, or as the function that `@tool` decorated, with its own arguments.

        Of a function the result is what it returns, in its own type. Raises CallError if the call does not end well.
        """
        if isinstance(tool, str):
            if kwargs or len(args) != 1 or type(args[0]) is not dict:
                args = args_of(tool, args, kwargs)
            return await self._call_named(tool, *args, **kwargs)
        return tool.typed((await self._call_named(tool.meta.name, tool.arguments(*args, **kwargs))).value)

    async def _call_named(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        timeout: Span | None = None,
        undo: Undo | None = None,
        conversation: Conversation | None = None,
    ) -> Outcome:
        """Call a tool and return its ok outcome; `timeout` (seconds or a timedelta) only ever shortens the tool's.

        `undo` is the call that undoes this one, as `("tool", {"name": value})` or as a function that makes it from the
        call's value. It is made if the job fails or is cancelled after the call, or by `compensate`.

        `conversation` says that a model wants the call, and what it was told: then policy looks at where the arguments
        come from (docs/untrusted.md).

        If no tool of this name is here, or its server is down, the job waits for a worker that has it.

        Raises CallError, which carries the outcome, if the call was refused or failed.
        """
        step = current.get().place(key)
        outcome = await self._effects.call(
            step,
            tool,
            args or {},
            None if timeout is None else seconds_of(timeout),
            None if undo is None else _undo(undo),
            needed=True,
            conversation=conversation or asking.get(),
        )
        if not outcome.ok:
            raise CallError(outcome, tool, step)
        return outcome

    call_named = effect(_call_named)

    @effect
    async def attempt(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        timeout: Span | None = None,
        undo: Undo | None = None,
        conversation: Conversation | None = None,
        attempts: int | None = None,
        barred: Outcome | None = None,
    ) -> Outcome:
        """Call a tool and return its outcome, whatever it is, `UNKNOWN_TOOL` too; otherwise as `call`.

        `attempts` is how often the call may be made where a retry could help; it only ever lowers the tool's number.
        A call that is `barred` is not made, whatever policy says: it is recorded as refused.
        """
        step, talk = current.get().place(key), conversation or asking.get()
        undoing, limit = _undo(undo), seconds_of(timeout)
        return await self._effects.call(
            step, tool, args or {}, limit, undoing, needed=False, conversation=talk, attempts=attempts, barred=barred
        )

    @effect
    async def compensate(self, *, key: str | None = None) -> Compensated:
        """Undo every call of this run that has ended and has an undo, the last one first, each once.

        An undo that fails waits for a person, who has it made again or leaves the step as it is.
        """
        done = await self._effects.compensate(current.get().place(key))
        return Compensated(undone=done.undone, left=done.left)

    @effect
    async def model(
        self,
        prompt: str | Thread | Sequence[Message],
        *,
        model: str = "",
        output: Any = None,
        tools: Sequence[str] = (),
        extra: Sequence[ToolSpec] = (),
        offered: Sequence[ToolSpec] = (),
        sampling: Sampling = NO_SAMPLING,
        budget: Budget = NO_BUDGET,
        key: str | None = None,
    ) -> ModelAnswer:
        """Ask a model and return its whole answer; recorded, it is never asked again.

        `prompt` is a text, or the messages of a conversation so far. `model` is a name such as `openai:MODEL`; empty:
        the configured one. `value` has the form of `output`, a type or a JSON schema. `tools` are names of
        tools that the answer may call, or patterns of them. `extra` and `offered` are tools that the recipe answers
        itself: the wording of the first stays the same while the job lasts. Raises ModelError if there is no answer.
        """
        thread = prompt if isinstance(prompt, Thread) else _thread_of(prompt)
        step = current.get().place(key)
        form = form_of(output) if output is not None else None
        question = ModelQuestion(
            step=step,
            model=model,
            thread=thread,
            tools=tuple(tools),
            extra=tuple(extra),
            offered=tuple(offered),
            sampling=sampling,
            output=form.output if form else None,
            budget=budget,
        )
        return await self._branches.within(answer_to(self._effects, question, form), f"{step}.0.")

    @effect
    async def agent(
        self,
        task: str,
        *,
        tools: Sequence[str] = (),
        recipes: Sequence[str] = (),
        skills: Sequence[str] = (),
        model: str = "",
        instructions: str = "",
        output: Any = None,
        turns: int | None = None,
        budget: Budget = NO_BUDGET,
        seconds: Span | None = None,
        key: str | None = None,
    ) -> AgentAnswer:
        """Have an agent work on a task as a part of this run, and return its outcome.

        `tools` and `recipes` are names of what it may call and run, or patterns; under `skills`, of their tools alone.
        `answer` has the form of `output`, a type or a JSON schema. `turns` and `seconds` bound it, `budget` the models
        of the whole job. Raises ModelError if its model cannot be asked, or declines.
        """
        inputs = {
            "task": task,
            "tools": list(tools),
            "recipes": list(recipes),
            "skills": list(skills),
            "model": model,
            "instructions": instructions,
            "output": None if output is None else schema_of(output),
            "turns": turns,
            "tokens": budget.tokens,
            "dollars": budget.cost,
            "seconds": seconds_of(seconds),
        }
        bound: RecipeCall[AgentAnswer] = RecipeCall(
            self.recipes.get(AGENT), {name: value for name, value in inputs.items() if value}
        )
        answer: AgentAnswer = await self.child(bound, key=key)
        typed = output is not None and not isinstance(output, dict) and answer.answer is not None
        return msgspec.structs.replace(answer, answer=from_json(answer.answer, output)) if typed else answer

    @effect
    async def gather(self, *branches: Awaitable[T]) -> list[T]:
        """Run branches in parallel and return their results in order.

        Waits for all of them, so that every replay sees the same; then raises the first error, in their order.
        """
        return await self._branches.gather(current.get().place(), branches)

    @effect
    async def until(self, future: asyncio.Future[T]) -> T:
        """Wait for another branch of this run, without keeping the job from being parked meanwhile."""
        return await self._branches.until(future)

    @effect
    async def sleep(self, seconds: Span | datetime, *, key: str | None = None) -> None:
        """Go on after so many seconds, after a timedelta, or at a datetime; it may be days, and no worker is held.

        A datetime needs a time zone. One that is over by then is not waited for.
        """
        step = current.get().place(key)
        until = due(seconds, self._effects.handler.now())
        await self._effects.wait(Wait(step=step, type="timer", key=step, due_at=until))

    @effect
    async def patched(self, name: str) -> bool:
        """Return whether to take the new way of a change in this recipe: `if await run.patched("name")`.

        True for a job that comes here with nothing recorded after this place, and from then on; False for one that
        recorded the old way. Raises UsageError for a name that is empty or longer than 200 characters.
        """
        if not 0 < len(name) <= LONGEST_PATCH:
            msg = f"a change has a name of 1 to {LONGEST_PATCH} characters"
            raise UsageError(msg, remedy='Write await run.patched("what-changed").')
        current.get().pass_by()
        return await self._effects.patched(name)

    @effect
    async def now(self, *, key: str | None = None) -> int:
        """Microseconds since the Unix epoch, as recorded; `time` gives a datetime."""
        return int((await self._effects.value(current.get().place(key), TimeRecorded)).value)

    @effect
    async def time(self, *, key: str | None = None) -> datetime:
        """The time in UTC, as recorded: `now` as a datetime."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=await self.now(key=key))

    @effect
    async def random(self, *, key: str | None = None) -> float:
        """A random number in [0, 1), as recorded."""
        return float((await self._effects.value(current.get().place(key), RandomRecorded)).value)

    @effect
    async def uuid(self, *, key: str | None = None) -> UUID:
        """A random UUID (version 4), as recorded."""
        return UUID(str((await self._effects.value(current.get().place(key), UuidRecorded)).value))

    @effect
    async def wait_signal(self, name: str, *, timeout: Span | datetime | None = None, key: str | None = None) -> Any:
        """The payload of the next signal of this name; earlier ones count.

        Raises TimeoutError after `timeout`: seconds, a timedelta, or a datetime with a time zone.
        """
        step = current.get().place(key)
        until = due(timeout, self._effects.handler.now())
        answer = await self._effects.wait(Wait(step=step, type="signal", key=name, due_at=until))
        if answer.timed_out:
            raise TimeoutError(f"no signal {name!r} {words(timeout)}")
        return answer.payload

    @effect
    async def poll_signal(self, name: str, *, key: str | None = None) -> Any:
        """The payload of the next signal of this name if one has come already, else None; earlier ones count."""
        step = current.get().place(key)
        answer = await self._effects.poll(Wait(step=step, type="signal", key=name))
        return None if answer is None else answer.payload

    @effect
    async def confirm(
        self, question: str, *, details: Any = None, timeout: Span | datetime | None = None, key: str | None = None
    ) -> Confirmed:
        """Ask a person, and wait for the answer however long it takes; after `timeout` the answer is no."""
        step = current.get().place(key)
        until = due(timeout, self._effects.handler.now())
        asks = {"question": question, "details": msgspec.to_builtins(details)}
        sha = digest({**asks, "details": msgspec.to_builtins(details, order="deterministic")})
        name = question_id(self.job_id, step)
        wait = Wait(step=step, type="human", key=name, due_at=until, reason=question, question=asks, request_hash=sha)
        answer = await self._effects.wait(wait)
        if answer.timed_out:
            return Confirmed(approved=False, reason="no one answered in time")
        return msgspec.convert(answer.payload, Confirmed)

    @effect
    async def child(self, bound: RecipeCall[T], *, key: str | None = None) -> T:
        """Run another recipe as a branch and return what it returns. Raises RunError (SKILL_DISABLED) if it may not."""
        recipe, step, packed = bound.recipe, current.get().place(key), pack(msgspec.json.encode(bound.input))
        started = ChildStarted(
            step=step,
            name=recipe.name,
            version=recipe.execution_version,
            request_hash=digest(bound.input),
            input=packed.inline,
            input_blob=packed.ref,
        )
        refused, arguments = await self._effects.child(started, packed.blobs), recipe.arguments(bound.input)
        try:
            if refused is not None:
                raise refused
            result = await self._branches.within(recipe.function(self, **arguments), f"{step}.0.")
        except Exception as error:
            await self._effects.child_ended(step, None, error_info(error))
            raise
        await self._effects.child_ended(step, result)
        return result

    @effect
    async def label(
        self, labels: Mapping[str, Label | None] | None = None, /, *, key: str | None = None, **more: Label | None
    ) -> None:
        """Give the job labels by which people find it: `await run.label(team="pay", amount=250)`; None takes one away.

        A value is text, a number, a bool, or a datetime with a zone. Lists, limits and tools see them from here on.
        Raises UsageError for a key or value that cannot be one, and for more than 64 at once.
        """
        labels_given = {check_key(name): value for name, value in {**(labels or {}), **more}.items()}
        if not 0 < len(labels_given) <= MOST:
            raise UsageError(f"a run gives 1 to {MOST} labels at once", remedy='Write run.label(team="pay").')
        texts = {name: None if value is None else text_of(value) for name, value in labels_given.items()}
        plain = {name: texts[name] if isinstance(value, datetime) else value for name, value in labels_given.items()}
        await self._effects.label(JobLabeled(step=current.get().place(key), labels=plain))

    @effect
    async def title(self, title: str, /, *, key: str | None = None) -> None:
        """Give the job another title for lists. Raises UsageError for one that is empty or over 200 characters."""
        if not 0 < len(title) <= LONGEST_TITLE:
            raise UsageError(f"a title has 1 to {LONGEST_TITLE} characters", remedy="Shorten it.")
        await self._effects.label(JobLabeled(step=current.get().place(key), title=title))

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Show people how far the run is; never recorded."""
        self._effects.handler.progress(done, total, message)

    # --- what is recorded

    @property
    def scheduled_for(self) -> datetime | None:
        """The time, in UTC, for which a schedule started the job; None: none did. A replay gives the same."""
        schedule = self.created.schedule if self.created is not None else None
        return None if schedule is None else datetime.fromtimestamp(schedule.at / 1_000_000, UTC)

    @property
    def created(self) -> JobCreated | None:
        """The first event of the job."""
        return self._effects.history.created

    @property
    def journal(self) -> Journal:
        """The journal, to be read only, and only what cannot change: else a replay takes another way."""
        return self._effects.journal

    def adopt(self, tip: str, job: str) -> None:
        """Questions may refer to a conversation, by its digest, that another job has recorded."""
        self._effects.history.known.adopt(tip, job)


def _thread_of(prompt: str | Sequence[Message]) -> Thread:
    return EMPTY.add(*([user(prompt)] if isinstance(prompt, str) else prompt))


def _undo(undo: Undo | None) -> Undo | None:
    """An undo that can be recorded. Raises UsageError if it is neither a call nor a function."""
    return undo if undo is None or callable(undo) else checked_undo(undo)


def question_id(job: str, step: str) -> str:
    """The confirmation that a recipe's question at a place is; the same in every pass."""
    return "c_" + encode(int.from_bytes(sha256(f"{job}/{step}".encode()).digest()[:16], "big"))
