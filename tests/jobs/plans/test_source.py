from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import PlanError
from remit.jobs.plans.document import PlanDocument, UnreadablePlanError
from remit.jobs.plans.plan import plan_hash
from remit.jobs.plans.problem import InvalidPlanError
from remit.jobs.plans.source import load_plan, parse_plan, read_text
from remit.jobs.plans.yaml_text import LOADERS, read_yaml
from tests.jobs.plans.plan_strategies import documents, plain

TEXTS = "no No yes on off y 010 0o7 0x1F 1_000 +1 12:30 2024-01-31 .5 .inf .nan 1. << = \u0661"
"""What YAML 1.1 takes for booleans, numbers, times and more."""
PLAN = """\
version: taskgraph-v1
name: weekly
inputs:
  folder: {type: string}
nodes:
  - id: find
    tool: folder.search
    args: {folder: ${inputs.folder}, query: "cancel"}
  - id: read
    for_each: ${find.value.items}
    tool: folder.read
    args:
      path: ${item.path}
output: ${read}
"""


@pytest.fixture(params=LOADERS, ids=["fast", "plain"])
def yaml_value(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        document = PlanDocument()
        read_yaml(text, document, request.param)
        assert document.problems == []
        return document.value

    return read


def error_of(text: str, file: str = "p.yaml") -> InvalidPlanError:
    with pytest.raises(InvalidPlanError) as caught:
        parse_plan(text, file)
    return caught.value


def lines_of(text: str, file: str = "p.yaml") -> list[str]:
    return error_of(text, file).message.splitlines()


class TestPlaces:
    def test_every_problem_points_at_its_line_and_column(self) -> None:
        broken = PLAN.replace("taskgraph-v1", "taskgraph-v2").replace("tool: folder.search", "tol: folder.search")
        broken = broken.replace("${item.path}", "${itm.path}").replace("inputs.folder", "inputs.foldr")
        assert [re.sub(r": .*", "", line) for line in lines_of(broken)] == [
            "p.yaml:1:10 version",
            "p.yaml:6:5 nodes[0]",
            "p.yaml:7:5 nodes[0].tol",
            "p.yaml:8:20 nodes[0].args.folder",
            "p.yaml:13:13 nodes[1].args.path",
        ]

    def test_what_is_missing_is_shown_where_it_should_be(self) -> None:
        assert lines_of("version: taskgraph-v1\nname: p\nnodes:\n  - tool: a.b\n") == [
            "p.yaml:4:5 nodes[0]: found no `id`, expected a field `id`"
        ]

    def test_problems_of_one_line_are_in_the_order_of_the_line(self) -> None:
        lines = lines_of(PLAN.replace('args: {folder: ${inputs.folder}, query: "cancel"}', 'args: {a: ${x}, b: "${"}'))
        assert [line.split(" ")[0] for line in lines] == ["p.yaml:8:15", "p.yaml:8:24"]

    def test_a_second_use_of_an_id_names_the_line_of_the_first(self) -> None:
        assert "`find` is used twice, first in line 6" in lines_of(PLAN.replace("id: read", "id: find"))[0]

    @pytest.mark.slow
    @settings(max_examples=50, deadline=None)
    @given(documents())
    def test_json_and_yaml_readers_agree_on_values_and_places(self, document: dict[str, Any]) -> None:
        text = json.dumps(document, ensure_ascii=False, indent=2)
        as_json, as_yaml = read_text(text, "p.json"), read_text(text, "p.yaml")
        assert as_json.value == as_yaml.value == document
        assert as_json.marks == as_yaml.marks
        assert plan_hash(parse_plan(text, "p.json")) == plan_hash(parse_plan(text, "p.yaml"))


class TestYaml:
    @pytest.mark.parametrize("word", TEXTS.split())
    def test_these_words_are_texts(self, yaml_value: Callable[[str], Any], word: str) -> None:
        assert yaml_value(f"a: {word}") == {"a": word}

    @pytest.mark.parametrize(
        ("word", "value"),
        [
            ("", None),
            ("~", None),
            ("null", None),
            ("true", True),
            ("False", False),
            ("0", 0),
            ("-7", -7),
            ("1.50", 1.5),
            ("1e3", 1000.0),
        ],
    )
    def test_these_words_are_values(self, yaml_value: Callable[[str], Any], word: str, value: Any) -> None:
        found = yaml_value(f"a: {word}")["a"]
        assert (found, type(found)) == (value, type(value))

    @pytest.mark.parametrize("word", ["true", "null", "12"])
    def test_quoted_they_are_texts(self, yaml_value: Callable[[str], Any], word: str) -> None:
        assert yaml_value(f"a: '{word}'\nb: \"{word}\"\nc: |-\n  {word}") == {"a": word, "b": word, "c": word}

    def test_keys_are_texts_as_they_stand(self, yaml_value: Callable[[str], Any]) -> None:
        assert yaml_value("on: 1\n404: 2\ntrue: 3\n1.50: 4") == {"on": 1, "404": 2, "true": 3, "1.50": 4}

    def test_a_reference_needs_no_quotes_wherever_it_stands(self, yaml_value: Callable[[str], Any]) -> None:
        text = (
            'a: {f: ${x.y}, g: in ${x.0} out, h: "${x}"}\nb: [${x}, $${x}, 1]\nc: ${x.y}  # ${not}\nd: |\n  ${x} {y}\n'
        )
        assert yaml_value(text) == {
            "a": {"f": "${x.y}", "g": "in ${x.0} out", "h": "${x}"},
            "b": ["${x}", "$${x}", 1],
            "c": "${x.y}",
            "d": "${x} {y}\n",
        }

    def test_one_with_a_quoted_key_needs_them_inside_braces_and_is_told_so(self) -> None:
        assert lines_of('a: {b: ${x["y z"]}}')[0].endswith(
            'a reference in quotes inside { } and [ ], such as "${inputs.folder}"'
        )

    @pytest.mark.parametrize(
        ("text", "place", "found"),
        [
            ("a: &x 1", "1:4", "found the anchor &x"),
            ("a: 1\nb: *x", "2:4 ", "found the alias *x"),
            ("a: !!python/object:os.system 1", "1:4", "found the tag tag:yaml.org,2002:python/object:os.system"),
            ("a: !x [1]", "1:4", "found the tag !x"),
            ("a: 1\na: 2", "2:1", "found the key `a` twice, first in line 1"),
            ("a: {b: 1, b: 2}", "1:11 a", "found the key `b` twice, first in line 1"),
            ("a: 1\n---\nb: 2", "2:1", "found a second document"),
        ],
    )
    def test_what_is_not_json_is_refused_with_its_place(self, text: str, place: str, found: str) -> None:
        assert [line for line in lines_of(text) if f"p.yaml:{place}".strip() in line and found in line]

    def test_a_plan_that_is_valid_but_for_its_text_is_refused(self) -> None:
        assert lines_of(PLAN.replace("weekly", "&x weekly")) == [
            "p.yaml:2:7: found the anchor &x, expected a plain value"
        ]

    def test_what_is_wrong_with_the_text_and_with_the_plan_is_reported_together(self) -> None:
        twice, capital = lines_of(PLAN.replace("name: weekly", "name: weekly\nname: Weekly"))
        assert twice == "p.yaml:3:1: found the key `name` twice, first in line 2, expected each key once"
        assert capital.startswith('p.yaml:3:7 name: found the text "Weekly"')

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "p.yaml: found an empty text, expected a plan"),
            ("# nothing\n", "p.yaml: found an empty text, expected a plan"),
            ("a: b: c", "p.yaml:1:5: not YAML: mapping values are not allowed"),
            ("a:\n\t- b", "p.yaml:2:1: not YAML: found character that cannot start any token"),
            ("? [a]\n: b", "p.yaml:1:3: found an object or a list as a key"),
            ("a: \x07", "p.yaml:1:4: found the character '\\x07'"),
            ("a\nb \ud800", "p.yaml:2:3: found the character '\\ud800'"),
            ("a: \ue000", "p.yaml:1:4: found the character '\\ue000'"),
            ("a: " + "[" * 60, "p.yaml:1:53: found more than 50 levels"),
            ("- a\n" * 50_001, "p.yaml:50000:3: found more than 50,000 values"),
            ("a" * (1024 * 1024 + 1), "p.yaml: found more than 1,048,576 bytes"),
            ("é" * (512 * 1024 + 1), "p.yaml: found more than 1,048,576 bytes"),
        ],
    )
    def test_what_cannot_be_read_says_where_and_why(self, text: str, message: str) -> None:
        error = error_of(text)
        assert error.code is Code.PLAN_UNREADABLE
        assert error.message.startswith(message)

    def test_tabs_are_named(self) -> None:
        assert lines_of("a:\n\t- b")[0].endswith("expected spaces, not tabs, before the first word of a line")

    @pytest.mark.parametrize("bomb", ["[" * 500_000, "{a: " * 200_000, "- " * 400_000])
    def test_bombs_are_refused_at_once(self, yaml_value: Callable[[str], Any], bomb: str) -> None:
        with pytest.raises(UnreadablePlanError):
            yaml_value(bomb)

    def test_an_alias_never_makes_a_value_larger(self) -> None:
        document = read_text("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "p.yaml")
        assert document.value == {"a": ["x"], "b": [None, None], "c": [None, None]}

    def test_numbers_of_any_length_are_refused_at_once(self) -> None:
        lines = lines_of(f"a: {'9' * 500_000}\nb: -{'9' * 500_000}.5e{'9' * 5_000}\n")
        assert "p.yaml:1:4 a: found a whole number of more than 4300 digits, expected a text: quote it" in lines
        assert "p.yaml:2:4 b: found the number -inf, expected a finite number" in lines


class TestJson:
    @given(plain)
    def test_what_python_writes_is_read(self, value: Any) -> None:
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent="\t")):
            assert read_text(text, "p.json").value == value

    @given(st.text(st.sampled_from('{}[],:"\\ \n19eau.-'), max_size=12) | st.text(max_size=12))
    @example('{"a": 1,}')
    @example("[1,]")
    @example('{"a"}')
    @example("[1 2]")
    @example("01")
    @example('{"a": 1} 2')
    @example("{,}")
    @example("]")
    def test_it_reads_what_python_reads_and_nothing_else(self, text: str) -> None:
        try:
            expected = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        except ValueError:
            with pytest.raises(PlanError):
                parse_plan(text, "p.json")
            return
        assert read_text(text, "p.json").value == expected

    def test_escapes_that_yaml_does_not_know_are_read(self) -> None:
        assert read_text('"\\ud83d\\ude00\\/"', "p.json").value == "😀/"

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('{"a": 1,\n "b": }', "p.json:2:7: found `}`, expected a value"),
            ('{"a" 1}', "p.json:1:6: found `1`, expected `:`"),
            ("{a: 1}", "p.json:1:2: found `a`, expected a key in quotes"),
            ('{"a": [1', "p.json:1:9: found the end of the text, expected `,` or `]`"),
            ('["a', "p.json:1:2: found a text without its closing quote, expected a value"),
            ("[True]", "p.json:1:2: found `True`, expected a value"),
            ("1 2", "p.json:1:3: found `2`, expected nothing more"),
            ("[" * 60, "p.json:1:51: found more than 50 levels, expected less nesting"),
        ],
    )
    def test_what_is_no_json_says_where_and_why(self, text: str, line: str) -> None:
        assert lines_of(text, "p.json") == [line]

    def test_a_key_twice_is_refused(self) -> None:
        assert "p.json:2:2: found the key `a` twice, first in line 1, expected each key once" in lines_of(
            '{"a": 1,\n "a": 2}', "p.json"
        )


class TestFiles:
    def test_a_file_is_read_by_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text(PLAN)
        (tmp_path / "p.json").write_text(json.dumps(read_text(PLAN, "p.yaml").value))
        assert load_plan(tmp_path / "p.yaml") == load_plan(str(tmp_path / "p.json"))

    def test_a_byte_order_mark_and_windows_lines_do_not_matter(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbf" + PLAN.replace("\n", "\r\n").encode())
        (tmp_path / "p.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(read_text(PLAN, "p.yaml").value).encode())
        assert load_plan(tmp_path / "p.yaml") == load_plan(tmp_path / "p.json") == parse_plan(PLAN)

    def test_no_more_is_read_than_a_plan_may_have(self, tmp_path: Path) -> None:
        with (tmp_path / "p.yaml").open("wb") as file:
            file.truncate(1 << 40)
        with pytest.raises(PlanError, match="found more than 1,048,576 bytes"):
            load_plan(tmp_path / "p.yaml")

    def test_a_device_is_no_file(self) -> None:
        with pytest.raises(PlanError, match="/dev/zero: cannot be read: it is not a regular file"):
            load_plan("/dev/zero")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "cannot be read: No such file or directory"),
            (b"a: \xff", ":1:1: found bytes that are not UTF-8"),
            (b"a" * (1024 * 1024 + 1), "found more than 1,048,576 bytes"),
        ],
    )
    def test_what_cannot_be_read_says_why(self, tmp_path: Path, content: bytes | None, message: str) -> None:
        if content is not None:
            (tmp_path / "p.yaml").write_bytes(content)
        with pytest.raises(PlanError) as caught:
            load_plan(tmp_path / "p.yaml")
        assert caught.value.code is Code.PLAN_UNREADABLE
        assert message in caught.value.message

    @pytest.mark.parametrize("name", [".", "a\0b"])
    def test_what_is_no_file_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(PlanError):
            load_plan(f"{tmp_path}/{name}")

    def test_known_names_are_checked(self) -> None:
        with pytest.raises(PlanError, match=r"unknown tool `folder.search`.*did you mean `folder.serch`"):
            parse_plan(PLAN, tools=["folder.serch", "folder.read"])

    def test_yaml_is_loaded_only_where_it_is_read(self) -> None:
        code = "import sys; from remit.jobs.plans import source; sys.exit('yaml' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestAnyText:
    @settings(deadline=None)
    @given(st.text(max_size=40) | st.text(st.sampled_from("ab:-?[]{}&*!|>'\"%@`#,$ \n\t~019.<=\\"), max_size=30))
    @example("!<")
    @example("%YAML 9.9\n--- a")
    @example("%TAG ! !\n--- !a")
    @example("--- >9\n a")
    def test_only_plan_errors_are_raised(self, text: str) -> None:
        for file in ("p.yaml", "p.json"):
            with pytest.raises(PlanError):
                parse_plan(text, file)

    @settings(deadline=None)
    @given(st.text(st.sampled_from("ab:-?[]{}&*!|>'\"%@#,$ \n\t~019.<"), max_size=30))
    def test_both_yaml_parsers_refuse_or_read_the_same(self, text: str) -> None:
        found: list[Any] = []
        for loader in LOADERS:
            document = PlanDocument()
            try:
                read_yaml(text, document, loader)
            except UnreadablePlanError:
                found.append(None)
            else:
                found.append(document.value)
        assert found[0] == found[1] or None in found

    @settings(max_examples=50, deadline=None)
    @given(st.binary(max_size=60))
    def test_any_bytes_are_refused(self, tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
        path = tmp_path_factory.mktemp("bytes") / "p.yaml"
        path.write_bytes(data)
        with pytest.raises(PlanError):
            load_plan(path)

    @pytest.mark.slow
    @settings(max_examples=50, deadline=None)
    @given(documents())
    def test_what_a_yaml_writer_writes_is_read(self, document: dict[str, Any]) -> None:
        text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
        assert plan_hash(parse_plan(text)) == plan_hash(parse_plan(json.dumps(document), "p.json"))

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_a_plan_with_a_piece_torn_out_is_read_or_refused(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(PLAN)))
        end = data.draw(st.integers(start, min(len(PLAN), start + 20)))
        torn = PLAN[:start] + data.draw(st.text(st.sampled_from(" \n:-{}[]$x"), max_size=3)) + PLAN[end:]
        with suppress(InvalidPlanError):
            parse_plan(torn)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def refuse(word: str) -> Any:
    raise ValueError(word)
