"""Keep docstrings where they say something: `python scripts/check_docstrings.py` fails on a public method without.

A method that implements a port is documented there and needs none: one without a docstring is wrong only if no other
method of its name has one, and no class has a field of its name.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Method(NamedTuple):
    """A public method of a public class."""

    place: str
    name: str
    is_documented: bool


def findings(sources: Mapping[str, str]) -> list[str]:
    """Everything wrong in modules by their paths, one line each."""
    classes = [
        (path, node)
        for path, source in sources.items()
        for node in ast.walk(ast.parse(source, path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    methods = [method for path, node in classes for method in _methods(path, node)]
    known = {method.name for method in methods if method.is_documented} | {
        field.target.id
        for _, node in classes
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    return [
        f"{method.place}: {method.name} has no docstring, and implements nothing that has one"
        for method in methods
        if not method.is_documented and method.name not in known
    ]


def _methods(path: str, node: ast.ClassDef) -> Iterator[Method]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
            yield Method(f"{path}:{member.lineno}", member.name, ast.get_docstring(member) is not None)


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    paths = sorted((root / "src").rglob("*.py"))
    problems = findings({path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths})
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
