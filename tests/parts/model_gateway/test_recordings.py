"""Two runs of each of four agents, in two places: the rules make their requests the same, and nothing else does.

The requests were sent by the agents themselves, with the versions of docs/record.md; of long texts the lines are left
that the rules are about.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from remit.parts.model_gateway.answers import roots_of
from remit.parts.model_gateway.canonical import Identity, Results, identity
from remit.parts.model_gateway.request_reader import Reader
from remit.parts.model_gateway.wires import FAMILIES, route_of

FOLDER: Final = Path(__file__).with_name("recordings")
AGENTS: Final = ("claude", "codex", "gemini", "opencode")
TOOLS: Final = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command", "opencode": "bash"}
RULES: Final = {
    "claude": {"fields", "cache marks", "ids", "roots", "dates", "results"},
    "codex": {"fields", "item ids", "ids", "roots", "dates", "results"},
    "gemini": {"roots", "dates", "results"},
    "opencode": {"ids", "roots", "dates", "results"},
}
"""Rules that take part in each."""


def runs(agent: str) -> list[dict[str, Any]]:
    both: list[dict[str, Any]] = json.loads((FOLDER / f"{agent}.json").read_text(encoding="utf-8"))["runs"]
    return both


def identities(run: dict[str, Any], results: Results, old: str = "", new: str = "") -> list[Identity]:
    """Return what each request is; with `old` replaced by `new` in what was asked."""
    name = sha256(run["folder"].encode()).hexdigest()[:16]
    files = f"{run['home']}/.local/share/remit/runs/{name}"  # where gemini finds its settings
    roots = {**roots_of(run["folder"], run["home"]), files: "<files>"}
    return [
        identity(
            asked["method"],
            asked["route"],
            json.dumps(asked["body"]).replace(old or "\0", new).encode(),
            roots=roots,
            results=results,
        )
        for asked in run["requests"]
    ]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_elsewhere_asks_the_same(agent: str) -> None:
    first, second = (identities(run, "aside") for run in runs(agent))
    assert sorted(one.digest for one in first) == sorted(one.digest for one in second)
    assert {one.value is not None for one in first} == {True}
    assert RULES[agent] <= frozenset[str]().union(*(one.rules for one in first))


@pytest.mark.parametrize("agent", AGENTS)
def test_results_that_differ_are_the_only_difference(agent: str) -> None:
    first, second = ({one.digest for one in identities(run, "strict")} for run in runs(agent))
    assert len(first & second) == len(first) - 1, "the last request has the time that a tool returned"


@pytest.mark.parametrize("agent", AGENTS)
def test_another_task_is_another_question(agent: str) -> None:
    run, _ = runs(agent)
    same = {one.digest for one in identities(run, "aside")}
    other = {one.digest for one in identities(run, "aside", "edit it", "remove it")}
    assert not same & other


@pytest.mark.parametrize("agent", AGENTS)
def test_every_request_is_read(agent: str) -> None:
    run, _ = runs(agent)
    reader, results = Reader(), list[str]()
    for asked in run["requests"]:
        routes = (route_of(asked["method"], f"{family.prefix}{asked['route']}") for family in FAMILIES)
        route = next(one for one in routes if one is not None and one.row is not None and one.row.name == asked["wire"])
        reading = reader.read(route, msgspec.json.encode(asked["body"]))
        assert bool(reading.tools.specs) == asked["main"]
        assert not asked["main"] or TOOLS[agent] in {spec.name for spec in reading.tools.specs}
        results += reading.results
    assert len(set(results)) == 2, "of a read and a command"
