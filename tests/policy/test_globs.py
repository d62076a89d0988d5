import re
import time
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remit.policy.globs import name_matches, path_matcher, path_problem

PARTS = st.text(alphabet="ab.*?", min_size=1, max_size=4).filter(lambda part: "**" not in part)
PATTERNS = st.lists(PARTS | st.just("**"), min_size=1, max_size=5).map("/".join)
PATHS = st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


def covers(pattern: str, path: str, *, wide: bool = False) -> bool:
    return path_matcher([pattern], wide=wide)(path) is not None


def slow_part(pattern: str, part: str, *, wide: bool) -> bool:
    """One part, by trying everything."""
    if not wide and part.startswith(".") and pattern[:1] in {"*", "?"}:
        return False

    @cache
    def at(i: int, j: int) -> bool:
        if i == len(pattern):
            return j == len(part)
        if pattern[i] == "*":
            return at(i + 1, j) or (j < len(part) and at(i, j + 1))
        return j < len(part) and pattern[i] in {"?", part[j]} and at(i + 1, j + 1)

    return at(0, 0)


def slow(pattern: str, path: str, *, wide: bool) -> bool:
    """A whole path, by trying everything."""
    globs, parts = pattern.split("/"), path.split("/")

    def hidden(part: str) -> bool:
        return not wide and part.startswith(".")

    @cache
    def at(i: int, j: int) -> bool:
        if i == len(globs):
            return j == len(parts)
        if globs[i] != "**":
            return j < len(parts) and slow_part(globs[i], parts[j], wide=wide) and at(i + 1, j + 1)
        if i + 1 == len(globs) and not wide:
            return j < len(parts) and not any(map(hidden, parts[j:]))
        return at(i + 1, j) or (j < len(parts) and not hidden(parts[j]) and at(i, j + 1))

    return at(0, 0)


@given(PATTERNS, PATHS, st.booleans())
@example(pattern="**/a/**", path="b/a", wide=True)
@example(pattern="a/**/b/**/c", path="a/b/b/c", wide=False)
@example(pattern="**/a*b*a/**/b", path="ab/aba/b", wide=False)
def test_a_path_glob_says_what_trying_everything_says(pattern: str, path: str, wide: bool) -> None:
    collapsed = re.sub(r"\*\*(/\*\*)+", "**", pattern)  # several in a row are one
    assert covers(pattern, path, wide=wide) == slow(collapsed, path, wide=wide)


@given(PATTERNS, PATHS)
def test_what_an_allow_rule_covers_a_deny_rule_covers_too(pattern: str, path: str) -> None:
    assert not covers(pattern, path) or covers(pattern, path, wide=True)


@given(st.text(alphabet="ab*?.", max_size=6), st.text(alphabet="ab.", max_size=8))
def test_a_name_glob_says_what_trying_everything_says(pattern: str, name: str) -> None:
    assert name_matches(pattern, name) == slow_part(pattern, name, wide=True)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("docs/**", "docs/a.md", True),
        ("docs/**", "docs/a/b/c.md", True),
        ("docs/**", "docs", False),
        ("docs/**", "docs/", False),
        ("docs/**", "docs2/a.md", False),
        ("docs/*", "docs/a/b.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/x/y/a.md", True),
        ("**/*.md", "a.md", True),
        ("**", ".env", False),
        ("**", "a/.git/hooks/pre-commit", False),
        (".github/**", ".github/workflows/ci.yml", True),
        ("/srv/**", "/srv/a", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
    ],
)
def test_a_path_glob_of_an_allow_rule(pattern: str, path: str, expected: bool) -> None:
    assert covers(pattern, path) is expected


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("secret/**", "secret"),
        ("**/secret/**", "a/secret"),
        ("**", ".env"),
        ("**", ""),
        ("**/.env", "a/.env"),
        ("**", "a/.b/c"),
    ],
)
def test_a_path_glob_of_a_deny_rule_covers_the_folder_and_what_is_hidden(pattern: str, path: str) -> None:
    assert covers(pattern, path, wide=True)


def test_a_name_glob_crosses_dots() -> None:
    assert name_matches("mcp.*", "mcp.github.list_issues")
    assert not name_matches("fs.*", "fs")


@pytest.mark.parametrize(
    "pattern", ["!docs/**", "docs/{a,b}", "docs/[ab]", "a\\b", "docs/**.md", "../x", "./x", "a//b"]
)
def test_what_a_glob_cannot_mean_is_refused_with_a_remedy(pattern: str) -> None:
    problem = path_problem(pattern)
    assert problem is not None
    assert problem[1]


def test_a_glob_that_ends_with_a_slash_is_refused_because_no_path_does() -> None:
    assert path_problem("docs/") == ('ends with "/"', "Write 'docs/**' for what lies in it.")


@pytest.mark.parametrize("pattern", ["docs/**", "*", "a?b", "/etc/**", "https://api.example.org/**", "~/x"])
def test_a_usable_glob_has_no_problem(pattern: str) -> None:
    assert path_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a*a*a*a*a*a*b", "a" * 20_000),
        ("**/a/**/a/**/a/**/b", "a/" * 10_000 + "a"),
        ("**/*a*a/**/*a*a/**/c", "aaaa/" * 5_000 + "a"),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_no_text_makes_a_glob_slow(pattern: str, text: str, wide: bool) -> None:
    began = time.process_time()
    assert not covers(pattern, text, wide=wide)
    assert time.process_time() - began < 1  # milliseconds; trying everything would take longer than the universe
