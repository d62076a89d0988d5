"""A secret becomes the same word wherever it stands, and what holds none stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.golden.export import JobSecrets

TOKEN = "ghp_" + "a1B2" * 9
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def cleaned(value: Any, *known: str) -> Any:
    secrets = JobSecrets(known)
    secrets.find(value)
    return secrets.replaced(value)


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"password": "hunter22"}, {"password": "secret-1"}),
        ({"api_key": "k1-abcdef", "again": "use k1-abcdef"}, {"api_key": "secret-1", "again": "use secret-1"}),
        ([TOKEN, f"x {TOKEN} y"], ["secret-1", "x secret-1 y"]),
        ({"name": "Authorization", "value": "abcdefg"}, {"name": "Authorization", "value": "secret-1"}),
        ({"text": json.dumps({"token": "abcdefg"})}, {"text": '{"token": "secret-1"}'}),
        ({"token_count": 5, "password": None}, {"token_count": 5, "password": None}),
        ({"pwd": "abc", "word": "abcabc"}, {"pwd": "secret-1", "word": "abcabc"}),
        ({"a": "plain", "b": [1, 2.5, True]}, {"a": "plain", "b": [1, 2.5, True]}),
    ],
)
def test_secrets_are_replaced_consistently(value: Any, clean: Any) -> None:
    assert cleaned(value) == clean
    assert cleaned(clean) == clean


def test_texts_that_are_known_are_replaced_too() -> None:
    assert cleaned({"a": "my-special-text!"}, "special-text") == {"a": "my-secret-1!"}


@given(JSON)
def test_no_secret_of_a_name_is_left(value: Any) -> None:
    secret = "zq9-zq9-zq9-zq9"
    assert secret not in json.dumps(cleaned({"password": secret, "rest": [value, f"with {secret}"], "x": secret}))
