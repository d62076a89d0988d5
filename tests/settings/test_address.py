from __future__ import annotations

import pytest

from remit.settings.pictures import address, is_opaque, program


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8443/mcp", "https://host:8443/mcp"),
        ("https://me:pw@host/mcp?key=x#y", "https://host/mcp"),
        ("https://token@host", "https://host"),
        ("https://h/s/abcdef0123456789abcdef/mcp", "https://h/s/…/mcp"),
        ("https://h/s/123e4567-e89b-12d3-a456-426614174000", "https://h/s/…"),
        ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        ("${URL}", "${URL}"),
        ("${URL:-https://me:pw@h}", "…"),
        ("nonsense", "…"),
        ("https://[x", "…"),
    ],
)
def test_an_address_leaves_out_what_may_be_secret(url: str, shown: str) -> None:
    assert address(url) == shown


@pytest.mark.parametrize("word", ["ghp_" + "a1" * 18, "abcdef0123456789", "123e4567-e89b-12d3-a456-426614174000"])
def test_long_runs_of_letters_and_digits_look_like_tokens(word: str) -> None:
    assert is_opaque(word)


@pytest.mark.parametrize("word", ["claude-3-5-sonnet-20241022", "@scope/server-everything", "/usr/local/bin", "1" * 20])
def test_names_and_numbers_do_not(word: str) -> None:
    assert not is_opaque(word)


@pytest.mark.parametrize(
    ("word", "shown"),
    [("/usr/bin/npx", "/usr/bin/npx"), ("npx -y secret", "npx …"), ("TOKEN=secret", "TOKEN=…"), ("", "")],
)
def test_of_a_command_only_the_program_is_shown(word: str, shown: str) -> None:
    assert program(word) == shown
