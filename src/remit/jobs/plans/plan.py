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

The grammar of `taskgraph-v1`: fields, forms and bounds, as a JSON schema (2020-12) for editors and other programs.

check.py reads its fields, forms and bounds from here, and is stricter: a schema cannot say that a name is known, or
that nodes do not wait for each other.

Brings a recorded task graph of an older format into today's: one step for each format that there was.

A graph is recorded once and never planned again, so a Remit with a new format must read every older one. A format that
comes after today's was recorded by a newer Remit, which alone can carry it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET

from remit.canonical import digest
from remit.codes import Code
from remit.errors import VersionError
from remit.jobs.plans import problem as shape
from remit.jobs.plans.problem import InvalidPlanError, PlanProblem, cut, near, one_of, show_duration
from remit.jobs.plans.references import Reference, kind_of, references
from remit.regex import regex

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
            used += [reference for reference in references(self.action.undo.args) if reference.node != self.id]
        if self.when is not None:
            used.append(self.when)
        if self.for_each is not None:
            used.append(self.for_each.over)
        return tuple(
            dict.fromkeys((*self.after, *(reference.node for reference in used if reference.node is not None)))
        )


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
        inputs={name: _input(parameter) for name, parameter in plan.inputs.items()},
        nodes=[_node(node) for node in plan.nodes],
    ) | ({} if plan.output is UNSET else {"output": plan.output})


def bind_inputs(plan: Plan, args: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """The plan's inputs by name, with defaults; `strict=False` also takes values written as text, as JSON writes them.

    Raises InvalidPlanError (`INVALID_INPUT`) with every misfit.
    """
    known = one_of([*plan.inputs]) if plan.inputs else "none: the plan takes no inputs"
    unknown = [name for name in args if name not in plan.inputs]
    problems = [_misfit(name, "unknown input", known + near(name, [*plan.inputs])) for name in unknown]
    bound: dict[str, Any] = {}
    for name, parameter in plan.inputs.items():
        value = args.get(name, parameter.default)
        if not strict and isinstance(value, str) and parameter.type != "string":
            value = _unquoted(value)
        if value is UNSET:
            problems.append(_misfit(name, "found nothing", _EXPECTED[parameter.type]))
        elif not fits(value, parameter.type):
            problems.append(_misfit(name, f"found {kind_of(value)}", _EXPECTED[parameter.type]))
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


def _misfit(name: str, actual: str, expected: str) -> PlanProblem:
    return PlanProblem(0, 0, f"inputs.{cut(name)}", actual, expected)


def _unquoted(text: str) -> Any:
    """The JSON value that a text is; the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _sparse(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, ())}


def _input(parameter: Input) -> dict[str, Any]:
    return _sparse(type=parameter.type, description=parameter.description) | (
        {} if parameter.default is UNSET else {"default": parameter.default}
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
            fields = _sparse(human=action.question, timeout=_duration(action.timeout_ms))
            return {"wait": fields | ({} if action.details is None else {"details": action.details})}


def _duration(millis: int | None) -> str | None:
    return None if millis is None else show_duration(millis)


MAX_NODES: Final = 2_000
MAX_CONCURRENCY: Final = 1_000

ID: Final = regex(r"[a-z][a-z0-9_-]{0,63}")
INPUT_NAME: Final = regex(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
TOOL: Final = regex(r"[a-z0-9_]+(?:\.[A-Za-z0-9_-]+)*")
RECIPE: Final = regex(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")
SIGNAL: Final = regex(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")

RECIPES: Final = {"model": "ask_model", "agent": "agent"}
"""Recipes of Remit's own that a node names in one word, with their input."""
ACTIONS: Final = ("tool", "recipe", *RECIPES, "wait")
HOMES: Final = {"args": "tool", "input": "recipe", "timeout": "tool", "undo": "tool"}
"""Fields of a node that belong to one action."""
BOUNDS: Final = ("max_items", "concurrency")
"""Fields of a node that belong to `for_each`."""
WAITS: Final = ("timer", "signal", "human")
WAIT_HOMES: Final = {"timeout": ("signal", "human"), "details": ("human",)}
"""Fields of a wait, and the waits that they belong to."""


def _form(form: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{form.pattern}$"}


def _object(required: tuple[str, ...], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "additionalProperties": False, **needs, "properties": properties, **more}


def _wait(kind: str) -> dict[str, Any]:
    """A wait of this kind has no fields that belong to others."""
    others = [{"required": [name]} for name, homes in WAIT_HOMES.items() if kind not in homes]
    return {"required": [kind]} | ({"not": {"anyOf": others}} if others else {})


_TEXT: Final = {"type": "string"}
_VALUES: Final = {"type": "object", "description": "Values by name; texts in it may hold references."}
_DURATION: Final = _form(shape.FORM) | {"minLength": 2, "description": "Such as 500ms, 10s or 1h30m."}
_REFERENCE: Final = {
    "type": "string",
    "pattern": "^\\$\\{.+\\}$",
    "description": "One reference, such as ${find.value}.",
}

INPUT: Final = _object(
    ("type",),
    {
        "type": {"enum": list(get_args(InputType))},
        "default": {"description": "The value where none is given; without it the input has to be given."},
        "description": _TEXT,
    },
)
WAIT: Final = _object(
    (),
    {
        "timer": _DURATION,
        "signal": _form(SIGNAL),
        "human": {"type": "string", "minLength": 1, "description": "The question; it may hold references."},
        "timeout": _DURATION,
        "details": {"description": "What the person is shown with the question; it may hold references."},
    },
    oneOf=[_wait(kind) for kind in WAITS],
)
UNDO: Final = _object(
    ("tool",),
    {"tool": _form(TOOL), "args": _VALUES},
    description="The call that undoes this one; it may refer to this node.",
)
NODE: Final = _object(
    ("id",),
    {
        "id": _form(ID),
        "description": _TEXT,
        "tool": _form(TOOL),
        "recipe": _form(RECIPE),
        **dict.fromkeys(RECIPES, _VALUES),
        "wait": WAIT,
        "args": _VALUES,
        "input": _VALUES,
        "timeout": _DURATION,
        "for_each": _REFERENCE,
        "max_items": {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS_CEILING},
        "concurrency": {"type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY},
        "when": _REFERENCE,
        "after": {"type": "array", "items": _TEXT},
        "on_failure": {"enum": list(get_args(OnFailure))},
        "undo": UNDO,
    },
    dependentRequired={name: [home] for name, home in HOMES.items()} | {bound: ["for_each"] for bound in BOUNDS},
    oneOf=[{"required": [action]} for action in ACTIONS],
)

TASKGRAPH_V1: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": SCHEMA_VERSION,
} | _object(
    ("version", "name", "nodes"),
    {
        "version": {"const": SCHEMA_VERSION},
        "name": _form(ID),
        "description": _TEXT,
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": f"^{INPUT_NAME.pattern}$"},
            "additionalProperties": INPUT,
        },
        "nodes": {"type": "array", "minItems": 1, "maxItems": MAX_NODES, "items": NODE},
        "output": {"description": "What the plan gives; it may hold references. Left out: every node's result."},
    },
)
"""The document that `remit run FILE` takes."""


_FORMAT: Final = regex(r"taskgraph-v([1-9][0-9]{0,5})")
_NEWER: Final = "Upgrade Remit here, or leave the job to a worker that has the newer one."
_OTHER: Final = "Resume the job where matching code runs, or cancel it."


class Upgrade(NamedTuple):
    """A step from one format to the next."""

    to: str
    """The format that it makes."""
    change: Callable[[dict[str, Any]], dict[str, Any]]
    """Takes a graph of the earlier format and returns the same one in the later format; pure."""


UPGRADES: Final[Mapping[str, Upgrade]] = {}
"""Upgrades by the format that each takes. `taskgraph-v1` is the first format and today's, so there is none yet."""


def upgraded(
    graph: object, recorded: str, upgrades: Mapping[str, Upgrade] = UPGRADES, today: str = SCHEMA_VERSION
) -> object:
    """Return a recorded graph in today's format; `recorded` is the format that the journal names.

    Raises VersionError: PLAN_NEWER for a format after today's, else if no way leads to it or a step fails.
    """
    written, passed = _format_of(graph, recorded), set[str]()
    while written != today:
        if _is_newer(written, today):
            reason = f"the recorded plan is {written}, and this Remit reads {today}: a newer Remit recorded it"
            raise VersionError(reason, code=Code.PLAN_NEWER, remedy=_NEWER)
        step = upgrades.get(written)
        if step is None or written in passed or not isinstance(graph, dict):
            raise VersionError(f"no upgrade leads from {written:.80} to {today}", remedy=_OTHER)
        passed.add(written)
        graph = _changed(graph, written, step)
        written = step.to
    return graph


def _is_newer(written: str, today: str) -> bool:
    """Return whether a format comes after today's."""
    match, ours = _FORMAT.fullmatch(written), _FORMAT.fullmatch(today)
    return match is not None and ours is not None and int(match[1]) > int(ours[1])


def _format_of(graph: object, recorded: str) -> str:
    """The format of a graph: what it says itself, else what was recorded beside it."""
    version = graph.get("version") if isinstance(graph, dict) else None
    return version if isinstance(version, str) else recorded


def _changed(graph: dict[str, Any], written: str, step: Upgrade) -> dict[str, Any]:
    try:
        newer = {**step.change(graph), "version": step.to}
    except Exception as error:
        reason = f"the upgrade from {written} to {step.to} failed: {type(error).__name__}: {error}"
        raise VersionError(reason, remedy=_OTHER) from error
    return newer
