"""Forms: what a pattern reads is what the parser reads, and what the parser refuses is never read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remit.evidence.forms import Forms
from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import read_text

KIND = "tool_invocation_started"
FIRST = '{"step":"1","args":{"number":0,"of":["x",null]},"ms":0.5,"done":true}'


def forms(wanted: dict[str, set[str]] | None = None) -> Forms:
    """Forms that know the one of FIRST."""
    known = Forms(wanted or {})
    for _ in range(17):
        known.read(KIND, FIRST, FIRST.count('"'), "")
    return known


@pytest.mark.parametrize(
    "text",
    [
        '{"step":"22","args":{"number":-7,"of":["é",null]},"ms":1e3,"done":true}',
        '{"step":"","args":{"number":1.5,"of":["a:,{",null]},"ms":-0,"done":true}',
        '{"step":"1","args":{"number":0,"of":["x",true]},"ms":0.5,"done":true}',
        '{"done":true,"step":"1","args":{"number":0,"of":["x",null]},"ms":0.5}',
        '{"step":"1", "args":{"number":0,"of":["x",null]},"ms":0.5,"done":true}',
    ],
)
def test_a_text_is_read_as_the_parser_reads_it(text: str) -> None:
    read: tuple[Any, bool] = forms().read(KIND, text, text.count('"'), "")
    assert read == (json.loads(text), False)


@pytest.mark.parametrize(
    "text",
    [
        '{"step":"1","step":"2","args":{"number":0,"of":["x",null]},"ms":0.5}',
        '{"step":"1","args":{"number":0,"number":["x",null]},"ms":0.5,"done":true}',
        '{"step":"1","args":{"number":00,"of":["x",null]},"ms":0.5,"done":true}',
        '{"step":"1","args":{"number":NaN,"of":["x",null]},"ms":0.5,"done":true}',
        '{"step":"1","args":{"number":0,"of":["x",null]},"ms":.5,"done":true}',
        f'{{"step":"1","args":{{"number":{"9" * 5000},"of":["x",null]}},"ms":0.5,"done":true}}',
        FIRST + " x",
    ],
)
def test_what_is_not_strict_is_refused(text: str) -> None:
    for read in (lambda: forms().read(KIND, text, text.count('"'), ""), lambda: read_text(text, "")):
        with pytest.raises(RejectedError):
            read()


def test_what_is_not_wanted_is_left_out_unless_a_value_lies_beside() -> None:
    assert forms({KIND: {"step", "ms"}}).read(KIND, FIRST, FIRST.count('"'), "")[0] == {"step": "1", "ms": 0.5}
    text = FIRST.replace('"args"', '"args_blob"')
    known = forms({KIND: {"step"}})
    reads = [known.read(KIND, text, text.count('"'), "") for _ in range(20)]
    assert all(read == (json.loads(text), True) for read in reads)


def test_another_kind_has_a_form_of_its_own() -> None:
    assert forms({KIND: {"step"}}).read("other", FIRST, FIRST.count('"'), "")[0] == json.loads(FIRST)
