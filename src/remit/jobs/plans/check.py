"""Whether a decoded document is a plan, and the plan it is. Every problem is collected, not only the first.

Here the parts are checked one by one; what they say of each other (unknown nodes, loops) is checked in links.py.
A part that is wrong is stood in for, so that the rest can be checked without problems that only follow from it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, get_args

from msgspec import UNSET

from remit.jobs.plans import schema
from remit.jobs.plans.fields import FieldReader, listed
from remit.jobs.plans.links import BROKEN, Link, check_links
from remit.jobs.plans.plan import (
    CONCURRENCY,
    MAX_ITEMS,
    MAX_ITEMS_CEILING,
    SCHEMA_VERSION,
    Action,
    CallTool,
    Child,
    ForEach,
    Human,
    Input,
    InputType,
    Node,
    OnFailure,
    Plan,
    Signal,
    Timer,
    Undo,
    fits,
)
from remit.jobs.plans.problem import Findings, InvalidPlanError, Marks, Path, cut
from remit.jobs.plans.references import INPUTS, RESERVED, Reference, ReferenceSyntaxError, kind_of, parse, single, texts
from remit.jobs.plans.shape import check_shape

_ONE_ACTION: Final = "exactly one of `tool`, `recipe`, `model`, `agent` and `wait`"
_A_REFERENCE: Final = "one reference and nothing else, such as ${find.value.items}"


def read_plan(
    document: Any,
    *,
    file: str = "plan",
    marks: Marks | None = None,
    tools: Collection[str] | None = None,
    recipes: Collection[str] | None = None,
) -> Plan:
    """The plan that a decoded document describes.

    `marks` say where its parts stand in `file`. Where the names of `tools` or `recipes` are given, another one is a
    problem. Raises InvalidPlanError with every problem.
    """
    findings = Findings(marks or Marks())
    check_shape(document, findings)
    plan = None
    if not findings.problems:
        plan = _Check(findings, tools, recipes).plan(document)
    if findings.problems or plan is None:
        raise InvalidPlanError(findings.problems, file)
    return plan


class _Check:
    """One check of one document."""

    def __init__(self, findings: Findings, tools: Collection[str] | None, recipes: Collection[str] | None) -> None:
        self.findings = findings
        self.read = FieldReader(findings)
        self.tools = tools
        self.recipes = recipes
        self.links: list[Link] = []

    def plan(self, document: Any) -> Plan:
        """The plan; what was wrong with it is in the findings."""
        fields = self.read.fields(document, (), schema.TASKGRAPH_V1)
        version = fields.get("version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            self.findings.add(("version",), f"found {kind_of(version)}", SCHEMA_VERSION)
        output = fields.get("output", UNSET)
        if output is not UNSET:
            self.template(output, ("output",), node=None)
        plan = Plan(
            name=self.read.name(fields, "name", ()),
            description=self.read.text(fields, "description", ()),
            inputs=self.inputs(fields.get("inputs", {})),
            nodes=self.nodes(fields.get("nodes", [])) if "nodes" in fields else (),
            output=output,
        )
        check_links(plan, self.links, self.findings)
        return plan

    # --- inputs

    def inputs(self, value: Any) -> dict[str, Input]:
        """The declared inputs."""
        path: Path = ("inputs",)
        if not isinstance(value, dict):
            self.findings.add(path, f"found {kind_of(value)}", "an object, such as {folder: {type: string}}")
            return {}
        for name in value:
            if not schema.INPUT_NAME.fullmatch(name):
                expected = "a name of letters, digits, - and _ that begins with a letter"
                self.findings.add((*path, name), f"found the name {cut(name)!r}", expected, key=True)
        return {name: self.input(one, (*path, name)) for name, one in value.items()}

    def input(self, value: Any, path: Path) -> Input:
        """One declared input."""
        fields = self.read.fields(value, path, schema.INPUT)
        kind: InputType | None = self.read.choice(fields, "type", path, get_args(InputType), None)
        default = fields.get("default", UNSET)
        if default is not UNSET:
            self.default(default, kind, (*path, "default"))
        return Input(type=kind or "object", default=default, description=self.read.text(fields, "description", path))

    def default(self, value: Any, kind: InputType | None, path: Path) -> None:
        """An input's default is of its type, and plain data."""
        if kind is not None and not fits(value, kind):
            self.findings.add(path, f"found {kind_of(value)}", f"a value of the type {kind}")
        for inner, text in texts(value, path):
            if "${" in text:
                self.findings.add(inner, "found a reference", "plain data: a default stands for itself")

    # --- nodes

    def nodes(self, value: Any) -> tuple[Node, ...]:
        """The nodes."""
        path: Path = ("nodes",)
        if not isinstance(value, list) or not value:
            found = "found an empty list" if value == [] else f"found {kind_of(value)}"
            self.findings.add(path, found, "a list of one node or more")
            return ()
        if len(value) > schema.MAX_NODES:
            most = f"at most {schema.MAX_NODES}; a for_each makes many of one"
            self.findings.add(path, f"found {len(value)} nodes", most)
            return ()
        return tuple(self.node(one, index) for index, one in enumerate(value))

    def node(self, value: Any, index: int) -> Node:
        """One node."""
        path: Path = ("nodes", index)
        fields = self.read.fields(value, path, schema.NODE)
        for_each = self.for_each(fields, index, path)
        action = self.action(fields, index, path, item=for_each is not None) if isinstance(value, dict) else BROKEN
        node_id = self.read.name(fields, "id", path)
        if node_id in RESERVED:
            self.findings.add((*path, "id"), f"`{node_id}` has a meaning of its own in references", "another name")
        return Node(
            id=node_id,
            action=action,
            for_each=for_each,
            when=self.reference(fields, "when", index, path),
            after=self.after(fields, path),
            on_failure=self.read.choice(fields, "on_failure", path, get_args(OnFailure), "fail"),
            description=self.read.text(fields, "description", path),
        )

    def for_each(self, fields: dict[str, Any], index: int, path: Path) -> ForEach | None:
        """The list a node is done for, and its bounds."""
        if "for_each" not in fields:
            for bound in schema.BOUNDS:
                if bound in fields:
                    self.findings.add(
                        (*path, bound), f"found `{bound}` without `for_each`", "both or neither", key=True
                    )
            return None
        return ForEach(
            over=self.reference(fields, "for_each", index, path) or Reference(INPUTS),
            max_items=self.read.number(fields, "max_items", path, MAX_ITEMS, MAX_ITEMS_CEILING),
            concurrency=self.read.number(fields, "concurrency", path, CONCURRENCY, schema.MAX_CONCURRENCY),
        )

    def after(self, fields: dict[str, Any], path: Path) -> tuple[str, ...]:
        """The nodes that have to be finished first, though nothing of them is used."""
        value = fields.get("after", [])
        if not isinstance(value, list):
            self.findings.add((*path, "after"), f"found {kind_of(value)}", "a list of node ids, such as [read]")
            return ()
        for position, one in enumerate(value):
            if not isinstance(one, str):
                self.findings.add((*path, "after", position), f"found {kind_of(one)}", "a node's id")
        return tuple(one if isinstance(one, str) else "" for one in value)

    # --- actions

    def action(self, fields: dict[str, Any], index: int, path: Path, *, item: bool) -> Action:
        """Return what a node does: exactly one thing."""
        kinds = [kind for kind in schema.ACTIONS if kind in fields]
        if len(kinds) != 1:
            found = f"found {listed(kinds)} in one node" if kinds else "found a node that does nothing"
            self.findings.add((*path, *kinds[1:2]), found, _ONE_ACTION, key=True)
        else:
            self.misplaced(fields, kinds[0], path)
        args = self.arguments(fields, "args", index, path, item=item)
        given = self.arguments(fields, "input", index, path, item=item)
        match kinds:
            case ["tool"]:
                name = self.read.word(fields, "tool", path, schema.TOOL, "a tool's name, such as fs.read", self.tools)
                return CallTool(
                    name=name,
                    args=args,
                    timeout_ms=self.read.duration(fields, "timeout", path),
                    undo=self.undo(fields, index, path, item=item),
                )
            case ["recipe"]:
                name = self.read.word(fields, "recipe", path, schema.RECIPE, "a recipe's name", self.recipes)
                return Child(recipe=name, input=given)
            case [("model" | "agent") as kind]:
                return Child(recipe=schema.RECIPES[kind], input=self.arguments(fields, kind, index, path, item=item))
            case ["wait"]:
                return self.wait(fields["wait"], index, (*path, "wait"), item=item)
            case _:
                return BROKEN

    def undo(self, fields: dict[str, Any], index: int, path: Path, *, item: bool) -> Undo | None:
        """The call that undoes a node's call; its arguments may refer to the node itself."""
        if "undo" not in fields:
            return None
        path = (*path, "undo")
        given = self.read.fields(fields["undo"], path, schema.UNDO)
        name = self.read.word(given, "tool", path, schema.TOOL, "a tool's name, such as fs.remove", self.tools)
        before = len(self.links)
        args = self.arguments(given, "args", index, path, item=item)
        self.links[before:] = [link._replace(own=True) for link in self.links[before:]]
        return Undo(name=name, args=args)

    def misplaced(self, fields: dict[str, Any], kind: str, path: Path) -> None:
        """Fields that belong to another action."""
        own = {"tool": "`args`", "recipe": "`input`", "wait": "what belongs to a wait inside `wait`"}
        own |= {one: f"what it is given inside `{one}`" for one in schema.RECIPES}
        for name, home in schema.HOMES.items():
            if name in fields and home != kind:
                self.findings.add((*path, name), f"found `{name}` beside `{kind}`", own[kind], key=True)

    def wait(self, value: Any, index: int, path: Path, *, item: bool) -> Action:
        """Return what a node waits for."""
        fields = self.read.fields(value, path, schema.WAIT)
        if not isinstance(value, dict):
            return BROKEN
        kinds = [kind for kind in schema.WAITS if kind in fields]
        if len(kinds) != 1:
            found = f"found {listed(kinds)} in one wait" if kinds else "found a wait for nothing"
            self.findings.add((*path, *kinds[1:2]), found, "exactly one of `timer`, `signal` and `human`", key=True)
            return BROKEN
        for name, homes in schema.WAIT_HOMES.items():
            if name in fields and kinds[0] not in homes:
                expected = f"it only with {listed(homes)}"
                self.findings.add((*path, name), f"found `{name}` beside `{kinds[0]}`", expected, key=True)
        timeout = self.read.duration(fields, "timeout", path)
        match kinds[0]:
            case "timer":
                return Timer(after_ms=self.read.duration(fields, "timer", path) or 0)
            case "signal":
                name = self.read.word(fields, "signal", path, schema.SIGNAL, "a signal's name", None)
                return Signal(name=name, timeout_ms=timeout)
            case _:
                question = self.read.text(fields, "human", path, empty=False)
                self.template(question, (*path, "human"), node=index, item=item)
                self.template(fields.get("details"), (*path, "details"), node=index, item=item)
                return Human(question=question, details=fields.get("details"), timeout_ms=timeout)

    # --- references

    def reference(self, fields: dict[str, Any], name: str, index: int, path: Path) -> Reference | None:
        """A field that is a reference as a whole."""
        if name not in fields:
            return None
        value, path = fields[name], (*path, name)
        try:
            found = single(value) if isinstance(value, str) else None
        except ReferenceSyntaxError as error:
            self.findings.add(path, f"found {error.found}", _A_REFERENCE)
            return None
        if found is None:
            self.findings.add(path, f"found {kind_of(value)}", _A_REFERENCE)
            return None
        self.links.append(Link(index, path, found, item=False))
        return found

    def arguments(self, fields: dict[str, Any], name: str, index: int, path: Path, *, item: bool) -> dict[str, Any]:
        """An object whose values may hold references."""
        value = fields.get(name, {})
        if not isinstance(value, dict):
            self.findings.add((*path, name), f"found {kind_of(value)}", "an object of names and values")
            return {}
        self.template(value, (*path, name), node=index, item=item)
        return value

    def template(self, value: Any, path: Path, *, node: int | None, item: bool = False) -> None:
        """Note the references in a value, and where one is not well formed."""
        for inner, text in texts(value, path):
            try:
                self.links += [Link(node, inner, one, item=item) for one in parse(text) if isinstance(one, Reference)]
            except ReferenceSyntaxError as error:
                self.findings.add(
                    inner, f"found {error.found}", "a reference such as ${find.value.items}, or $${ for text"
                )
