from pathlib import Path

import pytest

from scripts.check_file_size import FILE_LINES, FUNCTION_LINES, crumbs, findings, main, measure

FILE = "src/remit/gateway.py"
LAZY = "def g():\n    from remit.a.crumb import f\n"
FUNCTION = "src/remit/gateway.py::Gateway.call"


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("name", "limit"), [(FILE, FILE_LINES), (FUNCTION, FUNCTION_LINES)])
class TestFindings:
    def test_up_to_the_ceiling_is_fine(self, name: str, limit: int) -> None:
        assert findings({name: limit}) == []

    def test_above_the_ceiling_is_found(self, name: str, limit: int) -> None:
        assert findings({name: limit + 1}) == [f"{name}: {limit + 1} lines, {limit} are allowed: split it"]


class TestCrumbs:
    USER = "remit/a/user.py"
    IMPORT = "from remit.a.crumb import f\n"

    def test_a_small_file_with_one_user_beside_it_is_found(self) -> None:
        problem = "remit/a/crumb.py: 1 lines, 2 are the least: fold it into remit/a/user.py"
        assert crumbs({"remit/a/crumb.py": "f = 1\n", self.USER: self.IMPORT}, floor=2) == [problem]

    def test_one_with_several_users_beside_it_is_found(self) -> None:
        others = {self.USER: self.IMPORT, "remit/a/other.py": self.IMPORT, "remit/a/lazy.py": LAZY}
        (problem,) = crumbs({"remit/a/crumb.py": "f = 1\n", **others}, floor=2)
        assert problem.endswith("fold it into remit/a/other.py or remit/a/user.py")

    @pytest.mark.parametrize(
        "others",
        [
            {},
            {USER: IMPORT, "remit/b.py": IMPORT},
            {USER: IMPORT, "remit/b.py": LAZY},
            {"remit/b.py": IMPORT},
            {"remit/a/__init__.py": IMPORT},
            {USER: LAZY},
            {USER: "if TYPE_CHECKING:\n    from remit.a.crumb import f\n"},
            {USER: "from remit.a import crumb\n"},
            {USER: "REFERENCE = 'remit.a.crumb:f'\n"},
            {USER: IMPORT + "\n" * FILE_LINES},
        ],
        ids=[
            "command",
            "elsewhere too",
            "lazily elsewhere",
            "elsewhere",
            "package",
            "lazy",
            "types",
            "module",
            "reference",
            "too long",
        ],
    )
    def test_a_file_with_a_reason_is_left_alone(self, others: dict[str, str]) -> None:
        assert crumbs({"remit/a/crumb.py": "f = 1\n", **others}, floor=2) == []

    def test_a_file_at_the_floor_is_left_alone(self) -> None:
        assert crumbs({"remit/a/crumb.py": "f = 1\n", self.USER: self.IMPORT}, floor=1) == []


class TestMeasure:
    def test_counts_files_of_every_checked_folder_and_no_other(self, tmp_path: Path) -> None:
        for folder in ("src/remit", "tests", "bench", "scripts", "docs"):
            write(tmp_path, f"{folder}/a.py", "x = 1\ny = 2\n")
        assert measure(tmp_path) == {"bench/a.py": 2, "scripts/a.py": 2, "src/remit/a.py": 2, "tests/a.py": 2}

    def test_counts_functions_at_every_depth(self, tmp_path: Path) -> None:
        write(tmp_path, "src/a.py", "class A:\n    async def f(self):\n        def g():\n            pass\n")
        assert measure(tmp_path) == {"src/a.py": 4, "src/a.py::A.f": 3, "src/a.py::A.f.g": 2}

    def test_finds_a_function_under_a_condition(self, tmp_path: Path) -> None:
        write(tmp_path, "src/a.py", "if True:\n    def f():\n        pass\n")
        assert measure(tmp_path)["src/a.py::f"] == 2

    def test_keeps_the_longest_of_functions_with_one_name(self, tmp_path: Path) -> None:
        write(tmp_path, "src/a.py", "def f():\n    x = 1\n    return x\ndef f():\n    pass\n")
        assert measure(tmp_path)["src/a.py::f"] == 3


class TestMain:
    def test_a_small_tree_passes_silently(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(tmp_path, "src/a.py", "x = 1\n")
        assert main(tmp_path) == 0
        assert capsys.readouterr().out == ""

    def test_a_long_file_fails_and_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(tmp_path, "src/a.py", "x = 1\n" * (FILE_LINES + 1))
        assert main(tmp_path) == 1
        assert capsys.readouterr().out.startswith(f"src/a.py: {FILE_LINES + 1} lines")
