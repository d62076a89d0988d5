"""Keep files and functions small: `python scripts/check_file_size.py` fails on what is too long.

A file has at most 400 lines and a function at most 60, its docstring counted. What was longer when it was found may
stand in `scripts/file_size_ratchet.toml`, with its exact size, and from then on only shrink:

    [lines]
    "src/remit/gateway/pipeline.py" = 412
    "src/remit/gateway/pipeline.py::Pipeline.run" = 71
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60
FOLDERS: Final = ("src", "tests", "bench", "scripts")
RATCHET: Final = "scripts/file_size_ratchet.toml"

Sizes = Mapping[str, int]
"""Lines by name: the path of a file from the root, or `path::Class.function`."""


def findings(sizes: Sizes, ratchet: Sizes) -> list[str]:
    """Everything wrong with `sizes`, given the exceptions in `ratchet`: one sentence each, by name."""
    names = sorted({name for name, size in sizes.items() if size > _limit(name)} | ratchet.keys())
    return [text for name in names if (text := _finding(name, sizes.get(name), ratchet.get(name)))]


def _finding(name: str, size: int | None, entry: int | None) -> str | None:
    limit = _limit(name)
    if size is None:
        return f"{name}: does not exist: remove its entry from {RATCHET}"
    if entry is None:
        return f"{name}: {size} lines, {limit} are allowed: split it"
    if size <= limit:
        return f"{name}: {size} lines, no exception is needed: remove its entry from {RATCHET}"
    if size > entry:
        return f"{name}: grew from {entry} to {size} lines: an exception only shrinks"
    if size < entry:
        return f"{name}: shrank from {entry} to {size} lines: write {size} in {RATCHET}"
    return None


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


def load_ratchet(root: Path) -> dict[str, int]:
    """The exceptions that `root` lists, none when it has no such file."""
    path = root / RATCHET
    if not path.exists():
        return {}
    lines: dict[str, int] = tomllib.loads(path.read_text(encoding="utf-8")).get("lines", {})
    return lines


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    problems = findings(measure(root), load_ratchet(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
