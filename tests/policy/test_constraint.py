from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.policy.constraint import Constraint, Operator, declares, find
from tests.policy.samples import verdict

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(alphabet="ab./", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
OPERATORS = st.sampled_from(
    [
        Operator("equals", "a"),
        Operator("in", ["a", 1, True]),
        Operator("glob", ["a/**", "b"]),
        Operator("prefix", ["a"]),
        Operator("min", 0),
        Operator("max", 1),
        Operator("max_length", 1),
        Operator("present", True),
        Operator("absent", True),
    ]
)


def judge(path: str, operator: Operator, args: dict[str, Any], *, wide: bool) -> bool | None:
    return Constraint(path, (operator,)).judge(wide=wide)(args, None)


@given(st.dictionaries(st.sampled_from("ab"), JSON, max_size=2), st.sampled_from(["a", "a.b"]), OPERATORS)
def test_what_loosens_holds_only_where_what_restricts_would_match(
    args: dict[str, Any], path: str, operator: Operator
) -> None:
    if judge(path, operator, args, wide=False) is True:
        assert judge(path, operator, args, wide=True) is not False


@pytest.mark.parametrize("wide", [False, True])
def test_every_operator_of_a_constraint_has_to_hold(wide: bool) -> None:
    assert verdict({"min": 1, "max": 3}, 2, wide=wide) is True
    assert verdict({"min": 1, "max": 3}, 4, wide=wide) is False
    assert verdict({"min": 1, "glob": ["x"]}, 2, wide=wide) is None


@pytest.mark.parametrize("wide", [False, True])
def test_a_missing_argument_cannot_be_told(wide: bool) -> None:
    assert judge("path", Operator("glob", ["a"]), {}, wide=wide) is None


def test_an_argument_that_the_tool_does_not_have_does_not_hold() -> None:
    check = Constraint("path", (Operator("glob", ["a"]),)).judge(wide=True)
    assert check({}, {"type": "object", "properties": {"url": {}}}) is False
    assert check({}, {"type": "object", "properties": {"path": {}}}) is None
    assert check({"path": "a"}, {"type": "object", "properties": {"url": {}}}) is True


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, True),
        ({"properties": {"path": {}}}, True),
        ({"properties": {"url": {}}}, False),
        ({}, False),
        ({"$ref": "#/$defs/x"}, True),
        ({"allOf": [{"properties": {"path": {}}}]}, True),
        ({"patternProperties": {"^p": {}}}, True),
        ({"properties": "nonsense"}, True),
    ],
)
def test_a_schema_that_may_declare_an_argument_counts_as_doing_so(
    schema: dict[str, Any] | None, expected: bool
) -> None:
    assert declares(schema, "path") is expected


@pytest.mark.parametrize("path", ["file.path", "file"])
def test_a_nested_argument_is_declared_by_its_table_or_by_its_own_name(path: str) -> None:
    assert declares({"properties": {path: {}}}, "file.path")


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"a": {"b": 1}}, ([1], False)),
        ({"a": {}}, ([], True)),
        ({"a": 1}, ([], True)),
        ({}, ([], True)),
        ({"a": [{"b": 1}, {"b": 2}]}, ([1, 2], False)),
        ({"a": [{"b": 1}, {}]}, ([1], True)),
        ({"a": [[{"b": 1}], {"b": 2}]}, ([1, 2], False)),
        ({"a": []}, ([], True)),
        ({"a.b": 1}, ([1], False)),
        ({"a.b": 1, "a": {"b": 2}}, ([2, 1], False)),
    ],
)
def test_a_dotted_path_goes_through_tables_and_lists(args: dict[str, Any], found: tuple[list[Any], bool]) -> None:
    assert find(args, "a.b") == found


def test_a_list_needs_every_item_to_be_allowed_and_one_to_be_denied() -> None:
    mixed = ["docs/a", "secret/b"]
    assert verdict({"glob": ["docs/**"]}, mixed) is False
    assert verdict({"glob": ["docs/**"]}, ["docs/a", "docs/b"]) is True
    assert verdict({"glob": ["secret/**"]}, mixed, wide=True) is True
    assert verdict({"glob": ["secret/**"]}, ["docs/a"], wide=True) is False


@pytest.mark.parametrize("args", [{"a.b": "docs/x", "a": {"b": "y"}}, {"a.b": "y", "a": {"b": "docs/x"}}])
def test_an_argument_with_a_dot_in_its_name_counts_beside_the_nested_one(args: dict[str, Any]) -> None:
    assert judge("a.b", Operator("glob", ["docs/**"]), args, wide=False) is False
    assert judge("a.b", Operator("glob", ["docs/**"]), args, wide=True) is True


def test_lists_within_lists_are_read_to_the_end() -> None:
    deep: list[Any] = ["secret/x"]
    for _ in range(10_000):
        deep = ["docs/a", deep]
    assert verdict({"glob": ["docs/**"]}, deep) is False
    assert verdict({"glob": ["secret/**"]}, deep, wide=True) is True


@pytest.mark.parametrize("wide", [False, True])
def test_an_empty_list_cannot_be_told(wide: bool) -> None:
    assert verdict({"glob": ["docs/**"]}, [], wide=wide) is None


def test_places_where_some_items_lack_the_argument() -> None:
    files = {"files": [{"path": "docs/a"}, {}]}
    assert judge("files.path", Operator("glob", ["docs/**"]), files, wide=False) is None
    assert judge("files.path", Operator("glob", ["secret/**"]), files, wide=True) is None


@pytest.mark.parametrize(("args", "present"), [({"x": 1}, True), ({"x": []}, True), ({}, False), ({"x": None}, None)])
@pytest.mark.parametrize("wide", [False, True])
def test_presence_and_absence_are_opposites_and_null_may_be_either(
    args: dict[str, Any], present: bool | None, wide: bool
) -> None:
    absent = None if present is None else not present
    assert judge("x", Operator("present", operand=True), args, wide=wide) is present
    assert judge("x", Operator("absent", operand=True), args, wide=wide) is absent


def test_a_constraint_reads_as_it_is_written() -> None:
    constraint = Constraint("path", (Operator("glob", ["docs/**"]), Operator("max_length", 9)))
    assert str(constraint) == 'path: glob ["docs/**"], max_length 9'


FETCHES = {"type": "object", "properties": {"url": {"type": "string"}, "mirrors": {"format": "uri"}}}


@pytest.mark.parametrize(
    ("url", "strictly", "widely"),
    [
        ("https://docs.acme.example/a?b#c", True, True),
        ("HTTPS://Docs.ACME.example:8443", True, True),
        ("https://docs.acme.example./x", True, True),
        ("docs.acme.example", True, True),
        ("https://evil.example/docs.acme.example", False, False),
        ("https://docs.acme.example.evil.example/", False, False),
        ("https://evil.example?docs.acme.example/", False, False),
        ("https://docs.acme.example@evil.example/", None, None),
        ("https://evil.example\\@docs.acme.example/", None, None),
        ("https://evil.example\\.docs.acme.example/", None, None),
        ("https://docs%2eacme.example/", None, None),
        ("https://d\u043ecs.acme.example/", None, None),
        ("https://[::1]/", None, None),
        (" https://docs.acme.example/", None, None),
        ("https:docs.acme.example", None, None),
        (7, None, None),
    ],
)
def test_a_rule_about_host_reads_the_host_of_each_url(url: Any, strictly: bool | None, widely: bool | None) -> None:
    check = Constraint("host", (Operator("glob", ["*.acme.example"]),))
    assert check.judge(wide=False)({"url": url}, FETCHES) is strictly
    assert check.judge(wide=True)({"url": url}, FETCHES) is widely


def test_of_several_urls_an_allow_rule_needs_every_host_and_a_deny_rule_one() -> None:
    check = Constraint("host", (Operator("equals", "a.example"),))
    both = {"url": "https://a.example/", "mirrors": ["https://b.example/"]}
    assert check.judge(wide=False)(both, FETCHES) is False
    assert check.judge(wide=True)(both, FETCHES) is True
    assert check.judge(wide=True)({"mirrors": ["https://b.example/", "https://x@b.example"]}, FETCHES) is None
    assert check.judge(wide=False)({}, FETCHES) is None
    assert check.judge(wide=True)({"path": "x"}, {"type": "object", "properties": {"path": {}}}) is False
