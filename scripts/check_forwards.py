"""Keep no method that only forwards: `python -m scripts.check_forwards` fails on one whose callers can ask its target.

Left alone are those that a port, a base or a subclass names, that are declared (an operation, a property), and those
whose target is private: they are a face, as the nouns of the service are. What has a base outside of the source answers
to that.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from scripts.check_docstrings import base_name

SERVICE: Final = "src/remit/service/"
FACES: Final = frozenset({"OutputChannel.flush", "Remit.jobs", "RemoteRemit.jobs"})
"""By class and method, what hides the stream that a channel writes to, and what is promised."""

Method = ast.FunctionDef | ast.AsyncFunctionDef


def findings(sources: Mapping[str, str]) -> list[str]:
    """Every such method of modules by their paths, one line each."""
    trees = {path: ast.parse(source, path) for path, source in sources.items()}
    classes = [
        (path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    ports = {
        member.name
        for _, node in classes
        if node.bases and any(_is_port(base) for base in node.bases)
        for member in node.body
        if isinstance(member, Method)
    }
    bases = {node.name: {base_name(base) for base in node.bases} for _, node in classes}
    members = {(node.name, member.name) for _, node in classes for member in node.body if isinstance(member, Method)}
    overrides = {(name, base, method) for name, method in members for base in bases[name] if (base, method) in members}
    shared = {(owner, method) for name, base, method in overrides for owner in (name, base)}
    return [
        f"{path}:{method.lineno}: {node.name}.{method.name} only forwards to {target}: ask that, and remove it"
        for path, node in classes
        if bases[node.name] <= bases.keys() and not path.startswith(SERVICE)
        for method, target in _forwards(node)
        if method.name not in ports
        and (node.name, method.name) not in shared
        and f"{node.name}.{method.name}" not in FACES
    ]


def _is_port(base: ast.expr) -> bool:
    return base_name(base) in {"Protocol", "ABC"}


def _forwards(node: ast.ClassDef) -> Iterator[tuple[Method, str]]:
    """The undeclared methods that pass all they are passed to one public target, and that target."""
    for member in node.body:
        if isinstance(member, Method) and not member.decorator_list:
            target = _target(member)
            if target.startswith("self.") and target.count(".") > 1 and "._" not in target:
                yield member, target


def _target(method: Method) -> str:
    body = method.body[1:] if ast.get_docstring(method) else method.body
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) else None
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call):
        return ""
    rules = method.args
    taken = [*rules.posonlyargs, *rules.args, *rules.kwonlyargs, *filter(None, (rules.vararg, rules.kwarg))]
    passed = [each.value if isinstance(each, ast.Starred) else each for each in call.args]
    passed += [keyword.value for keyword in call.keywords]
    is_whole = sorted(map(ast.unparse, passed)) == sorted(each.arg for each in taken[1:])
    return ast.unparse(call.func) if is_whole else ""


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    paths = sorted(path for folder in ("src", "testing/src") for path in (root / folder).rglob("*.py"))
    problems = findings({path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths})
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
