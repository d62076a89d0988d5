"""Plans to test with: documents that are valid, whatever hypothesis draws."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

names = st.text("abcz09_-", max_size=4).map("n{}".format)
coin = st.booleans()
durations = st.sampled_from(["500ms", "10s", "1h30m", "2d"])
texts = st.text("ab 09_.:{}#'\"\\é😀", min_size=1, max_size=6)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
_BY_TYPE = {
    "string": texts,
    "integer": st.integers(-1000, 1000),
    "number": st.floats(-10, 10),
    "boolean": st.booleans(),
    "array": st.lists(plain, max_size=2),
    "object": st.dictionaries(texts, plain, max_size=2),
}


@st.composite
def graphs(draw: st.DrawFn, *, least: int = 1, most: int = 6) -> dict[str, list[str]]:
    """Nodes and the earlier nodes each needs, in an order of the file that need not be the order of the needs."""
    ids = draw(st.lists(names, min_size=least, max_size=most, unique=True))
    needs = {
        node: draw(st.lists(st.sampled_from(ids[:index]), unique=True, max_size=3)) if index else []
        for index, node in enumerate(ids)
    }
    return {node: needs[node] for node in draw(st.permutations(ids))}


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    declared: dict[str, Any] = {}
    for name in draw(st.lists(names, max_size=3, unique=True)):
        kind = draw(st.sampled_from(sorted(_BY_TYPE)))
        declared[name] = {"type": kind}
        if draw(coin):
            declared[name]["default"] = draw(_BY_TYPE[kind])
    return declared


@st.composite
def actions(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    given = st.dictionaries(texts, values, max_size=2)
    return draw(
        st.one_of(
            st.fixed_dictionaries({"tool": st.just("fs.read")}, optional={"args": given, "timeout": durations}),
            st.fixed_dictionaries({"recipe": st.just("tidy_up")}, optional={"input": given}),
            st.fixed_dictionaries({"wait": st.fixed_dictionaries({"timer": durations})}),
            st.fixed_dictionaries(
                {"wait": st.fixed_dictionaries({"signal": st.just("go.on")}, optional={"timeout": durations})}
            ),
            st.fixed_dictionaries(
                {
                    "wait": st.fixed_dictionaries(
                        {"human": texts},
                        optional={"timeout": durations, "details": values.filter(lambda one: one is not None)},
                    )
                }
            ),
        )
    )


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A whole plan, with every field in use now and then."""
    declared = draw(inputs())
    graph = draw(graphs())
    nodes = []
    for node, needs in graph.items():
        roots = [*needs, *(f"inputs.{name}" for name in declared)]
        loose = plain if not roots else plain | st.sampled_from(roots).map(lambda root: "${" + root + "}")
        described: dict[str, Any] = {"id": node, **draw(actions(loose))}
        if draw(coin) and roots:
            described["for_each"] = "${" + draw(st.sampled_from(roots)) + "}"
            described |= draw(
                st.fixed_dictionaries({}, optional={"max_items": st.integers(1, 9), "concurrency": st.integers(1, 9)})
            )
        if draw(coin) and roots:
            described["when"] = "${" + draw(st.sampled_from(roots)) + "}"
        described |= draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "after": st.just(needs),
                    "on_failure": st.sampled_from(["fail", "continue"]),
                    "description": texts,
                },
            )
        )
        nodes.append(described)
    last = [*graph][-1]
    outputs = plain | st.just("${" + last + "}")
    rest = draw(st.fixed_dictionaries({}, optional={"description": texts, "output": outputs}))
    return {"version": "taskgraph-v1", "name": draw(names), "inputs": declared, "nodes": nodes, **rest}


def tool_plan(graph: dict[str, list[str]]) -> dict[str, Any]:
    """A plan whose nodes call `work.do` with their id and the values of what they need."""
    nodes = [
        {"id": node, "tool": "work.do", "args": {"id": node, "from": ["${" + other + "}" for other in needs]}}
        for node, needs in graph.items()
    ]
    return {"version": "taskgraph-v1", "name": "drawn", "nodes": nodes}
