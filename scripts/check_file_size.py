"""Keep files and functions small: `python scripts/check_file_size.py` fails on what is too long.

A file has at most 400 lines and a function at most 60, its docstring counted. There are no exceptions.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60
FOLDERS: Final = ("src", "tests", "bench", "scripts")

Sizes = Mapping[str, int]
"""Lines by name: the path of a file from the root, or `path::Class.function`."""


def findings(sizes: Sizes) -> list[str]:
    """Everything that is too long: one sentence each, by name."""
    return [
        f"{name}: {size} lines, {limit} are allowed: split it"
        for name, size in sorted(sizes.items())
        if size > (limit := _limit(name))
    ]


def _limit(name: str) -> int:
    return FUNCTION_LINES if "::" in name else FILE_LINES


def measure(root: Path) -> dict[str, int]:
    """The lines of every Python file and function under the checked folders of `root`."""
    sizes: dict[str, int] = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        sizes[name] = len(text.splitlines())
        for function, size in _functions(ast.parse(text, name)):
            key = f"{name}::{function}"
            sizes[key] = max(size, sizes.get(key, 0))
    return sizes


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, (child.end_lineno or child.lineno) - child.lineno + 1
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    problems = findings(measure(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
