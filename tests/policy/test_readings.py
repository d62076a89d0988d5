import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.policy.readings import MAX_TEXT, fold, strict, wide


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("docs/a.md", "docs/a.md"),
        ("./docs//a.md", "docs/a.md"),
        ("docs/./a/", "docs/a"),
        ("/srv//x", "/srv/x"),
        ("", "."),
        ("notes (old)/über.md", "notes (old)/über.md"),
        ("a..b/c...", "a..b/c..."),
        ("https://api.example.org//a/b?x=1&y=../z", "https://api.example.org/a/b?x=1&y=../z"),
        ("https://api.example.org:8443/a", "https://api.example.org:8443/a"),
    ],
)
def test_a_text_that_can_only_be_read_one_way_has_that_form(text: str, form: str) -> None:
    assert strict(text) == form


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../x",
        "docs/../secret",
        "docs/x/../y",  # stays inside, unless x is a symbolic link
        "docs/%2e%2e/secret",
        "docs/.%2E/secret",
        "docs/%252e%252e/secret",
        "docs/..;/secret",
        "docs%2fsecret",
        "docs%5csecret",
        "docs\\..\\secret",
        "docs/a\0.md",
        "docs/a\n/etc/passwd",
        " /etc/passwd",
        "docs/x ",
        "docs/\uff0e\uff0e/secret",
        "docs/x/\u2025/y",
        "https://api.example.org@evil.example/x",
        "https://evil.example?.example.org/",
        "https://evil.example#.example.org/",
        "https://evil.example\\.example.org/",
        "https://api.example.org/../x",
        "https://[::1]/x",
        "docs/https://x",
        "a" + " b" * MAX_TEXT,
    ],
)
def test_a_text_that_may_be_read_in_several_ways_has_no_form(text: str) -> None:
    assert strict(text) is None


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("docs/../secret/x", "secret/x"),
        ("docs/../secret/x", "docs/../secret/x"),
        ("./SECRET//x", "secret/x"),
        ("docs\\..\\secret", "secret"),
        ("docs/%2e%2e/secret", "secret"),
        ("s%65cret", "secret"),
        ("s%2565cret", "secret"),
        ("%C3%A9t%C3%A9", "été"),
        ("\uff33\uff25\uff23ret", "secret"),
        (" secret ", "secret"),
        ("../../x", "../../x"),
        ("/../x", "/x"),
        ("HTTPS://user:pw@Evil.Example.:443/a/../b", "https://evil.example/b"),
        ("https:/evil.example", "https://evil.example"),
        ("https:evil.example/x", "https://evil.example/x"),
        ("https://evil.example?x=1", "https://evil.example/?x=1"),
        ("https://evil.example/a?x=1", "https://evil.example/a"),
        ("https:\\\\evil.example\\a", "https://evil.example/a"),
    ],
)
def test_a_wide_reading_knows_what_a_tool_may_see(text: str, form: str) -> None:
    readings = wide(text)
    assert readings is not None
    assert form in readings.texts


@pytest.mark.parametrize("text", ["/etc/passwd", "../x", "~/x", "C:\\x", "file:///etc/passwd", "a/../../x"])
def test_a_text_that_starts_from_an_unknown_place_is_rooted(text: str) -> None:
    readings = wide(text)
    assert readings is not None
    assert readings.rooted


def test_a_plain_path_is_not_rooted_and_has_one_reading() -> None:
    assert wide("docs/A.md") == (("docs/a.md",), ())


def test_a_text_too_long_to_be_a_path_has_no_readings() -> None:
    assert wide("a b" * MAX_TEXT) is None


@given(st.text(max_size=30))
def test_folding_again_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet="ab./\\%2eE~: \n", max_size=12))
def test_the_strict_form_is_among_the_wide_readings(text: str) -> None:
    form, readings = strict(text), wide(text)
    assert readings is not None
    assert form is None or fold(form) in readings.texts


@given(st.text(alphabet="ab./\\%2eE", max_size=12))
def test_a_strict_form_never_climbs(text: str) -> None:
    form = strict(text)
    assert form is None or ".." not in form.split("/")
