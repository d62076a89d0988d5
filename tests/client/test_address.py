"""Which URLs are taken, and where a token may go."""

from __future__ import annotations

import pytest

from remit.client.connection import base_url
from remit.errors import UsageError


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("https://remit.example", "secret"),
        ("https://remit.example:8443/behind/", "secret"),
        ("http://127.0.0.1:8320", "secret"),
        ("http://[::1]:8320/", "secret"),
        ("http://localhost", "secret"),
        ("http://remit.example", ""),
    ],
)
def test_a_url_is_taken_without_the_slash_at_its_end(text: str, token: str) -> None:
    assert base_url(text, token) == text.rstrip("/")


@pytest.mark.parametrize(
    ("text", "token", "why"),
    [
        ("http://remit.example", "secret", "unencrypted"),
        ("http://127.0.0.1.remit.example", "secret", "unencrypted"),
        ("remit.example:8320", "", "not the URL"),
        ("ftp://remit.example", "", "not the URL"),
        ("https://", "", "not the URL"),
        ("", "", "not the URL"),
        ("https://remit.example:port", "", "not a URL"),
        ("https://[::1", "", "not a URL"),
        ("https://ann:secret@remit.example", "", "only a host and a path"),
        ("https://remit.example/?token=x", "", "only a host and a path"),
        ("https://remit.example", "two\r\nlines", "cannot be sent"),
        ("https://remit.example", "geheim\u00e4", "cannot be sent"),
    ],
)
def test_another_url_or_token_is_refused_without_the_token(text: str, token: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        base_url(text, token)
    assert "secret" not in caught.value.message
    assert caught.value.remedy
