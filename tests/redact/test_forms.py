"""Known values are masked in every form that programs write them in."""

from __future__ import annotations

import json
import random
import re
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest

from remit.redact.forms import ValueMask, with_lines

VALUES = ("sk_live_51HxQ9", "wJalr/K7MD+a=(b*) ~!", 'pa"ss\\wörd/&?', "12345678", "日本語のひみつです!")
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda value: msgspec.json.encode(value).decode(),
    "ascii json": json.dumps,
    "json in json": lambda value: json.dumps(json.dumps(value)),
    "json of PHP": lambda value: json.dumps(value).replace("/", "\\/"),
    "url": lambda value: quote(value, safe=""),
    "url in lower case": lambda value: re.sub("%..", lambda escape: escape[0].lower(), quote(value, safe="")),
    "url of Python": quote,
    "encodeURIComponent": lambda value: quote(value, safe="!'()*"),
    "encodeURI": lambda value: quote(value, safe="!'()*;,/?:@&=+$#"),
    "URLSearchParams": lambda value: quote(value, safe="* ").replace("~", "%7E").replace(" ", "+"),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "base64": lambda value: b64encode(value.encode()).decode(),
    "base64, one behind": lambda value: b64encode(b"x" + value.encode() + b"zz").decode(),
    "base64, two behind": lambda value: b64encode(b"xy" + value.encode() + b"z").decode(),
    "base64 for URLs": lambda value: urlsafe_b64encode(b"xy" + value.encode()).decode(),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_a_value_is_masked_in_texts_bytes_and_json(encode: Callable[[str], str], value: str) -> None:
    mask, text = ValueMask([value], "********"), f"before {encode(value)} behind"
    shown = (
        mask.text(text),
        mask.data(text.encode()).decode(),
        msgspec.json.decode(mask.encoded(msgspec.json.encode(text))),
        mask.value([text])[0],
        str(mask.value({text: 1})),
    )
    whole = encode(value).strip('"=')
    core = whole[4:-4] or whole  # the ends of Base64 hold bits of what stands beside it
    for each in shown:
        assert "********" in each
        assert core not in each


def test_what_holds_no_value_stays_as_it_is() -> None:
    mask, data = ValueMask(VALUES, "********"), b'{"a": "sk_live_51"}'
    assert mask.encoded(data) is data
    assert mask.value({"a": [1, 2.5, None, True]}) == {"a": [1, 2.5, None, True]}


def test_a_number_can_be_a_secret() -> None:
    assert ValueMask(["12345678"], "********").value({"pin": 12345678}) == {"pin": "********"}


@pytest.mark.slow
def test_sixteen_mebibytes_are_searched_for_fifty_secrets_quickly() -> None:
    chance = random.Random(1)
    mask = ValueMask([f"sk_live_{chance.getrandbits(128):032x}" for _ in range(50)], "********")
    words = ["lorem", "ipsum", "\\n", "42", '{"a":', "http://x.de/%20a", "deadbeef0123", "QmFzZTY0"]
    data = " ".join(chance.choices(words, k=100_000)).encode()
    data = (data * (1 + (16 << 20) // len(data)))[: 16 << 20]
    begin = time.process_time()
    assert mask.encoded(data) is data
    assert time.process_time() - begin < 3  # 0.4 s on a machine that has nothing else to do


def test_a_key_of_many_lines_is_masked_line_by_line_too() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nshort\n-----END KEY-----\n"
    assert with_lines(["12345678", key]) == [
        "12345678",
        key,
        "-----BEGIN KEY-----",
        "MIIEvQIBADANBg",
        "-----END KEY-----",
    ]
