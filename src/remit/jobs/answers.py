"""A model's answer as recipes see it, and the form that an answer may have to have.

Results that the methods of a run return and raise, beside plain values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RunError, SchemaError
from remit.gateway.budget import Budget
from remit.gateway.outcome import Outcome, RecordedAnswer, failed
from remit.jobs.branch import current
from remit.models.message import user
from remit.models.prompt import OutputForm, Sampling
from remit.models.reply import ModelReply
from remit.models.strict import without_nulls
from remit.models.thread import Thread
from remit.tools.hints import from_json
from remit.tools.provider import unindented
from remit.tools.schema import CompiledSchema, compile_schema

if TYPE_CHECKING:
    from remit.jobs.effects.effects import Effects
    from remit.jobs.effects.port import ModelQuestion


NO_SAMPLING: Final = Sampling()
NO_BUDGET: Final = Budget()
_TRIES: Final = 3
"""Answers in all that may not have the form asked for."""
_EMPTY: Final = 3
"""Answers in a row that may be empty."""
_PAUSES: Final = 8
"""The number of times that a provider may want an answer sent back to go on."""
_OTHERWISE: Final = "Change the prompt, or use another model."
_VALUE: Final = "value"
"""The property that holds an answer whose form is not an object."""
_REF: Final = "#/$defs/"


class ModelError(RunError):
    """A model gave no answer that can be used; `outcome` says why, and `reply` is what it said, if it said anything."""

    def __init__(self, outcome: Outcome, step: str, reply: ModelReply | None = None) -> None:
        self.outcome = outcome
        self.step = step
        self.reply = reply
        super().__init__(outcome.reason, code=outcome.code, remedy=outcome.remedy)


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    reply: ModelReply
    thread: Thread
    """The conversation with the answer at its end."""
    value: Any = None
    """The answer in the form that was asked for."""
    cost: float | None = None
    """US dollars, estimated; None: no price is known."""

    @property
    def text(self) -> str:
        """Its plain text."""
        return self.reply.text


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent ended."""

    answer: Any
    """The text of the answer, or the value in the form asked for; None if there is none."""
    ended: str
    """`answer`, or why it stopped without one: `turns`, `time`, `budget`, `repeats`."""
    turns: int
    calls: int
    """Calls of tools, those included that were refused."""
    tokens: int
    cost: float | None
    """US dollars, estimated; None: a price is not known."""
    shortened: int = 0
    """The number of times that older turns were left out or summarised."""


class AnswerForm(msgspec.Struct, frozen=True):
    """The form an answer must have."""

    output: OutputForm
    schema: CompiledSchema
    kind: Any
    wrapped: bool
    """Whether the value stands in a property of an object, which is the only root that providers take."""

    def read(self, text: str) -> Any:
        """The value in an answer's text. Raises ValueError with what is wrong with it."""
        try:
            value = without_nulls(msgspec.json.decode(text), self.output.schema)
        except msgspec.DecodeError as error:
            raise ValueError(f"it is not JSON: {error}") from error
        problems = self.schema.problems(value)
        if problems:
            raise ValueError("; ".join(f"{problem.path or '/'} {problem.message}" for problem in problems[:5]))
        try:
            return from_json(value[_VALUE] if self.wrapped else value, self.kind)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type, without references; a JSON schema is one already. Raises SchemaError."""
    if isinstance(kind, dict):
        return kind
    try:
        return _inlined(unindented(msgspec.json.schema(kind)))
    except (TypeError, RecursionError) as error:
        raise SchemaError(f"{kind!r} cannot be the form of an answer: {error}") from error


def form_of(kind: Any) -> AnswerForm:
    """The form of a type, or of a JSON schema. Raises SchemaError if it has none."""
    schema, name = schema_of(kind), "answer"
    if isinstance(kind, dict):
        kind = Any
    else:
        name = getattr(kind, "__name__", name)
    wrapped = schema.get("type") != "object"
    if wrapped:
        schema = {"type": "object", "properties": {_VALUE: schema}, "required": [_VALUE]}
    safe = "".join(char if char.isascii() and char.isalnum() else "_" for char in name)[:60]
    return AnswerForm(OutputForm(name=safe, schema=schema), compile_schema(schema, closed=False), kind, wrapped)


async def answer_to(effects: Effects, question: ModelQuestion, form: AnswerForm | None) -> ModelAnswer:
    """Ask until there is an answer that can be used; each question after the first has a place of its own.

    Raises ModelError.
    """
    thread, pauses, tries, empty, cost = question.thread, 0, 1, 0, 0.0
    while True:
        answer = await _asked(effects, question)
        reply = answer.reply
        cost += answer.cost or 0.0
        empty = empty + 1 if reply.stop == "empty" else 0
        thread = thread if empty else thread.add(reply.message)  # nothing was said, and some providers refuse nothing
        total = cost if answer.cost is not None else None
        if reply.stop == "paused" and pauses < _PAUSES:
            pauses += 1
        elif empty == _EMPTY:
            reason = f"{_EMPTY} answers in a row were empty ({reply.stop_raw or 'no reason given'})"
            raise ModelError(failed(Code.MODEL_EMPTY, reason, _OTHERWISE), question.step, reply)
        elif empty:
            pass
        elif reply.stop not in {"answer", "tools"}:
            reason = f"the model stopped without an answer: {reply.stop} ({reply.stop_raw})"
            raise ModelError(
                failed(Code.MODEL_STOPPED, reason, "Change the prompt, or allow more output tokens."),
                question.step,
                reply,
            )
        elif form is None or reply.stop == "tools":
            return ModelAnswer(reply=reply, thread=thread, cost=total)
        else:
            try:
                return ModelAnswer(reply=reply, thread=thread, value=form.read(reply.text), cost=total)
            except ValueError as error:
                if tries == _TRIES:
                    reason = f"{_TRIES} answers did not have the requested form: {error}"
                    raise ModelError(failed(Code.MODEL_ANSWER_INVALID, reason), question.step, reply) from error
                tries += 1
                thread = thread.add(user(f"Your answer does not fit: {error}. Answer again, with only the JSON."))
        question = msgspec.structs.replace(question, step=current.get().place(), thread=thread)


async def _asked(effects: Effects, question: ModelQuestion) -> RecordedAnswer:
    outcome = await effects.ask(question)
    if not outcome.ok:
        raise ModelError(outcome, question.step)
    value: RecordedAnswer = outcome.value
    return value


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, which some models do not see. Raises RecursionError for a recursive type."""
    definitions = schema.get("$defs", {})

    def inline(value: Any, depth: int) -> Any:
        if depth > 50:  # noqa: PLR2004 - no form that a model could fill is deeper
            raise RecursionError("the type contains itself")
        if isinstance(value, list):
            return [inline(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(reference := value.get("$ref"), str) and reference.startswith(_REF):
            return inline(definitions[reference.removeprefix(_REF)], depth + 1)
        left_out = {"$defs"} | ({"title"} if isinstance(value.get("title"), str) else set())  # or a property's name
        return {name: inline(item, depth + 1) for name, item in value.items() if name not in left_out}

    inlined: dict[str, Any] = inline(schema, 0)
    return inlined


class CallError(RunError):
    """A call did not end well; `outcome` says how."""

    def __init__(self, outcome: Outcome, tool: str, step: str) -> None:
        self.outcome = outcome
        self.cause = outcome.cause
        self.tool = tool
        self.step = step
        super().__init__(outcome.reason, code=outcome.code, remedy=outcome.remedy)


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer to a question."""

    approved: bool
    by: str = ""
    reason: str = ""


class Compensated(msgspec.Struct, frozen=True, kw_only=True):
    """What was undone."""

    undone: tuple[str, ...] = ()
    """Steps whose calls were undone, in that order."""
    left: tuple[str, ...] = ()
    """Steps that stay as they are, as a person decided."""
