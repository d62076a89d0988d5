"""Keep one name for one thing: `python scripts/check_names.py` fails on a name that two classes of the source have.

A module is named by its noun, not by a participle. No variable, parameter or attribute has a name that says nothing of
what it holds (`found`, `one`, `said` …), except what is written down or promised by it. Private classes are their
module's own affair.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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
IN_RECORDS: Final[Mapping[str, str]] = {
    "AgentTurn.asked": "in reports of runs",
    "AnswersForm.seen": "in a form of the console",
    "BulkForm.seen": "in a form of the console",
    "CallLines.kept": "in a job's story, as JSON",
    "CaseTable.seen": "in remit.toml",
    "CommandStarted.asked": "in events",
    "Considered.why": "in an explanation, as JSON",
    "DecisionFacts.seen": "in events",
    "ExplainBody.given": "in a request",
    "Facts.seen": "read by rules, which packages hold",
    "Generation.asked": "in a list, as JSON",
    "Hits.asked": "in sums of rules, as JSON",
    "HooksCallUngated.why": "in events",
    "KeptRow.kept": "in an audit report, as JSON",
    "KeptUnit.why": "in the outcome of pruning, as JSON",
    "LeftOut.why": "in a tool's result",
    "ModelDrift.asked": "in a report of drift, as JSON",
    "ModelSum.asked": "in sums of models, as JSON",
    "NotificationRow.said": "in a list, as JSON",
    "OccurrenceRow.why": "in a list, as JSON",
    "PolicyRules.explain.given": "promised: the API of Python",
    "Pruning.kept": "in the outcome of pruning, as JSON",
    "RemotePolicy.explain.given": "promised: the API of Python",
    "Report.kept": "in an audit report, as JSON",
    "Retirable.why": "in a report of drift, as JSON",
    "RunResult.seen": "in the result of a job",
    "ScheduleSkipped.why": "in events",
    "ServerRow.why": "in a list, as JSON",
    "ShardRow.why": "in a list, as JSON",
    "SkillRow.why": "in a list, as JSON",
    "StateDiff.kept": "in a job's story, as JSON",
    "TargetAnswer.said": "in an answer, as JSON",
    "Unread.why": "in a tool's result, and in a report",
    "Untrusted.kept": "in a job's story, as JSON",
    "UntrustedArgument.seen": "in events",
    "ticket_run.kept": "in the input of a job",
}
"""The fields and parameters that are named by a filler and stay, each with where it is written down or promised."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def findings(sources: Mapping[str, str], in_records: Collection[str] = IN_RECORDS) -> list[str]:
    """Everything wrong in modules by their paths, those of `src` below it, one line each."""
    trees = {path: ast.parse(source, path) for path, source in sources.items()}
    return [*_participles(trees), *_twice(trees), *_fillers(trees, in_records)]


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


def _fillers(trees: Mapping[str, ast.Module], in_records: Collection[str]) -> Iterator[str]:
    names = [(path, line, name) for path, tree in sorted(trees.items()) for line, name in _named(tree)]
    for path, line, name in names:
        if name not in in_records:
            yield f"{path}:{line}: name {name} by what it holds"
    for name in sorted(set(in_records) - {name for _, _, name in names}):
        yield f"scripts/check_names.py: nothing is named {name} any more"


def _named(node: ast.AST, scope: str = "") -> Iterator[tuple[int, str]]:
    """The line and the qualified name of each variable, parameter and attribute that is named by a filler."""
    for child in ast.iter_child_nodes(node):
        match child:
            case (
                ast.Name(id=name, ctx=ast.Store(), lineno=line)
                | ast.Attribute(attr=name, ctx=ast.Store(), lineno=line)
                | ast.arg(arg=name, lineno=line)
                | ast.MatchAs(name=str(name), lineno=line)
                | ast.MatchStar(name=str(name), lineno=line)
                | ast.ExceptHandler(name=str(name), lineno=line)
            ) if name.lstrip("_") in FILLERS:
                yield line, f"{scope}{name}"
            case _:
                pass
        yield from _named(child, f"{scope}{child.name}." if isinstance(child, Definition) else scope)


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    folders = (("src", ""), ("testing/src", ""), ("", "bench"), ("", "scripts"))
    texts = {
        path.relative_to(root / base).as_posix(): path.read_text(encoding="utf-8")
        for base, folder in folders
        for path in (root / base / folder).rglob("*.py")
    }
    problems = findings(texts)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
