"""The loop: ask the model, make the calls it wants, give it the results, until it has answered.

Everything that is not deterministic is an effect of the run, so that after a crash, a wait of days or a move to another
machine the loop comes to the same place: recorded answers are not asked for again and recorded calls not made again.
The next question goes out only once every call of the answer before has a result, in the order of the calls.

Recipes as tools of an agent: each runs as a part of the agent's own job, so its effects are recorded there.

A goal: the task of an agent, with which model and tools, and within which limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import RunError, SchemaError, UsageError
from remit.gateway.budget import Budget
from remit.gateway.conversation import Conversation, values_of
from remit.gateway.model_request import OUTPUT
from remit.gateway.outcome import (
    CONTINUE,
    CUT_SHORT,
    NOT_OFFERED,
    REPEATED,
    TOO_OFTEN,
    Outcome,
    failed,
    failure,
    refused,
    text_of,
)
from remit.jobs.answers import AgentAnswer, CallError, ModelError
from remit.jobs.bound import RecipeCall
from remit.jobs.branch import asking
from remit.jobs.end import FATAL
from remit.jobs.skills import AGENT, under
from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.message import ToolCall, ToolMessage, results, system, user
from remit.models.prompt import Sampling, ToolSpec
from remit.models.thread import EMPTY, Thread, summarised, to_summarise, without_old_results
from remit.parts.agents.skills import AgentSkills
from remit.record.transcript import LONG_RESULT, NO_RESULTS, READ_MORE, RUN, SPEC, CallResults
from remit.tools import hints

if TYPE_CHECKING:
    from remit.jobs.answers import ModelAnswer
    from remit.jobs.bound import RecipeDefinition
    from remit.jobs.run import Run


RECORDED: Final = "refusals of the agent are recorded"
"""The change after which a call that an agent itself refuses is a step; older jobs have none of it."""


class Helpers:
    """The recipes that one agent may run."""

    def __init__(self, run: Run, patterns: tuple[str, ...]) -> None:
        self._run = run
        self._recipes: dict[str, RecipeDefinition[Any]] = {}
        self.specs: list[ToolSpec] = []
        """The tools as they are offered."""
        for name in run.recipes.names() if patterns else ():
            if name != AGENT and any(fnmatchcase(name, pattern) for pattern in patterns):
                self._offer(run.recipes.get(name))

    def _offer(self, recipe: RecipeDefinition[Any]) -> None:
        try:
            schema = hints.read(recipe.function, leading=1).input_schema
        except SchemaError:  # as with recipes that clients may start: what has no schema is not offered
            return
        about = " ".join((recipe.function.__doc__ or "").partition("\n\n")[0].split())
        tool = RUN + recipe.name.replace(".", "__")
        self._recipes[tool] = recipe
        self.specs.append(
            ToolSpec(name=tool, description=about or f"Runs the recipe {recipe.name}.", schema=schema or {})
        )

    def has(self, tool: str) -> bool:
        """Return whether a tool, by the name that models see, is one of these."""
        return tool in self._recipes

    async def run(self, tool: str, args: dict[str, Any], conversation: Conversation) -> Outcome:
        """Run a recipe to its end for a model in a `conversation`; what it fails with is the outcome."""
        recipe = self._recipes[tool]
        try:
            recipe.arguments(args)
        except UsageError as error:
            outcome = refused(Code.INVALID_TOOL_ARGS, error.message, error.remedy)
            if await self._run.patched(RECORDED):
                await self._run.attempt(tool.replace("__", "."), args, conversation=conversation, barred=outcome)
            return outcome
        token = asking.set(msgspec.structs.replace(conversation, call="", known_values=values_of(args)))
        try:
            value = await self._run.child(RecipeCall(recipe, args))
        except CallError as error:
            return error.outcome
        except (RunError, UsageError) as error:
            if error.code in FATAL:
                raise
            return failed(error.code, error.message, error.remedy)
        finally:
            asking.reset(token)
        return Outcome(status="ok", value=hints.to_json(value))


CHAT: Final = "chat"
"""Name of the signals by which people say more to an agent at work; the payload is the text."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its limits."""

    task: str
    """The question to the agent; the newest message of its conversation."""
    tools: tuple[str, ...] = ()
    """Full names of tools that it may call, or patterns of them."""
    recipes: tuple[str, ...] = ()
    """Names of recipes that it may run as parts of its job, or patterns of them; never the agent's own."""
    model: str = ""
    """Name of the model; empty: the configured one."""
    instructions: str = ""
    """The system message, if there is no conversation so far."""
    output: Any = None
    """A type or JSON schema that the answer must have the form of."""
    turns: int = 50
    """Answers of the model, at most."""
    calls_per_tool: int | None = None
    """Calls of one tool, at most."""
    wall_s: float | None = None
    """Seconds after which no new turn begins, waiting for people included."""
    budget: Budget = Budget()
    """Tokens, dollars and calls of models, over the whole job."""
    sampling: Sampling = Sampling()
    long_result: int = LONG_RESULT
    """Characters of a tool's result that the model gets at once; it can read on."""
    context_tokens: int | None = None
    """Input tokens from which on older turns are shortened; None: only if the model says that its context is full."""


def admit(limits: Mapping[str, Any]) -> None:
    """Refuse a budget in tokens that covers no answer. Raise UsageError (INVALID_BUDGET)."""
    tokens, most = limits.get("tokens"), limits.get("max_output_tokens") or OUTPUT
    if tokens is not None and tokens <= most:
        reason = f"a budget of {tokens} tokens covers no answer of a model, for which {most} are reserved"
        raise UsageError(reason, code=Code.INVALID_BUDGET, remedy=f"Give more: {most}, and what the question takes.")


_CUTS: Final = 2
"""The number of answers in a row that may run into their limit."""
_ROOM: Final = 0.7
"""The size down to which a conversation is cut that has to be shortened."""
_FULL: Final = frozenset({"context_full"})


class Asked(NamedTuple):
    """A call that a model wants, as far as the agent itself lets it."""

    args: dict[str, Any] | None
    """None: it is answered at once, by no tool."""
    result: ToolMessage
    """The answer to a call that is not made."""
    barred: Outcome | None = None


class AgentLoop:
    """One agent at work in a run."""

    def __init__(
        self,
        run: Run,
        goal: Goal,
        thread: Thread = EMPTY,
        results: Mapping[str, str] = NO_RESULTS,
        skills: AgentSkills | None = None,
    ) -> None:
        self._skills = skills or AgentSkills(())
        instructions = self._skills.instructions(goal.instructions)
        if not len(thread) and instructions:
            thread = thread.add(system(instructions))
        self.thread = thread.add(user(goal.task)) if goal.task else thread
        self._run = run
        self._goal = goal
        self._results = CallResults(goal.long_result, results)
        self._before: tuple[Thread, ...] = ()
        """The conversations that this one was shortened from."""
        self._answers: dict[str, str] = {}
        """Calls that no tool answered, and the call whose result the answer repeats."""
        self._foreign = frozenset(
            block.id for message in thread.messages() for block in message.blocks if isinstance(block, ToolMessage)
        ).union(results)
        self._repeats = Repeats()
        self._helpers = Helpers(run, goal.recipes)
        self._called: Counter[str] = Counter()
        self._taken: list[tuple[str, dict[str, Any]]] = []
        """Calls of this turn that the skills take note of."""
        self._turns = self._calls = self._tokens = self._shortened = self._cuts = 0
        self._cost: float | None = 0.0
        self._until: int | None = None
        self._messages = self._polled = 0
        self._due = False
        """Return whether room is to be made before the next question."""

    async def run(self) -> AgentAnswer:
        """Go on, under the agent's skills, until there is an answer. Raises ModelError if the model gives none."""
        with under(self._skills.skilled):
            return await self._run_on()

    async def _run_on(self) -> AgentAnswer:
        """Go on until there is an answer or a limit is reached. Raises ModelError if the model gives none."""
        goal = self._goal
        if goal.wall_s is not None:
            self._until = await self._run.now() + int(goal.wall_s * SECOND)
        while self._turns < goal.turns:
            if self._until is not None and await self._run.now() >= self._until:
                return self._ended("time")
            await self._listen()
            try:
                answer = await self._asked()
            except ModelError as error:
                if error.outcome.code is Code.BUDGET_EXCEEDED:
                    self._run.progress(f"stopped: {error.outcome.reason}")
                    return self._ended("budget")
                raise
            if answer is None:
                continue
            if answer.reply.stop == "answer":
                if self._turns < goal.turns and await self._listen():
                    continue
                return self._ended("answer", answer.value if goal.output is not None else answer.text)
            await self._carry_out(answer.reply.calls)
            if self._repeats.insisted >= ENOUGH:
                return self._ended("repeats")
        return self._ended("turns")

    def _ended(self, how: str, answer: Any = None) -> AgentAnswer:
        return AgentAnswer(
            answer=answer,
            ended=how,
            turns=self._turns,
            calls=self._calls,
            tokens=self._tokens,
            cost=self._cost,
            shortened=self._shortened,
        )

    async def _listen(self) -> bool:
        """Take in what people said to the agent meanwhile (`remit chat`); whether anyone did."""
        before = self._messages
        while (message := await self._run.poll_signal(CHAT, key=f"chat-{self._polled}")) is not None:
            self.thread = self.thread.add(user(text_of(message)))
            self._messages += 1
            self._polled += 1
        self._polled += 1
        return self._messages > before

    # --- the model

    async def _asked(self) -> ModelAnswer | None:
        """The next answer, with the conversation grown by it; None if it was cut, and the model was told."""
        goal = self._goal
        self._run.progress(f"turn {self._turns + 1}")
        try:
            answer = await self._run.model(
                self.thread,
                model=goal.model,
                output=goal.output,
                tools=self._patterns,
                extra=(SPEC,) if goal.tools or goal.recipes or self._skills else (),
                offered=(*self._helpers.specs, *self._skills.specs),
                sampling=goal.sampling,
                budget=goal.budget,
            )
        except ModelError as error:
            self._turns += 1
            if _is_full(error) and await self._shorten():
                return None
            if self._is_cut(error):
                return None
            raise
        self._turns += 1
        self._cuts = 0
        self.thread = answer.thread
        self._count(answer)
        usage = answer.reply.usage
        if goal.context_tokens is not None and usage is not None and usage.input >= goal.context_tokens:
            self._due = True
        return answer

    def _count(self, answer: ModelAnswer) -> None:
        usage = answer.reply.usage
        self._tokens += usage.total if usage else 0
        self._cost = None if self._cost is None or answer.cost is None else self._cost + answer.cost

    def _is_cut(self, error: ModelError) -> bool:
        """Return whether an answer ran into its limit: then the model goes on, and no calls of this turn are made."""
        reply = error.reply
        if reply is None or reply.stop != "length" or self._cuts == _CUTS:
            return False
        self._cuts += 1
        self.thread = self.thread.add(reply.message)
        calls = reply.message.calls
        if calls:
            self._answers.update(dict.fromkeys((call.id for call in calls), ""))
            self._give([ToolMessage(call.id, call.name, CUT_SHORT, failed=True) for call in calls])
        else:
            self.thread = self.thread.add(user(CONTINUE))
        return True

    # --- room

    async def _shorten(self) -> bool:
        """Make room, if anything can go: old results first, and older turns by a summary if that is not enough."""
        wanted = self.thread.size * _ROOM
        shorter = without_old_results(self.thread)
        if shorter is not self.thread:
            self._replace(shorter)
            self._shortened += 1
            self._run.progress("older results were left out to make room")
            if shorter.size <= wanted:
                return True
        threads = to_summarise(self.thread)
        if threads is None:
            return False
        question, question_kept = threads
        answer = await self._run.model(question, model=self._goal.model, budget=self._goal.budget)
        self._count(answer)
        self._replace(summarised(self.thread, question_kept, answer.text))
        self._shortened += 1
        self._run.progress("older turns were summarised to make room")
        return True

    def _replace(self, shorter: Thread) -> None:
        """Continue another conversation; what the model read in this one still counts."""
        self._before = (*self._before, self.thread)
        self.thread = shorter

    # --- tools

    async def _carry_out(self, calls: tuple[ToolCall, ...]) -> None:
        """Make the calls of one answer at once; one that waits for a person holds up none of the others."""
        self._calls += len(calls)
        checked = [self._checked(call) for call in calls]
        recorded = any(checked_call.barred for checked_call in checked) and await self._run.patched(RECORDED)
        passed = [
            checked_call.args is not None and (checked_call.barred is None or recorded) for checked_call in checked
        ]
        requests = [
            self._made(call, checked_call)
            for call, checked_call, passes in zip(calls, checked, passed, strict=True)
            if passes
        ]
        outcomes = iter(await self._run.gather(*requests))
        for name, skill in self._taken:
            self._skills.take(name, skill)
        self._taken.clear()
        self._give(
            [
                next(outcomes) if passes else checked_call.result
                for checked_call, passes in zip(checked, passed, strict=True)
            ]
        )
        if self._due:
            self._due = False
            await self._shorten()

    def _give(self, messages: list[ToolMessage]) -> None:
        self.thread = self.thread.add(results(*messages))

    def _checked(self, call: ToolCall) -> Asked:
        """Return what becomes of a call: it is made, refused, or answered at once."""
        args: dict[str, Any] = {}

        def barred(code: Code, text: str) -> Asked:
            self._answers[call.id] = ""
            return Asked(args, ToolMessage(call.id, call.name, text, failed=True), refused(code, text))

        try:
            args = arguments_of(call.arguments)
        except InvalidArgumentsError as error:
            return barred(Code.INVALID_TOOL_ARGS, f"Invalid arguments: {error}")
        if call.name == READ_MORE:
            text, is_known = self._results.read(args)
            self._answers[call.id] = args["id"] if is_known else ""
            return Asked(None, ToolMessage(call.id, call.name, text, failed=not is_known))
        name = call.name.replace("__", ".")
        if not self._offers(call.name) or (
            self._skills.has(call.name) and self._skills.arguments(call.name, args) is None
        ):
            return barred(Code.TOOL_NOT_OFFERED, NOT_OFFERED)
        stale = self._repeats.stale(name, call.arguments)
        self._repeats.insist(stale=stale)
        if stale:
            return barred(Code.CALL_REPEATED, REPEATED)
        most = self._goal.calls_per_tool
        if most is not None and self._called[name] >= most:
            return barred(Code.BUDGET_EXCEEDED, TOO_OFTEN)
        self._called[name] += 1
        return Asked(args, ToolMessage(call.id, call.name, ""))

    @property
    def _patterns(self) -> tuple[str, ...]:
        """The tools of the catalog that are offered."""
        return self._skills.patterns(self._goal.tools)

    def _offers(self, tool: str) -> bool:
        """Return whether a tool, by the name that models see, is one that this agent may ask for."""
        if self._helpers.has(tool) or self._skills.has(tool):
            return True
        return any(fnmatchcase(tool.replace("__", "."), pattern) for pattern in self._patterns)

    async def _made(self, call: ToolCall, checked: Asked) -> ToolMessage:
        """Call a tool, or have a call recorded that is refused; whatever its outcome, it becomes a result."""
        name, args = call.name.replace("__", "."), checked.args or {}
        conversation = Conversation(
            call=call.id,
            threads=(*self._before, self.thread),
            answers=self._answers,
            foreign=self._foreign,
            shown=self._skills.shown,
            outer=asking.get(),
        )
        if checked.barred is not None:
            await self._run.attempt(name, args, conversation=conversation, barred=checked.barred)
            return checked.result
        if self._skills.has(call.name) and (skill := self._skills.arguments(call.name, args)) is not None:
            conversation = msgspec.structs.replace(conversation, vouched=skill[1])
            outcome = await self._run.attempt(name, skill[0], conversation=conversation)
            if outcome.ok:
                self._taken.append((call.name, skill[0]))
        elif self._helpers.has(call.name):
            outcome = await self._helpers.run(call.name, args, conversation)
        else:
            outcome = await self._run.attempt(name, args, conversation=conversation)
        text = self._results.keep(call.id, outcome.value) if outcome.ok else failure(outcome)
        self._repeats.note(name, call.arguments, text, changes=outcome.ok or outcome.effect.known == "committed")
        return ToolMessage(call.id, call.name, text, failed=not outcome.ok)


def _is_full(error: ModelError) -> bool:
    if error.outcome.code is Code.MODEL_CONTEXT_FULL:
        return True
    return error.reply is not None and error.reply.stop in _FULL


ALLOWED: Final = 3
"""The number of times that the same call may give the same result before it is not made any more."""
ENOUGH: Final = 3
"""The number of times that a model may insist on such a call before the agent stops."""


class Repeats:
    """Counts calls by name and arguments, and how often each gave the same result in a row."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[str, int]] = {}
        self.insisted = 0
        """The number of times that a call that is not made any more was asked for in a row."""

    def stale(self, name: str, arguments: str) -> bool:
        """Return whether this call has given the same result so often that it is not made any more."""
        return self._last.get((name, arguments), ("", 0))[1] >= ALLOWED

    def note(self, name: str, arguments: str, result: str, *, changes: bool) -> None:
        """A call gave this result; one that `changes` something may make any other call give another result."""
        before, times = self._last.get((name, arguments), ("", 0))
        same = times + 1 if before == result else 1
        if changes and same == 1:
            self._last.clear()
        self._last[name, arguments] = (result, same)

    def insist(self, *, stale: bool) -> None:
        """A call was asked for that is `stale`, or one that is not."""
        self.insisted = self.insisted + 1 if stale else 0
