"""Links between the parts of a plan: names that are known, references that can be met, and no loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from remit.jobs.plans.plan import Action, Human, Node, Plan, Timer
from remit.jobs.plans.problem import Findings, Path, cut, one_of
from remit.jobs.plans.references import INDEX, INPUTS, RESERVED, RESULT_FIELDS, Reference

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
    found = [[name] for name, others in edges.items() if name in others]
    waits = {name: {other for other in others if other in rank} - {name} for name, others in edges.items()}
    waited_for_by: dict[str, list[str]] = {name: [] for name in edges}
    for name, others in waits.items():
        for other in others:
            waited_for_by[other].append(name)
    _release(waits, waited_for_by, [name for name, others in waits.items() if not others])
    while waits:  # each node left waits for another that is left
        loop = _walk(waits, rank)
        first = loop.index(min(loop, key=rank.__getitem__))
        found.append(loop[first:] + loop[:first])
        _release(waits, waited_for_by, loop)
    return sorted(found, key=lambda loop: rank[loop[0]])


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
