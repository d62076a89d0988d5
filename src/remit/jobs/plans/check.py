"""Whether a decoded document is a plan, and the plan it is. Every problem is collected, not only the first.

Here the parts are checked one by one; what they say of each other (unknown nodes, loops) is checked in links.py.
A part that is wrong is stood in for, so that the rest can be checked without problems that only follow from it.

Reads the fields of an object in a plan: each by its form, with a problem and a stand-in where it has another one.

Links between the parts of a plan: names that are known, references that can be met, and no loops.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from msgspec import UNSET

from remit.jobs.plans import plan as schema
from remit.jobs.plans.plan import (
    CONCURRENCY,
    ID,
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
from remit.jobs.plans.problem import EXPECTED as A_DURATION
from remit.jobs.plans.problem import Findings, InvalidPlanError, Marks, Path, check_shape, cut, one_of, parse_duration
from remit.jobs.plans.references import (
    INDEX,
    INPUTS,
    RESERVED,
    RESULT_FIELDS,
    Reference,
    ReferenceSyntaxError,
    kind_of,
    parse,
    single,
    texts,
)

_AN_ID: Final = "a lower-case letter, then up to 63 of a-z, 0-9, - and _"


class FieldReader:
    """Reads fields of decoded objects; problems go to `findings`."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def fields(self, value: Any, path: Path, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of an object of this schema; none if it is not an object."""
        known, required = tuple(schema["properties"]), tuple(schema.get("required", ()))
        if not isinstance(value, dict):
            self._findings.add(path, f"found {kind_of(value)}", f"an object with {listed(required or known)}")
            return {}
        for name in value:
            if name not in known:
                expected = one_of(known) + self._findings.near(name, known)
                self._findings.add((*path, name), f"unknown field `{cut(name)}`", expected, key=True)
        for name in required:
            if name not in value:
                self._findings.add(path, f"found no `{name}`", f"a field `{name}`")
        return value

    def text(self, fields: dict[str, Any], name: str, path: Path, *, empty: bool = True) -> str:
        """A text, empty where it is left out."""
        value = fields.get(name, "")
        if isinstance(value, str) and (value or empty):
            return value
        self._findings.add((*path, name), "found an empty text" if value == "" else f"found {kind_of(value)}", "a text")
        return ""

    def name(self, fields: dict[str, Any], name: str, path: Path) -> str:
        """A name by which the plan or a node is known."""
        return self.word(fields, name, path, ID, _AN_ID, None)

    def word(
        self, fields: dict[str, Any], name: str, path: Path, form: re.Pattern[str], expected: str,
        known: Collection[str] | None,
    ) -> str:  # fmt: skip
        """A text of a certain form, and one of the known ones where those are known."""
        value = fields.get(name)
        if isinstance(value, str) and form.fullmatch(value):
            if known is not None and value not in known:
                expected = f"a {name} that is offered here{self._findings.near(value, sorted(known))}"
                self._findings.add((*path, name), f"unknown {name} `{cut(value)}`", expected)
            return value
        if name in fields:
            self._findings.add((*path, name), f"found {kind_of(value)}", expected)
        return ""

    def choice(self, fields: dict[str, Any], name: str, path: Path, allowed: tuple[str, ...], default: Any) -> Any:
        """One of a few words."""
        value = fields.get(name, default)
        if name not in fields or (isinstance(value, str) and value in allowed):
            return value
        suggestion = self._findings.near(value, allowed) if isinstance(value, str) else ""
        self._findings.add((*path, name), f"found {kind_of(value)}", one_of(allowed) + suggestion)
        return default

    def number(self, fields: dict[str, Any], name: str, path: Path, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = fields.get(name, default)
        if type(value) is int and 1 <= value <= most:
            return value
        self._findings.add((*path, name), f"found {kind_of(value)}", f"a whole number from 1 to {most}")
        return default

    def duration(self, fields: dict[str, Any], name: str, path: Path) -> int | None:
        """Milliseconds, None where it is left out."""
        if name not in fields:
            return None
        value = fields[name]
        millis = parse_duration(value) if isinstance(value, str) else None
        if millis is None:
            self._findings.add((*path, name), f"found {kind_of(value)}", A_DURATION)
        return millis


def listed(names: Collection[str]) -> str:
    """Names as a sentence has them: `a` and `b`."""
    return " and ".join(f"`{name}`" for name in names)


BROKEN: Final[Action] = Timer(after_ms=0)
"""Stands in for an action that was found to be wrong."""
_WITHOUT_PARTS: Final = frozenset({"string", "integer", "number", "boolean"})


class Link(NamedTuple):
    """A reference and where it stands."""

    node: int | None
    """The node it stands in, by position; None in the plan's output."""
    path: Path
    reference: Reference
    item: bool
    """Whether it may speak of the item of a `for_each`."""
    own: bool = False
    """Whether it may speak of the node it stands in."""


def check_links(plan: Plan, links: Sequence[Link], findings: Findings) -> None:
    """Add a problem for every name that is not known or is used twice, every part that cannot be, and every loop."""
    _Links(plan, findings).check(links)


class _Links:
    """One check of one plan."""

    def __init__(self, plan: Plan, findings: Findings) -> None:
        self.plan = plan
        self.findings = findings
        self.nodes: dict[str, Node] = {}
        self.edges: dict[str, list[str]] = {}
        self.position: dict[str, int] = {}

    def check(self, links: Sequence[Link]) -> None:
        """Names first, then what refers to them, then the loops."""
        self._collect()
        for link in links:
            match link.reference.root:
                case root if root == INPUTS:
                    self._input(link)
                case root if root in RESERVED:
                    self._item(link)
                case _:
                    self._result(link)
        self._after()
        for loop in loops(self.edges):
            shown = " -> ".join([*loop, loop[0]])
            path: Path = ("nodes", self.position[loop[0]], "id")
            self.findings.add(path, f"these nodes wait for each other: {shown}", "nodes that can go one after another")

    def _collect(self) -> None:
        for index, node in enumerate(self.plan.nodes):
            if node.id in self.nodes:
                path: Path = ("nodes", self.position[node.id], "id")
                line, _ = self.findings.marks.of(path)
                first = f"line {line}" if line else f"nodes[{self.position[node.id]}]"
                self.findings.add(
                    ("nodes", index, "id"), f"`{node.id}` is used twice, first in {first}", "an id of its own"
                )
            elif node.id:
                self.nodes[node.id] = node
                self.position[node.id] = index
                self.edges[node.id] = []

    def _input(self, link: Link) -> None:
        """`${inputs.name…}`."""
        if not link.reference.path:
            return
        name, *rest = link.reference.path
        declared = self.plan.inputs.get(name)
        if declared is None:
            known = [*self.plan.inputs]
            expected = one_of(known) + self.findings.near(name, known) if known else "it under `inputs`"
            self.findings.add(link.path, f"unknown input `{cut(name)}` in {link.reference}", expected)
        elif rest and declared.type in _WITHOUT_PARTS:
            expected = f"{Reference(INPUTS, (name,))}"
            self.findings.add(
                link.path, f"found {link.reference}, but the input is of the type {declared.type}", expected
            )

    def _item(self, link: Link) -> None:
        """`${item…}` and `${index}`."""
        reference = link.reference
        if not link.item:
            expected = "it only in what a node with `for_each` does"
            self.findings.add(link.path, f"found {reference} where there is no item", expected)
        elif reference.root == INDEX and reference.path:
            self.findings.add(link.path, f"found {reference}, but the index is a number", "${index}")

    def _result(self, link: Link) -> None:
        """`${node…}`."""
        name = link.reference.root
        node = self.nodes.get(name)
        if node is None:
            names = [*self.nodes, *sorted(RESERVED)]
            expected = f"the id of a node, inputs, item or index{self.findings.near(name, names)}"
            self.findings.add(link.path, f"unknown node `{cut(name)}` in {link.reference}", expected)
            return
        if not (link.own and link.node is not None and self.plan.nodes[link.node].id == name):
            self._edge(link.node, name, link.path)
        self._field(link, node)

    def _field(self, link: Link, node: Node) -> None:
        """The first step into a result is one of its fields."""
        reference = link.reference
        field = reference.path[0] if reference.path else "value"
        fields = _fields(node)
        if field in fields or (node.action is BROKEN and field in RESULT_FIELDS):
            return
        meant = Reference(reference.root, ("value", *reference.path))
        slip = self.findings.near(field, fields) if field not in RESULT_FIELDS else ""
        expected = one_of(fields) + (slip or f"; did you mean `{meant}`?")
        self.findings.add(link.path, f"unknown part `{cut(field)}` of a result in {reference}", expected)

    def _after(self) -> None:
        for index, node in enumerate(self.plan.nodes):
            for position, name in enumerate(node.after):
                path: Path = ("nodes", index, "after", position)
                if name in self.nodes:
                    self._edge(index, name, path)
                elif name:
                    self.findings.add(
                        path,
                        f"unknown node `{cut(name)}`",
                        f"the id of a node{self.findings.near(name, [*self.nodes])}",
                    )

    def _edge(self, index: int | None, name: str, path: Path) -> None:
        """Note that the node at a position waits for the one of a name."""
        if index is None:
            return
        waiting = self.plan.nodes[index].id
        if waiting == name:
            self.findings.add(path, f"`{name}` waits for itself", "another node")
        elif waiting in self.edges:
            self.edges[waiting].append(name)


def _fields(node: Node) -> list[str]:
    """Return what a node's result can hold, of RESULT_FIELDS."""
    fields = ["ok", "value", "code", "reason"]
    if isinstance(node.action, Human) and node.for_each is None:
        fields.append("by")
    if node.for_each is not None:
        fields.append("failures")
    return fields


Edges = Mapping[str, Iterable[str]]
"""Each node and the nodes it waits for; a name that is not a node is ignored."""


def loops(edges: Edges) -> list[list[str]]:
    """Loops `[a, b, …]`: a waits for b, and so on, the last for a; without their members no loop is left.

    A node that waits for itself is a loop of one; apart from those no node is in two of them. Each begins with the
    member that comes first in `edges`, and they are in that order.
    """
    rank = {name: index for index, name in enumerate(edges)}
    cycles = [[name] for name, others in edges.items() if name in others]
    waits = {name: {other for other in others if other in rank} - {name} for name, others in edges.items()}
    waited_for_by: dict[str, list[str]] = {name: [] for name in edges}
    for name, others in waits.items():
        for other in others:
            waited_for_by[other].append(name)
    _release(waits, waited_for_by, [name for name, others in waits.items() if not others])
    while waits:  # each node left waits for another that is left
        loop = _walk(waits, rank)
        first = loop.index(min(loop, key=rank.__getitem__))
        cycles.append(loop[first:] + loop[:first])
        _release(waits, waited_for_by, loop)
    return sorted(cycles, key=lambda loop: rank[loop[0]])


def _release(waits: dict[str, set[str]], waited_for_by: Mapping[str, list[str]], names: list[str]) -> None:
    """Remove the named nodes, and then each node that no longer waits for another."""
    free = list(names)
    while free:
        gone = free.pop()
        if waits.pop(gone, None) is None:
            continue
        for name in waited_for_by[gone]:
            if name in waits:
                waits[name].discard(gone)
                if not waits[name]:
                    free.append(name)


def _walk(waits: Mapping[str, set[str]], rank: Mapping[str, int]) -> list[str]:
    """The loop that is met by following, from the first node, the first of the nodes each waits for."""
    path: dict[str, None] = {}
    name = next(iter(waits))
    while name not in path:
        path[name] = None
        name = min(waits[name], key=rank.__getitem__)
    steps = list(path)
    return steps[steps.index(name) :]


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
        return {name: self.input(entry, (*path, name)) for name, entry in value.items()}

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
            problem = "found an empty list" if value == [] else f"found {kind_of(value)}"
            self.findings.add(path, problem, "a list of one node or more")
            return ()
        if len(value) > schema.MAX_NODES:
            most = f"at most {schema.MAX_NODES}; a for_each makes many of one"
            self.findings.add(path, f"found {len(value)} nodes", most)
            return ()
        return tuple(self.node(entry, index) for index, entry in enumerate(value))

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
        for position, entry in enumerate(value):
            if not isinstance(entry, str):
                self.findings.add((*path, "after", position), f"found {kind_of(entry)}", "a node's id")
        return tuple(entry if isinstance(entry, str) else "" for entry in value)

    # --- actions

    def action(self, fields: dict[str, Any], index: int, path: Path, *, item: bool) -> Action:
        """Return what a node does: exactly one thing."""
        kinds = [kind for kind in schema.ACTIONS if kind in fields]
        if len(kinds) != 1:
            problem = f"found {listed(kinds)} in one node" if kinds else "found a node that does nothing"
            self.findings.add((*path, *kinds[1:2]), problem, _ONE_ACTION, key=True)
        else:
            self.misplaced(fields, kinds[0], path)
        args = self.arguments(fields, "args", index, path, item=item)
        arguments = self.arguments(fields, "input", index, path, item=item)
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
                return Child(recipe=name, input=arguments)
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
        call = self.read.fields(fields["undo"], path, schema.UNDO)
        name = self.read.word(call, "tool", path, schema.TOOL, "a tool's name, such as fs.remove", self.tools)
        before = len(self.links)
        args = self.arguments(call, "args", index, path, item=item)
        self.links[before:] = [link._replace(own=True) for link in self.links[before:]]
        return Undo(name=name, args=args)

    def misplaced(self, fields: dict[str, Any], kind: str, path: Path) -> None:
        """Fields that belong to another action."""
        own = {"tool": "`args`", "recipe": "`input`", "wait": "what belongs to a wait inside `wait`"}
        own |= {recipe_key: f"what it is given inside `{recipe_key}`" for recipe_key in schema.RECIPES}
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
            problem = f"found {listed(kinds)} in one wait" if kinds else "found a wait for nothing"
            self.findings.add((*path, *kinds[1:2]), problem, "exactly one of `timer`, `signal` and `human`", key=True)
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
            reference = single(value) if isinstance(value, str) else None
        except ReferenceSyntaxError as error:
            self.findings.add(path, f"found {error.text}", _A_REFERENCE)
            return None
        if reference is None:
            self.findings.add(path, f"found {kind_of(value)}", _A_REFERENCE)
            return None
        self.links.append(Link(index, path, reference, item=False))
        return reference

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
                self.links += [Link(node, inner, ref, item=item) for ref in parse(text) if isinstance(ref, Reference)]
            except ReferenceSyntaxError as error:
                self.findings.add(
                    inner, f"found {error.text}", "a reference such as ${find.value.items}, or $${ for text"
                )
