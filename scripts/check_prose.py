"""Keep the prose plain: `python scripts/check_prose.py` fails on wording that a reader has to read twice.

It reads Markdown pages, docstrings, comments, messages (string literals with a space) and the text of HTML templates.
Code in backquotes and code blocks are left out. The rules stand in `scripts/prose/*.yml`, in the format of Vale
(https://vale.sh), of which two kinds of check are supported:

    extends: existence        # wording to avoid: `tokens` lists regular expressions
    extends: substitution     # wording to replace: `swap` maps a regular expression to what to write

"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

RULES: Final = "scripts/prose"
PAGES: Final = ("*.md", "docs/*.md", "examples/**/*.md")
CODE: Final = ("src/**/*.py", "scripts/**/*.py", "examples/**/*.py", "bench/**/*.py")
TEMPLATES: Final = ("src/**/*.html",)

_FENCE: Final = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_TARGET: Final = re.compile(r"(?<=\])\([^)\s]*\)|https?://\S+")
_MARKUP: Final = re.compile(r"\{[%{#].*?[%}#]\}|<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


class Text(NamedTuple):
    """A stretch of prose."""

    path: str
    line: int
    """Where its first character stands, counted from 1."""
    content: str


class Rule(NamedTuple):
    """One file of rules: each expression with what to say of it."""

    name: str
    checks: tuple[tuple[re.Pattern[str], str], ...]


def rules(folder: Path) -> list[Rule]:
    """The rules of a folder, by name. Raises ValueError for one of a kind that is not supported."""
    return [_rule(path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.yml"))]


def _rule(name: str, source: Mapping[str, Any]) -> Rule:
    flags = re.IGNORECASE if source.get("ignorecase") else re.NOFLAG
    message = source["message"]
    match source["extends"]:
        case "existence":
            pairs = [(token, message.replace("%s", "{found}")) for token in source["tokens"]]
        case "substitution":  # the first %s is what to write, the second what was found
            pairs = [
                (token, message.replace("%s", instead, 1).replace("%s", "{found}"))
                for token, instead in source["swap"].items()
            ]
        case kind:
            raise ValueError(f"{name}: checks of the kind {kind} are not supported")
    return Rule(name, tuple((re.compile(rf"\b(?:{_spaced(token)})\b", flags), text) for token, text in pairs))


def _spaced(token: str) -> str:
    """A blank of a rule is any white space of a text, a new line of a comment among it."""
    return token.replace(" ", r"\s+(?:\#\s+)?")


def findings(texts: Sequence[Text], held: Sequence[Rule]) -> list[str]:
    """Everything wrong, one line each, in the order of the texts."""
    return [
        f"{text.path}:{line}: {message} [{rule.name}]"
        for text in texts
        for line, message, rule in sorted(_matches(text, held), key=lambda match: match[0])
    ]


def _matches(text: Text, held: Sequence[Rule]) -> Iterator[tuple[int, str, Rule]]:
    for rule in held:
        for pattern, message in rule.checks:
            for match in pattern.finditer(text.content):
                line = text.line + text.content.count("\n", 0, match.start())
                yield line, message.replace("{found}", " ".join(match[0].split())), rule


def markdown(path: str, source: str) -> list[Text]:
    """The prose of a page; code is blanked, so that lines keep their numbers."""
    for pattern in (_FENCE, _SPAN, _TARGET):
        source = pattern.sub(_blank, source)
    return [Text(path, 1, source)]


def template(path: str, source: str) -> list[Text]:
    """The text of an HTML template, without its tags."""
    return [Text(path, 1, _MARKUP.sub(_blank, source))]


def python(path: str, source: str) -> list[Text]:
    """Docstrings, comments and messages of a module, by line."""
    return sorted([*_strings(path, source), *_comments(path, source)], key=lambda text: text.line)


def _strings(path: str, source: str) -> Iterator[Text]:
    waiting: list[ast.AST] = [ast.parse(source, path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            content = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant):
            content = node.value if isinstance(node.value, str) else ""
        else:
            waiting.extend(ast.iter_child_nodes(node))
            continue
        if " " in content.strip():
            yield Text(path, node.lineno, _SPAN.sub(_blank, content))


def _comments(path: str, source: str) -> Iterator[Text]:
    """Comments; those on lines that follow each other are one text."""
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != first + len(block):
            yield Text(path, first, _SPAN.sub(_blank, "\n".join(block)))
            block = []
        first = first if block else token.start[0]
        block.append(token.string)
    if block:
        yield Text(path, first, _SPAN.sub(_blank, "\n".join(block)))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0]).replace(" ", "_", 1) if match[0].strip() else match[0]


def files(root: Path) -> Iterator[tuple[str, Callable[[str, str], list[Text]]]]:
    """Each file under `root` that holds prose, and what reads it."""
    for patterns, read in ((PAGES, markdown), (CODE, python), (TEMPLATES, template)):
        for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
            yield path.relative_to(root).as_posix(), read


def scan(root: Path) -> list[Text]:
    """All prose under `root`, by path."""
    return [text for path, read in files(root) for text in read(path, (root / path).read_text(encoding="utf-8"))]


def main(root: Path) -> int:
    """Print what is wrong under `root`; return the exit status."""
    problems = findings(scan(root), rules(root / RULES))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
