"""Hold the house to its budget: `python scripts/check_budget.py` fails on a package of `src/remit` with too many lines.

The rows stand in `scripts/budgets.toml`: the lines of each package and part, of the core (all but parts and suites),
and of all in sum. A package above its row has to lose lines; raise the row only in a commit that says why. A row far
above its package falls, so that what one commit saved no other spends unseen: `--lower` writes the lower numbers.
"""

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SLACK: Final = 40
"""Lines that a row may stand above its package."""
MODULES: Final = "modules"
"""The row of the modules that stand in no package."""
PARTS: Final = "parts"
"""The package whose folders have a row each."""
SUITES: Final = "testing"
"""The row of the contract suites, a distribution of their own."""
CORE: Final = "core"
"""The row of all packages but the parts and the contract suites: the house that one has to know."""
SUM: Final = "sum"

Lines = Mapping[str, int]
"""Lines by package, with `CORE` and `SUM`."""


def measure(root: Path) -> dict[str, int]:
    """Return the lines of the Python files of each package and part, of the suites, of the core, and their sum."""
    source, lines = root / "src/remit", dict[str, int]()
    for path in source.rglob("*.py"):
        *folders, _ = path.relative_to(source).parts
        package = ".".join(folders[: 2 if folders[:1] == [PARTS] else 1])
        package = MODULES if package in {"", PARTS} else package
        lines[package] = lines.get(package, 0) + _length(path)
    core = sum(size for package, size in lines.items() if package.partition(".")[0] != PARTS)
    lines[SUITES] = sum(map(_length, (root / "testing/src").rglob("*.py")))
    return {**dict(sorted(lines.items())), CORE: core, SUM: sum(lines.values())}


def _length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def rows_of(text: str) -> dict[str, int]:
    """Return the rows of budgets.toml, those of the parts as `parts.NAME`."""
    rows = tomllib.loads(text)
    own = rows.pop(PARTS, {})
    return {**rows, **{f"{PARTS}.{name}": size for name, size in own.items()}}


def findings(lines: Lines, budgets: Lines) -> list[str]:
    """Return a sentence for each row that does not fit its package."""
    problems = [f"{package}: it has no row in budgets.toml" for package in lines.keys() - budgets.keys()]
    problems += [f"{package}: there is no such package, take its row away" for package in budgets.keys() - lines.keys()]
    for package in lines.keys() & budgets.keys():
        size, row = lines[package], budgets[package]
        if size > row:
            problems.append(f"{package}: {size} lines, its budget is {row}: make something smaller")
        elif package not in {CORE, SUM} and size < row - SLACK:
            problems.append(f"{package}: {size} lines, its budget is {row}: lower the row (check_budget.py --lower)")
    return sorted(problems)


def lowered(text: str, lines: Lines) -> str:
    """Return the text of budgets.toml with each row that stands above its package lowered to it."""

    def lower(match: re.Match[str]) -> str:
        package, row = match[1], int(match[2])
        return f"{package} = {min(row, lines.get(package, row))}"

    return re.sub(r"^([\w.]+) = (\d+)", lower, text, flags=re.MULTILINE)


def main(root: Path, arguments: list[str]) -> int:
    """Print what does not fit under `root`, or lower the rows with `--lower`; return the exit status."""
    file, lines = root / "scripts/budgets.toml", measure(root)
    text = file.read_text(encoding="utf-8")
    if "--lower" in arguments:
        file.write_text(lowered(text, lines), encoding="utf-8")
        return 0
    problems = findings(lines, rows_of(text))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent, sys.argv[1:]))
