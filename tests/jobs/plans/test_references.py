from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import RunError
from remit.jobs.plans.references import (
    Part,
    Reference,
    ReferenceSyntaxError,
    fill,
    kind_of,
    parse,
    references,
    resolve,
    single,
    unparse,
)

FOUND = {"ok": True, "value": {"items": [{"path": "a.txt"}, {"path": "b.txt"}], "odd key": 1, "": 2, "7": "seven"}}
FAILED = {"ok": False, "code": "TOOL_TIMEOUT", "reason": "too slow"}
SCOPE: dict[str, Any] = {
    "inputs": {"folder": "/docs", "n": 3, "share": 0.5, "deep": True, "nothing": None},
    "item": {"path": "c.txt"},
    "index": 4,
    "find": FOUND,
    "failed": FAILED,
    "skipped": None,
}

segments = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
roots = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
written_references = st.builds(Reference, roots, st.lists(segments, max_size=4).map(tuple))
literals = st.text(st.sampled_from('$${}"[].\\ax'), max_size=8)


def value_of(text: str) -> Any:
    return fill(text, SCOPE, "node n")


def error_of(text: str) -> RunError:
    with pytest.raises(RunError) as caught:
        value_of(text)
    return caught.value


class TestParse:
    @given(written_references)
    def test_a_reference_that_was_written_is_read_again(self, reference: Reference) -> None:
        assert single(str(reference)) == reference

    @given(st.lists(st.one_of(literals, written_references), max_size=6))
    def test_parts_that_were_written_are_read_again(self, mixed: list[Part]) -> None:
        parts = merged(mixed)
        assert parse(unparse(parts)) == parts

    @given(st.text(st.sampled_from('$${}"[].\\ab 0'), max_size=20))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            parts = parse(text)
        except ReferenceSyntaxError:
            return
        assert parse(unparse(parts)) == parts

    @given(st.text().filter(lambda text: "${" not in text))
    def test_a_text_without_an_opening_is_itself(self, text: str) -> None:
        assert value_of(text) == text

    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("${a}", (Reference("a"),)),
            ("${ a.b.0 }", (Reference("a", ("b", "0")),)),
            ('${a["b c"].d["}"]}', (Reference("a", ("b c", "d", "}")),)),
            ("x ${a.b} y", ("x ", Reference("a", ("b",)), " y")),
            ("${a}${b}", (Reference("a"), Reference("b"))),
            ("$${a}", ("${a}",)),
            ("$$${a}", ("$", Reference("a"))),
            ("$$$${a}", ("$${a}",)),
            ("$5 {x} $ $$", ("$5 {x} $ $$",)),
            ("", ()),
        ],
    )
    def test_texts_have_these_parts(self, text: str, parts: tuple[Part, ...]) -> None:
        assert parse(text) == parts

    @pytest.mark.parametrize(
        "text", ["${", "${}", "${a", "${a b}", "${.a}", "${a.}", "${a..b}", "${a[0]}", '${a["\\x"]}', "${1}"]
    )
    def test_these_are_no_references(self, text: str) -> None:
        with pytest.raises(ReferenceSyntaxError) as caught:
            parse(text)
        assert caught.value.text.startswith(("`${", '`["'))

    def test_only_a_text_that_is_one_reference_is_single(self) -> None:
        assert single("${a.b}") == Reference("a", ("b",))
        assert single("${a} ") is None
        assert single("a") is None

    def test_every_reference_in_a_value_is_found_in_order(self) -> None:
        value = {"x": ["${a}", {"y": "b ${b.c} ${d}"}], "z": 1, "w": None}
        assert [*references(value)] == [Reference("a"), Reference("b", ("c",)), Reference("d")]


class TestValues:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("${inputs}", SCOPE["inputs"]),
            ("${inputs.n}", 3),
            ("${find}", FOUND["value"]),
            ("${find.value.items.1.path}", "b.txt"),
            ('${find.value["odd key"]}', 1),
            ('${find.value[""]}', 2),
            ("${find.value.7}", "seven"),
            ("${find.ok}", True),
            ("${find.code}", None),
            ("${failed}", None),
            ("${failed.ok}", False),
            ("${failed.code}", "TOOL_TIMEOUT"),
            ("${item.path}", "c.txt"),
            ("${index}", 4),
            ("${skipped}", None),
            ("${skipped.value.items.0}", None),
        ],
    )
    def test_a_reference_alone_is_the_value_itself(self, text: str, value: Any) -> None:
        assert value_of(text) == value

    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ("in ${inputs.folder}/${item.path}", "in /docs/c.txt"),
            ("${index}: ${inputs.share} ${inputs.deep}", "4: 0.5 true"),
            ("$$${inputs.n}, not $${inputs.n}", "$3, not ${inputs.n}"),
        ],
    )
    def test_inside_a_text_it_is_written_out(self, text: str, written: str) -> None:
        assert value_of(text) == written

    def test_a_value_is_filled_at_every_depth_and_the_plan_stays_as_it_was(self) -> None:
        value = {"a": ["${inputs.n}", {"b": "${find.value.items}"}], "c": 1.5, "d": None}
        assert fill(value, SCOPE, "x") == {"a": [3, {"b": FOUND["value"]["items"]}], "c": 1.5, "d": None}  # type: ignore[index]
        assert value["a"][0] == "${inputs.n}"  # type: ignore[index]

    @pytest.mark.parametrize("text", ["a ${find.value.items}", "a ${inputs.nothing}", "a ${skipped}", "a ${item}"])
    def test_what_is_no_text_cannot_be_written_into_one(self, text: str) -> None:
        assert error_of(text).code is Code.PLAN_REFERENCE_UNFIT

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("${find.value.itms}", "${find.value} has no 'itms'; it has items, odd key, , 7"),
            ("${find.value.items.2}", "${find.value.items} has 2 items, the first at 0"),
            ("${find.value.items.first}", "'first' is not a position in it"),
            ("${find.value.items.01}", "'01' is not a position in it"),
            ("${find.value.items.-1}", "'-1' is not a position in it"),
            ("${find.value.items.0.path.x}", '${find.value.items.0.path} is the text "a.txt", which has no parts'),
            ("${failed.value.items}", "node failed failed with TOOL_TIMEOUT and has no value"),
            ("${inputs.nothing.x}", "${inputs.nothing} is null, which has no parts"),
        ],
    )
    def test_a_missing_path_names_the_place_the_reference_and_why(self, text: str, why: str) -> None:
        error = error_of(text)
        assert error.code is Code.PLAN_REFERENCE_MISSING
        assert error.message.startswith(f"node n: {text} is missing: ")
        assert error.message.endswith(why)
        assert error.remedy

    def test_a_result_is_only_looked_up_by_its_own_fields(self) -> None:
        assert resolve(Reference("find", ("by",)), SCOPE, "x") is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (2, "the number 2"),
        ("x" * 50, f'the text "{"x" * 39}…"'),
        ([], "a list"),
        ({}, "an object"),
    ],
)
def test_a_value_is_named_for_people(value: Any, shown: str) -> None:
    assert kind_of(value) == shown


def merged(parts: list[Part]) -> tuple[Part, ...]:
    """The parts as `parse` gives them: no empty ones, no two texts in a row."""
    found: list[Part] = []
    for part in parts:
        if part == "":
            continue
        if found and isinstance(part, str) and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return tuple(found)
