"""Find unused code: `python scripts/check_dead_code.py` fails on each piece and on each stale exception.

Vulture finds the names that occur nowhere else in src, tests, bench and scripts. Left out are variables inside a class
or a function: fields are recorded and read elsewhere, and ruff holds arguments and locals. What a reference names
(`"module:name"`, as in the line of a capability) is used. Exceptions stand with their reasons in pyproject.toml under
[tool.vulture].
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from vulture import Vulture

FOLDERS: Final = ("src", "testing", "tests", "bench", "scripts")
_REFERENCE: Final = re.compile(r'"(remit(?:\.\w+)+):(\w+)"')


class Unused(NamedTuple):
    """A name that occurs once."""

    place: str
    """File and line."""
    kind: str
    """What vulture calls it: `function`, `class`, `unreachable_code` and so on."""
    name: str


def findings(unused: Sequence[Unused], allowed: Iterable[str]) -> list[str]:
    """Everything wrong, given the patterns of names that may stay unused: one line each."""
    patterns = list(allowed)
    dead = [item for item in unused if not any(fnmatchcase(item.name, pattern) for pattern in patterns)]
    stale = [pattern for pattern in patterns if not any(fnmatchcase(item.name, pattern) for item in unused)]
    return [
        *(f"{item.place}: unused {item.kind} {item.name}" for item in dead),
        *(f"pyproject.toml: [tool.vulture] allows {pattern}, which is used or gone: remove it" for pattern in stale),
    ]


def scan(root: Path, decorators: Sequence[str]) -> list[Unused]:
    """What is unused under `root`; what bears one of `decorators` is used."""
    vulture = Vulture(ignore_decorators=list(decorators))
    vulture.scavenge([str(root / folder) for folder in FOLDERS if (root / folder).exists()])
    named = set(_referenced(root))
    return [
        Unused(f"{item.filename.relative_to(root).as_posix()}:{item.first_lineno}", item.typ, item.name)
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ != "variable" or _is_global(item.filename, item.first_lineno)
        if (item.filename.resolve(), item.name) not in named
    ]


def _referenced(root: Path) -> Iterator[tuple[Path, str]]:
    """The file and the name behind every reference in the source."""
    source = root / "src"
    for file in source.rglob("*.py"):
        for module, name in _REFERENCE.findall(file.read_text(encoding="utf-8")):
            yield source.joinpath(*module.split(".")).with_suffix(".py").resolve(), name


def _is_global(path: Path, line: int) -> bool:
    return not path.read_text(encoding="utf-8").splitlines()[line - 1][0].isspace()


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {}).get("vulture", {})
    problems = findings(scan(root, config.get("ignore_decorators", [])), config.get("ignore_names", []))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
