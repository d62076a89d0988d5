"""Which URLs are requested on behalf of someone else, and in which form."""

import pytest

from remit.http.urls import InvalidUrlError, checked, place_of


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("HTTP://A.example", "http://a.example/"),
        ("https://a.example:443/p?q=a b"[:-2], "https://a.example/p?q=a"),
        ("http://a.example:8080/#part", "http://a.example:8080/"),
        ("http://bücher.example./", "http://xn--bcher-kva.example/"),
        ("http://[::1]/", "http://[::1]/"),
    ],
)
def test_the_form_in_which_it_is_requested(url: str, form: str) -> None:
    assert checked(url) == form


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "file:///etc/passwd",
        "javascript:1",
        "http://",
        "http://u:p@a.example/",
        "http://a.example:25/",
        "http://a.example\\@b.example/",
        "http://a b.example/",
        "http://[::1/",
        f"http://a.example/{'x' * 2048}",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrlError):
        checked(url)


def test_host_and_port_of_a_url() -> None:
    assert place_of("https://a.example/p") == "a.example:443"
    assert place_of("http://127.0.0.1:8080/") == "127.0.0.1:8080"
    assert place_of("about:blank") == place_of("http://[::1") == ""
