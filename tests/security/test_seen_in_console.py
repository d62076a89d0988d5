"""The console shows what is approved as the terminal does: whatever hides in a call, or passes for something else."""

from __future__ import annotations

import pytest

from remit.pages.fields import args_of, fields_of
from remit.pages.page import visible as on_a_page
from remit.pages.page import written
from remit.redact.visible import visible
from tests.security.test_seen import UNSEEN

PAYPAL = "p\u0430yp\u0430l.com"


@pytest.mark.parametrize("char", UNSEEN)
def test_a_page_names_every_character_that_is_not_seen(char: str) -> None:
    assert on_a_page(f"a{char}b") == f"a⟨U+{ord(char):04X}⟩b"


def test_a_page_names_marks_that_pile_up() -> None:
    assert on_a_page("Z" + "\u0301" * 20).count("⟨U+0301⟩") == 18


def test_a_page_shows_arguments_that_differ_only_in_what_is_not_seen_as_different() -> None:
    assert on_a_page(written({"to": "bob\u3164"})) != on_a_page(written({"to": "bob"}))


@pytest.mark.parametrize("text", [PAYPAL, "\u0410pple", "Micr\u03bfsoft", "g\u0585\u0585gle", "\u0421OM1"])
def test_a_letter_that_passes_for_one_of_latin_is_named(text: str) -> None:  # E05
    assert visible(text).isascii()
    assert visible(text) != text
    assert "⟨U+0" in on_a_page(text)


@pytest.mark.parametrize(
    "text", ["Россия", "USB-кабель", "Ελλάδα", "скидка_USD", "5\u043a\u0433", "Հայաստան", "IFN\u03b3", "Δx", "µm"]
)
def test_words_of_one_alphabet_stay_as_they_are(text: str) -> None:
    assert visible(text) == text == on_a_page(text)


def test_editing_one_word_leaves_the_characters_around_it() -> None:
    args = {"text": f"send {PAYPAL} a ❤\ufe0f now"}
    (field,) = fields_of(args, None)
    edited = on_a_page(field.text).replace("now", "later")
    assert args_of(["text"], [edited], args, None) == {"text": f"send {PAYPAL} a ❤\ufe0f later"}


def test_a_number_that_was_text_before_stays_text() -> None:
    args = {"text": "⟨U+200B⟩ and \u200b!"}
    (field,) = fields_of(args, None)
    edited = on_a_page(field.text) + "!"
    assert args_of(["text"], [edited], args, None) == {"text": "⟨U+200B⟩ and ⟨U+200B⟩!!"}
