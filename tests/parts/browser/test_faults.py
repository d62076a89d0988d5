import pytest

from remit.codes import Code
from remit.parts.browser.launch import browser_error


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ('Unknown key: "Entr"', Code.InvalidInput, ""),
        ("<a> intercepts pointer events", Code.InvalidInput, ""),
        ("Timeout 5000ms exceeded", Code.Timeout, ""),
        ("Something that nobody has seen yet", Code.InvalidInput, "unknown"),
        ("net::ERR_ODD", Code.NetworkError, "unknown"),
    ],
)
def test_what_is_not_known_of_a_failure_is_not_called_nothing(text: str, cause: Code, effect: str) -> None:
    error = browser_error("browser.click", RuntimeError(text))
    assert (error.cause, error.effect) == (cause, effect)
