"""Keep docstrings useful: `python scripts/check_docstrings.py` fails on a missing one, and on one that asks.

A method that implements a port is documented there and needs none: one without a docstring is wrong only if no other
method of its name has one, and no class has a field of its name; one that repeats that of the port is. `__init__` has
none: its class says what it takes.

A docstring begins with a verb or a noun, not with What, Who or How, one of a function neither with Whether, Why, Where,
When or Which; one behind a field as well. Left alone are those of structs: they stand in JSON schemas, whose hashes are
recorded.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ASKING: Final = re.compile(r"(What|Who|How)\b")
CLAUSE: Final = re.compile(r"(What|Who|How|Whether|Why|Where|When|Which)\b")
CONTRACTS: Final = "testing/src/remit_testing/"
"""The checks of contracts, whose docstrings say what must hold: `Where one fails, the others go on.`"""


class Method(NamedTuple):
    """A public method of a public class."""

    place: str
    name: str
    is_documented: bool


def findings(sources: Mapping[str, str]) -> list[str]:
    """Everything wrong in modules by their paths, one line each."""
    trees = {path: ast.parse(source, path) for path, source in sources.items()}
    classes = [
        (path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    return [*_undocumented(classes), *_said_before(classes), *_asking(trees, _structs([node for _, node in classes]))]


def _undocumented(classes: Sequence[tuple[str, ast.ClassDef]]) -> Iterator[str]:
    public = [(path, node) for path, node in classes if not node.name.startswith("_")]
    methods = [method for path, node in public for method in _methods(path, node)]
    known = {method.name for method in methods if method.is_documented} | {
        field.target.id
        for _, node in public
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    for method in methods:
        if not method.is_documented and method.name not in known:
            yield f"{method.place}: {method.name} has no docstring, and implements nothing that has one"


def _said_before(classes: Sequence[tuple[str, ast.ClassDef]]) -> Iterator[str]:
    documented = [
        (f"{path}:{member.lineno}", member.name, " ".join(text.split()), "Protocol" in map(base_name, node.bases))
        for path, node in classes
        for member in node.body
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(member))
    ]
    ports = {(name, text) for _, name, text, is_port in documented if is_port}
    for place, name, text, is_port in documented:
        if name == "__init__":
            yield f"{place}: the docstring of the class says what __init__ takes"
        elif not is_port and (name, text) in ports:
            yield f"{place}: {name} repeats the docstring of its port"


def _methods(path: str, node: ast.ClassDef) -> Iterator[Method]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
            yield Method(f"{path}:{member.lineno}", member.name, ast.get_docstring(member) is not None)


def _structs(classes: Sequence[ast.ClassDef]) -> set[str]:
    """The names of all classes below msgspec's Struct."""
    names = {"Struct"}
    while more := {node.name for node in classes if names & set(map(base_name, node.bases))} - names:
        names |= more
    return names


def base_name(base: ast.expr) -> str:
    """Return the name of a base of a class, without its module and its parameters."""
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def _asking(trees: Mapping[str, ast.Module], structs: set[str]) -> Iterator[str]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            first = 0
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not path.startswith(CONTRACTS):
                first = node.body[0].lineno
            for text in _texts(node, structs):
                if match := (CLAUSE if text.lineno == first else ASKING).match(str(text.value).strip()):
                    yield f"{path}:{text.lineno}: begin with a verb or a noun, not with {match[0]!r}"


def _texts(node: ast.AST, structs: set[str]) -> Iterator[ast.Constant]:
    """The strings that stand by themselves in a body: its docstring, and those behind fields."""
    body = getattr(node, "body", [])
    for index, statement in enumerate(body if isinstance(body, list) else []):
        is_in_schema = index == 0 and isinstance(node, ast.ClassDef) and node.name in structs
        text = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and not is_in_schema:
            yield text


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    paths = sorted(path for folder in ("src", "testing") for path in (root / folder).rglob("*.py"))
    problems = findings({path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths})
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
