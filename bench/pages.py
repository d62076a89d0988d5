"""The tables of figures in the documentation, made from the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.baseline import Line, load
from bench.lab import DBOS_POSTGRES, DBOS_SQLITE, LANGGRAPH, RESTATE, ROOT
from bench.measure import Result

_BEGIN: Final = "<!-- figures: {name} -->"
_END: Final = "<!-- end of figures -->"
_ENGINES: Final = {
    LANGGRAPH: "LangGraph, SQLite",
    DBOS_SQLITE: "DBOS, SQLite",
    DBOS_POSTGRES: "DBOS, PostgreSQL",
    RESTATE: "Restate",
}
_WORKLOADS: Final = {
    "read-only step, sequential": "read-only steps in sequence",
    "side-effecting step, sequential": "side-effecting steps in sequence",
    "64 jobs of 50 read-only steps": "64 runs of 50 steps at once",
    "replay, recorded step": "recorded steps given back",
}
_GATEWAY: Final = "MCP gateway, HTTP before HTTP"
PAGES: Final = ("docs/benchmarks.md", "docs/comparison.md")


def numbers(lines: list[Line]) -> str:
    """Return the table of every line of the baseline."""
    rows = ["| measured | value | beside | ratio | mark | commit |", "|---|---|---|---|---|---|"]
    previous = ""
    for line in lines:
        result = line.result
        name = "" if result.name == previous else result.name
        previous = result.name
        ratio = result.peer_ratio if result.peer is not None else result.floor_ratio
        cells = (name, _amount(result.value, result.unit), _beside(result), _short(ratio), _mark(result))
        rows.append(f"| {' | '.join(cells)} | {line.commit} |".replace("|  |", "| |"))
    return "\n".join(rows)


def engines(lines: list[Line]) -> str:
    """Return the table of durable engines: a row for each workload."""
    rows = [f"| | Remit | {' | '.join(_ENGINES.values())} |", "|---|---|---|---|---|---|"]
    for workload, words in _WORKLOADS.items():
        own = next((line.result for line in lines if line.result.name == workload and not line.result.peer), None)
        if own is None:
            continue
        peers = {line.result.peer: line.result for line in lines if line.result.name == workload}
        values = [_rate(peers[name].peer_value if name in peers else None) for name in _ENGINES]
        rows.append(f"| {words} | {' | '.join([_rate(own.value), *values])} |")
    return "\n".join(rows)


def gateways(lines: list[Line]) -> str:
    """Return the table of gateways before a server over HTTP."""
    rows = ["| calls through the gateway over HTTP, before a server over HTTP | calls a second |", "|---|---|"]
    results = [line.result for line in lines if line.result.name == _GATEWAY]
    for result in results:
        if result.peer is None:
            rows += [f"| Remit | {_short(result.value)} |", f"| no gateway | {_short(result.floor)} |"]
    rows += [f"| {result.peer} | {_short(result.peer_value)} |" for result in results if result.peer is not None]
    return "\n".join(rows)


TABLES: Final = {"numbers": numbers, "engines": engines, "gateways": gateways}


def with_figures(text: str, lines: list[Line]) -> str:
    """Return a page with each of its tables made again."""
    for name, table in TABLES.items():
        begin = _BEGIN.format(name=name)
        if begin in text:
            head, _, rest = text.partition(begin)
            _, end, tail = rest.partition(_END)
            text = f"{head}{begin}\n{table(lines)}\n{end}{tail}"
    return text


def write_pages(root: Path = ROOT) -> None:
    """Write the tables of all pages from the baseline."""
    for page in PAGES:
        path = root / page
        path.write_text(with_figures(path.read_text(encoding="utf-8"), load()), encoding="utf-8")


def _beside(result: Result) -> str:
    if result.peer is not None:
        return f"{result.peer}: {_amount(result.peer_value, result.unit)}"
    if result.floor is None:
        return result.note
    return f"{result.note.removeprefix('floor: ')}: {_amount(result.floor, result.unit)}"


def _mark(result: Result) -> str:
    return f"{result.mark}: {'met' if result.met else 'missed'}" if result.mark else ""


def _rate(value: float | None) -> str:
    return f"{_short(value)} /s" if value is not None else "-"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return _rate(value) if unit == "per second" else f"{_short(value)} {unit}"


def _short(value: float | None) -> str:
    """Return three digits, or all before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


if __name__ == "__main__":
    write_pages()
