from pathlib import Path

import pytest

from scripts.check_names import IN_SCHEMAS, findings, main

CLASS = "class Line:\n    pass\n"


@pytest.mark.parametrize(
    ("sources", "places"),
    [
        ({"remit/a.py": CLASS, "remit/b.py": CLASS}, ["remit/b.py:1"]),
        ({"remit/a.py": CLASS, "remit/b.py": f"if True:\n    {CLASS.replace('    ', '        ')}"}, ["remit/b.py:2"]),
        ({"remit/a.py": CLASS, "remit/b.py": CLASS.replace("Line", "_Line")}, []),
        ({"remit/a.py": CLASS, "remit_testing/a.py": CLASS}, []),
        ({f"remit/{name}.py": f"class {min(IN_SCHEMAS)}:\n    pass\n" for name in "ab"}, []),
        (
            {f"remit/{name}.py": "" for name in ("feed", "bed_rest", "parser", "parsed", "serving")},
            ["parsed", "serving"],
        ),
        ({"remit_testing/b/listing.py": "", "remit_testing/b/told.py": ""}, []),
    ],
)
def test_a_name_stands_for_one_thing(sources: dict[str, str], places: list[str]) -> None:
    lines = findings(sources, {})
    assert len(lines) == len(places)
    assert all(place in line for place, line in zip(places, lines, strict=True))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1\n", ["found"]),
        ("def f(why, *, told=1):\n    return lambda one: one\n", ["f.why", "f.told", "f.one"]),
        ("for said, (one, rest) in pairs:\n    rows[said] = one\n", ["said", "one"]),
        ("class C:\n    kept: int\n    def f(self):\n        self._told = 1\n", ["C.kept", "C.f._told"]),
        ("match row:\n    case [1, *given] | found:\n        pass\n", ["given", "found"]),
        ("try:\n    pass\nexcept OSError as why:\n    pass\n", ["why"]),
        ("print(found, rows.found)\nfounder = 1\n", []),
    ],
)
def test_a_variable_is_named_by_what_it_holds(source: str, names: list[str]) -> None:
    lines = findings({"bench/a.py": source}, {})
    assert len(lines) == len(names)
    assert all(f"name {name} by" in line for name, line in zip(names, lines, strict=True))
    assert findings({"bench/a.py": source}, names) == []


def test_what_is_written_down_keeps_its_name_while_it_has_it() -> None:
    assert "nothing is named C.why any more" in findings({"remit/a.py": "class C:\n    reason: str\n"}, ["C.why"])[0]


def test_the_command_prints_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        path = tmp_path / "src" / "remit" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CLASS)
    assert main(tmp_path) == 1
    assert "Line is the name of a class in remit/a.py:1" in capsys.readouterr().out
