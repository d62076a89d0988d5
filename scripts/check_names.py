"""Keep one name for one thing: `python scripts/check_names.py` fails on a name that two classes of the source have.

A module is named by its noun, not by a participle. The names of variables that say nothing of what they hold (`found`,
`one`, `said` …) only become fewer. Private classes are their module's own affair.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

NOUNS: Final = frozenset({"feed", "listing", "rejected", "wiring"})
"""Names of modules that end like a participle; `rejected` is shipped as a file in each package."""
IN_SCHEMAS: Final = frozenset(
    {
        "Artifact",
        "Changes",
        "Command",
        "Difference",
        "ExecArgs",
        "ExecResult",
        "ExecuteBody",
        "ExtractResult",
        "Item",
        "ListArgs",
        "ModelAnswer",
        "Page",
        "ReadArgs",
        "ReadResult",
        "Replayed",
        "Report",
        "Run",
        "SearchArgs",
        "SearchResult",
        "Skipped",
        "Span",
        "Unread",
        "WriteArgs",
        "WriteResult",
        "Written",
    }
)
"""Names that stand in the schemas of tools, whose hashes are recorded, in the promised API, or in documents of work."""
FILLERS: Final = frozenset({"asked", "found", "given", "heard", "kept", "one", "said", "seen", "told", "why"})
MOST_FILLERS: Final = 96
"""Variables and parameters that are named by one. Lower it after a change."""


def findings(sources: Mapping[str, str], most_fillers: int = MOST_FILLERS) -> list[str]:
    """Everything wrong in modules by their paths below `src`, one line each."""
    trees = {path: ast.parse(source, path) for path, source in sources.items()}
    return [*_participles(trees), *_twice(trees), *_too_many(trees, most_fillers)]


def _participles(paths: Iterable[str]) -> Iterator[str]:
    for path in sorted(paths):
        if path.startswith("remit/") and (stem := Path(path).stem).endswith(("ing", "ed")) and stem not in NOUNS:
            yield f"{path}: a module is named by its noun, not by a participle"


def _twice(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in sorted(trees.items()):
        for node in ast.walk(tree) if path.startswith("remit/") else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in IN_SCHEMAS:
                places[node.name].append(f"{path}:{node.lineno}")
    for name, (first, *others) in places.items():
        for other in others:
            yield f"{other}: {name} is the name of a class in {first}"


def _too_many(trees: Mapping[str, ast.Module], most: int) -> Iterator[str]:
    places = [place for path, tree in sorted(trees.items()) for place in _fillers(path, tree)]
    if len(places) != most:
        change = "name the new one by what it holds" if len(places) > most else "lower MOST_FILLERS"
        yield f"{len(places)} variables are named {', '.join(sorted(FILLERS))}, {most} were: {change}"


def _fillers(path: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in FILLERS:
                yield f"{path}:{node.lineno}"
            case _:
                pass


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    texts = {
        path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
        for source in (root / "src", root / "testing/src")
        for path in source.rglob("*.py")
    }
    problems = findings(texts)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
