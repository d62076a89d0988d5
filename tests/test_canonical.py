from __future__ import annotations

import hashlib
import json
import struct
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import MAX_DEPTH, MAX_INT, as_json, canonical, digest, sha256
from remit.codes import Code
from remit.errors import NotCanonicalError

# RFC 8785, section 3.2.2: a document as it came in, and section 3.2.4: the bytes it becomes.
SAMPLE = r"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
SAMPLE_BYTES = bytes.fromhex(
    "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b33333333333333"
    "33332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac24"
    "5c75303030665c6e4127425c225c5c5c5c5c222f227d"
)

# RFC 8785, section 3.2.3: keys in the order of their UTF-16 code units.
KEYS_IN_ORDER = ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]

# RFC 8785, appendix B: IEEE 754 bits and the text of the number.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def double(bits: str) -> float:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert isinstance(number, float)
    return number


edge_integers = st.sampled_from([0, -1, MAX_INT, -MAX_INT, MAX_INT - 1, 10**15, 10**15 - 1])
edge_floats = st.sampled_from([0.0, -0.0, 1.0, 1e-5, 1e-6, 9.99e-6, 1e15, 1e16, 1e20, 1e21, 123456789012345.6, 5e-324])
edge_texts = st.sampled_from(
    ["\x7f", "\u2028", "\u2029", "\x00\x1f\b\f\n\r\t", '"\\/', "\U0001f600", "\uffff", "\ufeff"]
)
keys = st.text(max_size=6) | edge_texts | st.text(alphabet="ab\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INT, MAX_INT)
    | edge_integers
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
    | edge_floats
    | st.text()
    | edge_texts
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner),
    max_leaves=15,
)


@given(values)
def test_every_json_value_has_the_bytes_of_the_reference(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.floats(1e-7, 1e22) | st.floats(-1e22, -1e-7))
def test_floats_around_the_limits_of_either_notation_have_the_bytes_of_the_reference(number: float) -> None:
    assert canonical([number]) == rfc8785.dumps([number])


@given(values)
def test_canonical_bytes_are_json_that_reads_back_to_the_same_bytes(value: Any) -> None:
    read = json.loads(canonical(value))
    assert canonical(_as_doubles(read)) == canonical(value)


def _as_doubles(value: Any) -> Any:
    """A reader of canonical JSON sees `100000000000000000000` where a float stood."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= MAX_INT else float(value)
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_doubles(item) for key, item in value.items()}
    return value


@given(st.dictionaries(keys, scalars), st.randoms(use_true_random=False))
def test_the_order_in_which_keys_were_set_does_not_matter(value: dict[str, Any], random: Any) -> None:
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert canonical(dict(shuffled)) == canonical(value)


def test_the_sample_of_the_standard() -> None:
    assert canonical(json.loads(SAMPLE)) == SAMPLE_BYTES


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    value = dict.fromkeys(sorted(KEYS_IN_ORDER), 1)
    assert list(json.loads(canonical(value))) == KEYS_IN_ORDER


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_the_numbers_of_the_standard(bits: str, text: str) -> None:
    assert canonical(double(bits)) == text.encode()
    assert canonical({"n": [double(bits)]}) == f'{{"n":[{text}]}}'.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinities_are_refused(bits: str) -> None:
    with pytest.raises(NotCanonicalError, match=r"\$\.n is NaN or infinite"):
        canonical({"n": double(bits)})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (1e16, b"10000000000000000"),
        (0.000001, b"0.000001"),
        (True, b"true"),
        (MAX_INT, b"9007199254740991"),
        (-MAX_INT, b"-9007199254740991"),
        (MAX_INT + 1, b"9007199254740992"),
        (2**64 - 1, b"18446744073709551615"),
        (-(2**63), b"-9223372036854775808"),
        ([{"é": 2**63 + 1, "z": 1.0}, 10**30 + 1], '[{"z":1,"é":9223372036854775809},1' + "0" * 29 + "1]"),
        ((1, (2,)), b"[1,[2]]"),
        ({}, b"{}"),
        ("\x7f\u2028", '"\x7f\u2028"'.encode()),
        ("\x01\x1f\b\f\n\r\t", rb'"\u0001\u001f\b\f\n\r\t"'),
    ],
)
def test_what_fast_encoders_get_wrong_comes_out_right(value: Any, expected: bytes | str) -> None:
    expected = expected.encode() if isinstance(expected, str) else expected
    assert canonical(value) == expected
    assert canonical({"k": value}) == b'{"k":' + expected + b"}"


def test_a_call_of_the_usual_kind_takes_the_fast_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(rfc8785, "dumps")
    call = {
        "tool": "fs.read",
        "args": {"path": "naïve.md", "limit": 200, "ratio": 0.7, "tags": ["a", None, True], "t": ()},
    }
    assert json.loads(canonical(call)) == call | {"args": {**call["args"], "t": []}}  # type: ignore[dict-item]


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Pair(NamedTuple):
    left: int
    right: int


def test_subclasses_count_as_their_base() -> None:
    value = OrderedDict({Colour.RED: Size.BIG, "pair": Pair(2, 1)})
    assert canonical(value) == b'{"pair":[2,1],"red":3}'


class Plain(msgspec.Struct):
    x: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {"b c": b"x"}]}, r"$.a[1]['b c'] is a bytes, which JSON cannot hold"),
        ([{1, 2}], "$[0] is a set, which JSON cannot hold"),
        (Decimal(1), "$ is a decimal.Decimal, which JSON cannot hold"),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, "$.at is a datetime.datetime, which JSON cannot hold"),
        ([Plain(1)], f"$[0] is a {Plain.__module__}.Plain, which JSON cannot hold"),
        ([10**4300], "$[0] is an integer of more than 4300 digits"),
        ({"n": [-(10**5000)]}, "$.n[0] is an integer of more than 4300 digits"),
        ({"t": "\ud800"}, "$.t contains a lone surrogate, which UTF-8 cannot hold"),
        ({"\udfff": 1}, r"$['\udfff'] contains a lone surrogate, which UTF-8 cannot hold"),
        ({"a": {1: 2}}, "$.a has a key that is a int, not a string"),
        ({None: 2, "a": 1}, "$ has a key that is a NoneType, not a string"),
    ],
)
def test_the_place_of_what_cannot_be_canonical_is_named(value: Any, message: str) -> None:
    with pytest.raises(NotCanonicalError) as caught:
        canonical(value)
    assert caught.value.message == message
    assert caught.value.code is Code.NOT_CANONICAL
    assert caught.value.remedy


def nested(levels: int, *, innermost: Any = 1) -> Any:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("innermost", [1, 1.0])
def test_values_may_nest_as_deep_as_the_limit_and_no_deeper(innermost: Any) -> None:
    deepest = nested(MAX_DEPTH, innermost=innermost)
    assert canonical(deepest) == rfc8785.dumps(deepest)
    with pytest.raises(NotCanonicalError, match="more than 200 levels deep"):
        canonical([deepest])


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_far_too_deep_is_refused_like_any_other_value(levels: int) -> None:
    with pytest.raises(NotCanonicalError, match="more than 200 levels deep"):
        canonical(nested(levels))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append({"again": loop})
    with pytest.raises(NotCanonicalError, match="more than 200 levels deep"):
        canonical(loop)


def test_a_digest_is_the_sha_256_of_the_canonical_bytes() -> None:
    value = {"b": 1.0, "a": "x"}
    expected = "sha256:" + hashlib.sha256(b'{"a":"x","b":1}').hexdigest()
    assert digest(value) == sha256(canonical(value)) == expected
    assert digest({"a": "x", "b": 1}) == expected


@given(st.integers(-(10**40), 10**40))
def test_an_integer_is_its_own_digits_however_large(number: int) -> None:
    assert canonical([number, 1e-9]) == f"[{number},1e-9]".encode()
    assert json.loads(canonical({"n": number})) == {"n": number}


class Row(msgspec.Struct):
    mean: float | None
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "$"),
        ({"rows": [1, {"mean": float("-inf")}]}, "$.rows[1].mean"),
        ({"a b": (None, float("inf"))}, "$['a b'][1]"),
        ([Row(float("nan"))], "$[0].mean"),
    ],
)
def test_a_number_that_is_not_finite_never_becomes_null(value: Any, path: str) -> None:
    with pytest.raises(NotCanonicalError) as caught:
        as_json(value)
    assert caught.value.message == f"{path} is NaN or infinite"


@pytest.mark.parametrize("value", [None, {"a": [None, 1.5, "NaN", 2**70]}, [Row(None)], "null"])
def test_json_holds_the_whole_of_a_value(value: Any) -> None:
    assert as_json(value) == msgspec.json.encode(value)
