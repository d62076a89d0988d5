import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.samples import verdict

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("operators", "value", "expected"),
    [
        ({"equals": 1}, 1, True),
        ({"equals": 1}, 1.0, True),
        ({"equals": 1}, 2, False),
        ({"equals": 1}, True, None),
        ({"equals": True}, 1, None),
        ({"equals": True}, "true", None),
        ({"equals": True}, False, False),
        ({"equals": "a"}, "a", True),
        ({"equals": "a"}, None, None),
        ({"equals": ["a", 1]}, ["a", 1], True),
        ({"equals": ["a", 1]}, ["a", True], False),
        ({"equals": {"a": [1]}}, {"a": [1.0]}, True),
        ({"equals": {"a": 1}}, {"a": 1, "b": 2}, False),
        ({"equals": {"a": 1}}, {"a": True}, False),
        ({"in": ["a", "b"]}, "b", True),
        ({"in": ["a", "b"]}, "c", False),
        ({"in": ["a", 1]}, "c", False),
        ({"in": ["a", "b"]}, 1, None),
        ({"in": [["git", "status"], ["ls"]]}, ["ls"], True),
        ({"in": [["git", "status"], ["ls"]]}, ["ls", "/"], False),
        ({"min": 2}, 2, True),
        ({"min": 2}, 1.5, False),
        ({"max": 2}, 2, True),
        ({"max": 2}, 3, False),
        ({"max": 2}, "1", None),
        ({"max": 2}, True, None),
        ({"max": 2}, float("nan"), None),
        ({"max_length": 2}, "ab", True),
        ({"max_length": 2}, "abc", False),
        ({"max_length": 2}, ["a", "b", "c"], False),
        ({"max_length": 2}, 5, None),
        ({"glob": ["docs/**"]}, 5, None),
        ({"prefix": ["docs/"]}, 5, None),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_an_operator_on_a_value(operators: dict[str, Any], value: Any, expected: bool | None, wide: bool) -> None:
    assert verdict(operators, value, wide=wide) is expected


@pytest.mark.parametrize(
    ("operators", "value", "expected"),
    [
        ({"glob": ["docs/**"]}, "docs/a.md", True),
        ({"glob": ["docs/**"]}, "./docs//a.md", True),
        ({"glob": ["docs/**"]}, "docs/../secret", None),
        ({"glob": ["docs/**"]}, "/docs/a.md", False),
        ({"glob": ["docs/**"]}, "Docs/a.md", False),
        ({"glob": ["**"]}, "/etc/passwd", False),
        ({"glob": ["**"]}, "~/x", False),
        ({"glob": ["**"]}, "C:/x", False),
        ({"glob": ["**"]}, "file:/etc/passwd", False),
        ({"glob": ["**"]}, "file:///etc/passwd", None),
        ({"glob": ["**"]}, "https://x.org/a", False),
        ({"glob": ["docs/**"]}, "docs", False),
        ({"glob": ["**"]}, "docs/.env", False),
        ({"glob": ["/srv/**"]}, "/srv/a", True),
        ({"glob": ["/srv/**"]}, "/srv", False),
        ({"glob": ["/srv/**"]}, "/srv/.env", False),
        ({"glob": ["~/notes/**"]}, "~/notes/a", True),
        ({"glob": ["docs/**", "notes/*"]}, "notes/a", True),
        ({"glob": ["https://*.example.org/**"]}, "https://api.example.org/a", True),
        ({"glob": ["https://*.example.org/**"]}, "https://evil.example?.example.org/a", None),
        ({"glob": ["https://*.example.org/**"]}, "https://evil.example/.example.org/a", False),
        ({"prefix": ["docs/"]}, "docs/a", True),
        ({"prefix": ["docs/"]}, "docs/../a", None),
        ({"prefix": ["https://api.example.org/"]}, "https://api.example.org/a", True),
        ({"prefix": ["https://api.example.org/"]}, "https://api.example.org.evil.example/a", False),
        ({"equals": "a/b"}, "./a/b", False),
        ({"equals": "a"}, "A", False),
    ],
)
def test_an_allow_rule_compares_text_strictly(operators: dict[str, Any], value: str, expected: bool | None) -> None:
    assert verdict(operators, value) is expected


@pytest.mark.parametrize(
    "value",
    [
        "secret/x",
        "secret",
        "secret/",
        "Secret/X",
        "./secret/x",
        "docs/../secret/x",
        "docs/x/../../secret",
        "docs\\..\\secret\\x",
        "secret%2fx",
        "/srv/project/secret/x",
        "../project/secret/x",
        "~/project/secret/x",
        "C:\\project\\secret\\x",
        "file:///srv/project/secret/x",
        " secret/x",
        "\uff53ecret/x",
        "secret/../docs/x",  # the raw text counts as well
    ],
)
def test_a_deny_rule_is_not_talked_around(value: str) -> None:
    assert verdict({"glob": ["secret/**"]}, value, wide=True) is True


@pytest.mark.parametrize("value", ["docs/x", "secrets/x", "my/secret.md", "docs/secret/x", "/srv/docs/x", "../x", ""])
def test_a_deny_rule_lets_go_what_it_does_not_mean(value: str) -> None:
    assert verdict({"glob": ["secret/**"]}, value, wide=True) is False


@pytest.mark.parametrize(
    ("operators", "value", "expected"),
    [
        ({"glob": ["/etc/**"]}, "/etc/passwd", True),
        ({"glob": ["/etc/**"]}, "/srv/../etc/passwd", True),
        ({"glob": ["/etc/**"]}, "/srv/etc/passwd", False),
        ({"glob": ["/etc/**"]}, "etc/passwd", False),
        ({"glob": ["/etc/**"]}, "../../etc/passwd", True),
        ({"glob": ["/etc/**"]}, "../x", None),
        ({"glob": ["/etc/**"]}, "~/x", None),
        ({"glob": ["/etc/**"]}, "file:///etc/passwd", True),
        ({"glob": ["~/.ssh/**"]}, "~/.ssh/id", True),
        ({"glob": ["~/.ssh/**"]}, "/home/alice/.ssh/id", True),
        ({"glob": ["~/.ssh/**"]}, "../x", None),
        ({"glob": ["~/.ssh/**"]}, "~/docs/x", False),
        ({"glob": ["https://evil.example/**"]}, "HTTPS://u@Evil.Example:443/x", True),
        ({"glob": ["https://evil.example/**"]}, "https://evil.example?x=1", True),
        ({"glob": ["https://evil.example/**"]}, "https://good.example/x", False),
        ({"glob": ["https://evil.example/**"]}, "../x", False),
        ({"prefix": ["secret/"]}, "docs/../secret/x", True),
        ({"prefix": ["secret/"]}, "/srv/secret/x", True),
        ({"prefix": ["/"]}, "/x", True),
        ({"prefix": ["/"]}, "x", False),
        ({"prefix": ["/"]}, "../x", None),
        ({"prefix": ["http://"]}, "HTTP:/x.example", True),
        ({"prefix": ["rm "]}, "/bin/rm -rf x", True),
        ({"equals": "secret.txt"}, "./Secret.txt", True),
        ({"equals": "secret.txt"}, "/srv/secret.txt", True),
        ({"equals": "DELETE"}, "delete", True),
        ({"in": ["a.txt", "b.txt"]}, "x/../b.txt", True),
        ({"in": ["a.txt", "b.txt"]}, "c.txt", False),
        ({"in": ["", "x"]}, "/y", False),
        ({"equals": "x"}, "a b" * 200_000, None),
    ],
)
def test_a_deny_rule_compares_text_widely(operators: dict[str, Any], value: str, expected: bool | None) -> None:
    assert verdict(operators, value, wide=True) is expected


PIECES = st.sampled_from(["secret", "a", "..", ".", "", "x"])


@given(st.lists(PIECES, min_size=1, max_size=7).map("/".join))
def test_whatever_resolves_into_a_denied_folder_is_denied(text: str) -> None:
    stack: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del stack[-1:]
        elif part not in {"", "."}:
            stack.append(part)
    if stack[:1] == ["secret"]:
        assert verdict({"glob": ["secret/**"]}, text, wide=True) is not False


@given(st.lists(PIECES, min_size=1, max_size=7).map("/".join))
def test_nothing_that_leaves_an_allowed_folder_is_allowed(text: str) -> None:
    value = f"docs/{text}"
    depth = 0
    for part in text.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            assert verdict({"glob": ["docs/**"]}, value) is not True


@pytest.mark.parametrize(
    "text", ["a/" * 130_000, "/" * 260_000, "%25" * 87_000, "@" * 260_000 + ":", "~" + "/.." * 87_000]
)
@pytest.mark.parametrize("name", ["glob", "prefix", "equals"])
def test_no_text_makes_a_deny_rule_slow(text: str, name: str) -> None:
    operand = "secret/x" if name == "equals" else ["secret/x", "**/a/**/b"]
    began = time.process_time()
    for value in (text, "x:" + text, "/" + text):
        verdict({name: operand}, value, wide=True)
        verdict({name: operand}, value)
    assert time.process_time() - began < 5  # some tenths; anything quadratic would take minutes
