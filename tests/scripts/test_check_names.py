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
    lines = findings(sources, most_fillers=0)
    assert len(lines) == len(places)
    assert all(place in line for place, line in zip(places, lines, strict=True))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("found = 1\n", 1),
        ("def f(why, *, told=1):\n    return lambda one: one\n", 3),
        ("for said, (one, rest) in pairs:\n    rows[said] = one\n", 2),
        ("class C:\n    kept: int\n", 1),
        ("print(found, rows.found)\n", 0),
    ],
)
def test_fillers_only_become_fewer(source: str, count: int) -> None:
    assert findings({"remit/a.py": source}, most_fillers=count) == []
    assert all("MOST_FILLERS" in line for line in findings({"remit/a.py": source}, most_fillers=count + 1))
    assert len(findings({"remit/a.py": source}, most_fillers=count - 1)) == 1


def test_the_command_prints_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        path = tmp_path / "src" / "remit" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CLASS)
    assert main(tmp_path) == 1
    assert "Line is the name of a class in remit/a.py:1" in capsys.readouterr().out
