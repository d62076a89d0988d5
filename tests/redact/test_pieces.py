"""A text that is masked in pieces: a private key of several lines, whatever piece its lines come in."""

from __future__ import annotations

import pytest

from remit.redact import MASK, PieceMask, mask

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEAAo\n-----END PRIVATE KEY-----"
TEXT = f"before\n{KEY}\nbetween\n{KEY}\nafter"


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("lines", [1, 2, 3, 5, 11])
def test_pieces_show_no_line_of_a_key(lines: int, kind: str) -> None:
    masked, rows = PieceMask(), TEXT.replace("PRIVATE KEY", kind).split("\n")
    shown = [masked("\n".join(rows[start : start + lines])) for start in range(0, len(rows), lines)]
    assert [line for line in "\n".join(shown).split("\n") if line != MASK] == ["before", "between", "after"]


def test_a_key_without_an_end_hides_no_more_than_a_key_is_long() -> None:
    masked = PieceMask()
    shown = [masked(line) for line in ["-----BEGIN PRIVATE KEY-----", *["x" * 63] * 400]]
    assert shown[:200] == [MASK] * 200
    assert shown[-100:] == ["x" * 63] * 100


def test_another_text_is_masked_as_a_whole_one_is() -> None:
    assert PieceMask()("token=abc123def456") == mask("token=abc123def456")


def test_a_certificate_after_a_key_does_not_hide_what_follows() -> None:
    masked = PieceMask()
    assert masked(f"{KEY}\n-----BEGIN CERTIFICATE-----\nMIIB") == f"{MASK}\n-----BEGIN CERTIFICATE-----\nMIIB"
    assert masked("-----END CERTIFICATE-----\nlistening") == "-----END CERTIFICATE-----\nlistening"
