"""What was measured, as a table of text."""

from __future__ import annotations

import os

from bench.measure import Result


def row(result: Result) -> str:
    """One line of the table; of a peer it shows what stands elsewhere for the floor."""
    if result.peer is not None:
        name, base, ratio = f"  beside {result.peer}", result.peer_value, result.peer_ratio
        value, cpu = "", result.peer_cpu_us
    else:
        name, base, ratio = result.name, result.floor, result.floor_ratio
        value, cpu = f"{_number(result.value)} {result.unit}", result.cpu_us
    met = {True: "met", False: "MISSED", None: ""}[result.met]
    return (
        f"{name:38} {value:>18} {_number(cpu):>8} {_number(base):>10} {_number(ratio):>7}"
        f"  {result.mark or '':20} {met:6}  {result.note}"
    ).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def heading() -> str:
    """The names of its columns."""
    return (
        f"{'measured':38} {'value':>18} {'CPU µs':>8} {'base':>10} {'ratio':>7}  {'mark':20} {'':6}  "
        f"({os.cpu_count()} cores; base: the floor, or the peer)"
    )
