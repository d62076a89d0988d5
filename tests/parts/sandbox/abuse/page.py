"""The battery's page: one row for each probe, one column for each driver and user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.parts.sandbox.abuse.accepted import ACCEPTED
from tests.parts.sandbox.abuse.subjects import HERE, Finding

Found = Mapping[tuple[str, str], Sequence[Finding]]
"""The outcome of each probe, by driver (`none`: no sandbox) and user (`root` or `user`)."""
PAGE: Final = HERE / "docs" / "sandbox-battery.md"
SUMMARY: Final = HERE / "docs" / "sandbox.md"
MARKS: Final = ("<!-- battery -->\n", "<!-- end of battery -->\n")
_HEAD: Final = """# What the sandbox was tried with
`python -m tests.parts.sandbox.abuse` runs every probe below and writes this page; [sandbox.md](sandbox.md#how-it-was-tested) has the summary and what leaks.

*root* and *user* are who Remit runs as. A probe *leaks* if it got what it was after, and *held* if it did not. Without a sandbox the same probes show that they
can leak: what is held there as well, this kernel lacks or gives to no program. An empty cell: the driver offers no way to try it.
Every probe is a process of its own and harmless if nothing holds it.
"""
_NAMES: Final = {"none": "no sandbox"}


def columns(found: Found) -> list[tuple[str, str]]:
    return sorted(found, key=lambda one: (list(dict.fromkeys(name for name, _ in found)).index(one[0]), one[1]))


def table(found: Found) -> str:
    """Every probe."""
    heads = columns(found)
    cells = {(one, row.group, row.title): row.verdict for one, rows in found.items() for row in rows}
    text = [_HEAD]
    rows = list(dict.fromkeys((row.group, row.title) for found_rows in found.values() for row in found_rows))
    for group in dict.fromkeys(group for group, _ in rows):
        text.append(f"\n## {group[0].upper()}{group[1:]}\n")
        text.append("| | " + " | ".join(f"{_NAMES.get(name, name)}, {user}" for name, user in heads) + " |\n")
        text.append("|---" * (len(heads) + 1) + "|\n")
        for _, title in [row for row in rows if row[0] == group]:
            said = [_word(cells.get((one, group, title), "")) for one in heads]
            text.append(f"| {title} | " + " | ".join(said) + " |\n")
    return "".join(text)


def _word(verdict: str) -> str:
    return {"leaked": "**leaks**"}.get(verdict, verdict)


def summary(found: Found) -> str:
    """How many were held, by group, and what leaks."""
    heads = columns(found)
    groups = dict.fromkeys(row.group for rows in found.values() for row in rows)
    text = ["| probes | " + " | ".join(f"{_NAMES.get(name, name)}, {user}" for name, user in heads) + " |\n"]
    text.append("|---" * (len(heads) + 1) + "|\n")
    for group in groups:
        cells = [_held([row for row in found[one] if row.group == group]) for one in heads]
        text.append(f"| {group} | " + " | ".join(cells) + " |\n")
    text.append("| all | " + " | ".join(_held(found[one]) for one in heads) + " |\n")
    text.append("\nWhat leaks, and why:\n\n| driver | probe | why |\n|---|---|---|\n")
    leaks = dict.fromkeys(
        (name, row.title)
        for (name, _), rows in found.items()
        for row in rows
        if name != "none" and row.verdict == "leaked"
    )
    text += [f"| {name} | {title} | {ACCEPTED.get((name, title), '?')} |\n" for name, title in leaks]
    return "".join(text)


def _held(rows: Sequence[Finding]) -> str:
    return f"{sum(row.verdict == 'held' for row in rows)} of {len(rows)} held" if rows else ""


def write(found: Found) -> None:
    """Write both pages."""
    PAGE.write_text(table(found), encoding="utf-8")
    text = SUMMARY.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    SUMMARY.write_text(before + MARKS[0] + summary(found) + MARKS[1] + after, encoding="utf-8")


def recorded() -> dict[tuple[str, str], dict[tuple[str, str], str]]:
    """The page as it is: {(driver, user): {(group, title): verdict}}."""
    found: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, *lines = part.splitlines()
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]
        heads = [tuple(cell.rsplit(", ", 1)) for cell in rows[0][1:]]
        for title, *cells in rows[2:]:
            for (driver, user), cell in zip(heads, cells, strict=True):
                if cell:
                    subject = ({"no sandbox": "none"}.get(driver, driver), user)
                    verdict = {"**leaks**": "leaked"}.get(cell, cell)
                    found.setdefault(subject, {})[name[0].lower() + name[1:], title] = verdict
    return found
