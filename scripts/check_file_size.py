"""Keep files and functions small, but whole: `python scripts/check_file_size.py` fails on what is too long or a crumb.

A file has at most 600 lines and a function at most 60, its docstring counted. There are no exceptions.

A crumb is a file of the source below the floor that only its own folder imports: it belongs into a neighbour. The
floor only rises. Some kinds have a reason to be a file: one that nothing imports (a command, a page of a plugin, what
runs by itself), one that is imported inside functions alone or as a module, one that a reference names, and one whose
users have no room for it. Those of `APART` have theirs by name.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FILE_LINES: Final = 600
FUNCTION_LINES: Final = 60
FLOOR: Final = 120
APART: Final = frozenset(
    {
        "remit/evidence/ed25519.py",  # shipped as a file in each package
        "remit/parts/adapters/caller.py",  # its users need a framework each, and none the others'
        "remit/parts/notify/method.py",  # needs aiohttp, which only channels load
        "remit/parts/web/shapes.py",  # the tools' schemas, without the libraries that read pages
    }
)
FOLDERS: Final = ("src", "testing", "tests", "bench", "scripts")

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


def crumbs(sources: Mapping[str, str], floor: int = FLOOR) -> list[str]:
    """Every module, by its path below `src`, that belongs into a neighbour of its folder: one sentence each."""
    users: dict[str, set[str]] = {}
    needed: set[tuple[str, str]] = set()
    for path, source in sources.items():
        tree = ast.parse(source, path)
        lazy = {id(node) for block in ast.walk(tree) if _is_lazy(block) for node in ast.walk(block)}
        for node in ast.walk(tree):
            for name in _mentioned(node):
                users.setdefault(name, set()).add("" if isinstance(node, ast.Constant) else path)
                if id(node) not in lazy:
                    needed.add((name, path))
    lines = {path: len(source.splitlines()) for path, source in sources.items()}
    return [
        f"{path}: {size} lines, {floor} are the least: fold it into {' or '.join(rooms)}"
        for path, size in lines.items()
        if size < floor and path not in APART
        for name in (path.removesuffix(".py").replace("/", "."),)
        for rooms in (sorted(user for user in _neighbours(path, users.get(name, set())) if (name, user) in needed),)
        if any(size + lines[user] <= FILE_LINES for user in rooms)
    ]


def _is_lazy(node: ast.AST) -> bool:
    """Return whether it is a function, or read for types alone."""
    is_typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return is_typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _neighbours(path: str, users: set[str]) -> set[str]:
    """The users of a module, if all of them are modules beside it."""
    is_inside = all(user and Path(user).parent == Path(path).parent and Path(user).stem != "__init__" for user in users)
    return users if is_inside else set()


def _mentioned(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports names of, or a reference stands for; or a module itself, with its name."""
    match node:
        case ast.ImportFrom(module=str() as module):
            yield module
        case ast.Constant(value=str() as text) if text.startswith("remit."):
            yield text.partition(":")[0]
        case _:
            pass


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    texts = {
        path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
        for source in (root / "src", root / "testing/src")
        for path in source.rglob("*.py")
    }
    problems = [*findings(measure(root)), *crumbs(dict(sorted(texts.items())))]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
