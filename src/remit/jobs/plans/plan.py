"""A plan is data: a task graph (`taskgraph-v1`) whose nodes call tools, run recipes or wait (contract: versioning).

    Plan
    ├── inputs   what it is given: name -> Input
    ├── nodes    each does one thing, its action, once or for each item of a list
    │              CallTool    call a tool            args may hold references to inputs and to other nodes' results
    │              Child   run a recipe           input, the same
    │              Timer   wait so long
    │              Signal  wait for a message
    │              Human   ask a person            question and details, the same
    └── output   what it gives; where it is left out, every node's result

These are values that were found to be valid: check.py makes them from a decoded document, and `task_graph` writes
the document that is recorded, out of which the same check makes the same plan again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET

from remit.canonical import digest
from remit.codes import Code
from remit.jobs.plans.problem import InvalidPlanError, PlanProblem, cut, near, one_of
from remit.jobs.plans.references import Reference, kind_of, references
from remit.jobs.plans.shape import show_duration

SCHEMA_VERSION: Final = "taskgraph-v1"
MAX_ITEMS: Final = 1_000
"""Items a `for_each` takes where the node does not say."""
MAX_ITEMS_CEILING: Final = 10_000
CONCURRENCY: Final = 16
"""Items of a `for_each` that are under way at once where the node does not say."""

InputType = Literal["string", "integer", "number", "boolean", "array", "object"]
OnFailure = Literal["fail", "continue"]


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A value the plan is given; one without a default has to be."""

    type: InputType
    default: Any = UNSET
    description: str = ""


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """Call a tool that undoes the node's call, if the job fails or is cancelled after it."""

    name: str
    args: dict[str, Any] = {}


class CallTool(msgspec.Struct, frozen=True, kw_only=True):
    """Call a tool; the node's value is the call's."""

    name: str
    args: dict[str, Any] = {}
    timeout_ms: int | None = None
    undo: Undo | None = None
    """Its arguments may also refer to the node itself."""


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """Run a registered recipe; the node's value is what it returns."""

    recipe: str
    input: dict[str, Any] = {}


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """Wait so long; the node's value is true."""

    after_ms: int


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Wait for a message; the node's value is its payload."""

    name: str
    timeout_ms: int | None = None


class Human(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a person; the node's value is whether they approved."""

    question: str
    details: Any = None
    timeout_ms: int | None = None


Action = CallTool | Child | Timer | Signal | Human


class ForEach(msgspec.Struct, frozen=True, kw_only=True):
    """Do the action once per item of a list; the node's value is the list of values, in order."""

    over: Reference
    max_items: int = MAX_ITEMS
    concurrency: int = CONCURRENCY


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do, and when."""

    id: str
    action: Action
    for_each: ForEach | None = None
    when: Reference | None = None
    after: tuple[str, ...] = ()
    on_failure: OnFailure = "fail"
    description: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The nodes it waits for, by reference or by `after`, each once."""
        used = [*references(templates(self.action))]
        if isinstance(self.action, CallTool) and self.action.undo is not None:
            used += [one for one in references(self.action.undo.args) if one.node != self.id]
        if self.when is not None:
            used.append(self.when)
        if self.for_each is not None:
            used.append(self.for_each.over)
        return tuple(dict.fromkeys((*self.after, *(one.node for one in used if one.node is not None))))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A valid task graph."""

    name: str
    nodes: tuple[Node, ...]
    inputs: dict[str, Input] = {}
    output: Any = UNSET
    description: str = ""


def templates(action: Action) -> Any:
    """Return what of an action may hold references, as one JSON value."""
    match action:
        case CallTool():
            return action.args
        case Child():
            return action.input
        case Human():
            return [action.question, action.details]
        case Timer() | Signal():
            return None


def plan_hash(plan: Plan) -> str:
    """The plan's digest: the same for every way of writing the same plan."""
    return digest(task_graph(plan))


def task_graph(plan: Plan) -> dict[str, Any]:
    """The plan as a document of the format below, as `plan_generated` records it; what is a default is left out."""
    return _sparse(
        version=SCHEMA_VERSION,
        name=plan.name,
        description=plan.description,
        inputs={name: _input(one) for name, one in plan.inputs.items()},
        nodes=[_node(node) for node in plan.nodes],
    ) | ({} if plan.output is UNSET else {"output": plan.output})


def bind_inputs(plan: Plan, given: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """The plan's inputs by name, with defaults; `strict=False` also takes values written as text, as JSON writes them.

    Raises InvalidPlanError (`INVALID_INPUT`) with every misfit.
    """
    known = one_of([*plan.inputs]) if plan.inputs else "none: the plan takes no inputs"
    unknown = [name for name in given if name not in plan.inputs]
    problems = [_misfit(name, "unknown input", known + near(name, [*plan.inputs])) for name in unknown]
    bound: dict[str, Any] = {}
    for name, one in plan.inputs.items():
        value = given.get(name, one.default)
        if not strict and isinstance(value, str) and one.type != "string":
            value = _unquoted(value)
        if value is UNSET:
            problems.append(_misfit(name, "found nothing", _EXPECTED[one.type]))
        elif not fits(value, one.type):
            problems.append(_misfit(name, f"found {kind_of(value)}", _EXPECTED[one.type]))
        else:
            bound[name] = value
    if problems:
        raise InvalidPlanError(problems, plan.name, code=Code.INVALID_INPUT)
    return bound


def fits(value: Any, kind: InputType) -> bool:
    """Return whether a JSON value is of an input's type."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON[kind])


_PYTHON: Final[dict[InputType, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_EXPECTED: Final[dict[InputType, str]] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def _misfit(name: str, found: str, expected: str) -> PlanProblem:
    return PlanProblem(0, 0, f"inputs.{cut(name)}", found, expected)


def _unquoted(text: str) -> Any:
    """The JSON value that a text is; the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _sparse(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, ())}


def _input(one: Input) -> dict[str, Any]:
    return _sparse(type=one.type, description=one.description) | (
        {} if one.default is UNSET else {"default": one.default}
    )


def _node(node: Node) -> dict[str, Any]:
    return _sparse(
        id=node.id,
        description=node.description,
        **_action(node.action),
        **({} if node.for_each is None else _for_each(node.for_each)),
        when=node.when and str(node.when),
        after=list(node.after),
        on_failure=node.on_failure if node.on_failure != "fail" else None,
    )


def _for_each(fan: ForEach) -> dict[str, Any]:
    return _sparse(
        for_each=str(fan.over),
        max_items=fan.max_items if fan.max_items != MAX_ITEMS else None,
        concurrency=fan.concurrency if fan.concurrency != CONCURRENCY else None,
    )


def _action(action: Action) -> dict[str, Any]:
    match action:
        case CallTool():
            undo = action.undo
            return {
                "tool": action.name,
                "args": action.args,
                "timeout": _duration(action.timeout_ms),
                "undo": None if undo is None else {"tool": undo.name} | _sparse(args=undo.args),
            }
        case Child():
            return {"recipe": action.recipe, "input": action.input}
        case Timer():
            return {"wait": {"timer": show_duration(action.after_ms)}}
        case Signal():
            return {"wait": _sparse(signal=action.name, timeout=_duration(action.timeout_ms))}
        case Human():
            asked = _sparse(human=action.question, timeout=_duration(action.timeout_ms))
            return {"wait": asked | ({} if action.details is None else {"details": action.details})}


def _duration(millis: int | None) -> str | None:
    return None if millis is None else show_duration(millis)
