"""Globs that take linear time on any text: a caller writes the text, so a pattern must not be made to hang the gate.

Two kinds. In *names* (tools, providers, callers) `*` stands for any characters and `?` for one. In *paths* (and URLs,
branch names: text with `/` between its parts) they stay within one part, and a part that is `**` stands for any number
of parts, none included. Both become regular expressions whose stars are atomic groups: for wildcards the first place
where the next literal fits is as good as any later one, so there is nothing to try again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from remit.regex import regex

_SPECIAL: Final = regex(r"[*?]")
_UNSUPPORTED: Final = regex(r"[\[\]{}\\]")


def is_glob(pattern: str) -> bool:
    """Return whether a pattern holds wildcards."""
    return _SPECIAL.search(pattern) is not None


def name_matcher(pattern: str) -> Callable[[str], object]:
    """A function that says (by what is true of its result) whether a name glob covers the whole of a name."""
    return re.compile(_pieces(pattern, "."), re.DOTALL).fullmatch if is_glob(pattern) else pattern.__eq__


@lru_cache(maxsize=4096)
def _cached(pattern: str) -> Callable[[str], object]:
    return name_matcher(pattern)


def name_matches(pattern: str, name: str) -> bool:
    """Return whether a name glob covers the whole of a name."""
    return bool(_cached(pattern)(name))


def path_matcher(patterns: Iterable[str], *, wide: bool) -> Callable[[str], re.Match[str] | None]:
    """A function that says whether one of several path globs covers the whole of a text."""
    return re.compile("|".join(f"(?:{_path(pattern, wide=wide)})" for pattern in patterns), re.DOTALL).fullmatch


def _path(pattern: str, *, wide: bool) -> str:
    """A path glob as a regular expression.

    As an allow rule reads it, a wildcard never covers a part that begins with a dot (`.git`, `.env`), and `a/**` is
    what lies in `a`. Read `wide`, as rules that restrict do, wildcards cover those parts too, and `a/**` is `a` itself
    as well.
    """
    if wide and pattern.endswith("/**"):
        return _path(pattern.removesuffix("/**"), wide=True) + "(?:/.*)?"
    before, *runs = _runs(pattern)
    guard = "" if wide else r"(?!\.)"
    step, some = f"{guard}[^/]*/", "*" if wide else "+"
    if not runs:
        return _run(before, guard)
    *middle, last = runs
    text = _run(before, guard) + "/" if before else ""
    for run in middle:
        text += f"(?>(?:{step})*?{_run(run, guard)}/)"
    return text + f"(?:{step})*" + (_run(last, guard) if last else f"{guard}[^/]{some}")


def path_problem(pattern: str) -> tuple[str, str] | None:
    """Return what is wrong with a path glob, and the remedy; None where it can be used."""
    if pattern.startswith("!"):
        return "cannot be negated", "Write a rule of its own with the opposite effect."
    if _UNSUPPORTED.search(pattern):
        return "knows only *, ** and ?", "Give a list of globs for alternatives, and ? for a character that is special."
    if any("**" in part and part != "**" for part in pattern.split("/")):
        return "has ** within a part of the path", 'Let ** stand alone between slashes, as in "docs/**/*.md".'
    if pattern.endswith("/"):
        return 'ends with "/"', f"Write {pattern + '**'!r} for what lies in it."
    return plain_problem(pattern)


def plain_problem(text: str) -> tuple[str, str] | None:
    """Return the reason why a path prefix or glob never meets a normalised path, and the remedy; None if it may."""
    parts = text.replace("://", ":", 1).split("/")
    if ".." in parts:
        return 'climbs with ".."', "Name the folder itself."
    if "." in parts or "" in parts[1:-1]:
        return 'holds an empty part or "."', "Write the path in its shortest form."
    return None


def _runs(pattern: str) -> list[list[str]]:
    """The parts between the `**` of a pattern; several `**` in a row are one."""
    runs: list[list[str]] = [[]]
    for part in pattern.split("/"):
        if part != "**":
            runs[-1].append(part)
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    return runs


def _run(parts: list[str], guard: str) -> str:
    return "/".join((guard if part[:1] in {"*", "?"} else "") + _pieces(part, "[^/]") for part in parts)


def _pieces(pattern: str, char: str) -> str:
    """A pattern of one part: literals, `?` for one `char`, `*` for any number of them."""
    first, *rest = ("".join(char if c == "?" else re.escape(c) for c in piece) for piece in pattern.split("*"))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>{char}*?{piece})" for piece in middle if piece) + f"{char}*{last}"
