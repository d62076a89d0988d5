from pathlib import Path

import pytest

from scripts.check_dead_code import Unused, findings, main, scan

CALL = Unused("src/remit/gateway.py:9", "method", "call")


class TestFindings:
    def test_names_what_is_unused(self) -> None:
        assert findings([CALL], []) == ["src/remit/gateway.py:9: unused method call"]

    @pytest.mark.parametrize("pattern", ["call", "c*"])
    def test_an_exception_covers_its_names(self, pattern: str) -> None:
        assert findings([CALL], [pattern]) == []

    def test_an_exception_that_covers_nothing_must_go(self) -> None:
        [finding] = findings([CALL], ["call", "gone"])
        assert "allows gone, which is used or gone" in finding


class TestScan:
    def names(self, root: Path, code: str, *decorators: str) -> list[str]:
        (root / "src").mkdir()
        (root / "src/a.py").write_text(code, encoding="utf-8")
        return [f"{item.place} {item.kind} {item.name}" for item in scan(root, decorators)]

    def test_finds_functions_classes_and_constants(self, tmp_path: Path) -> None:
        found = self.names(tmp_path, "LIMIT = 1\n\nclass A:\n    def m(self):\n        pass\n")
        assert found == ["src/a.py:1 variable LIMIT", "src/a.py:3 class A", "src/a.py:4 method m"]

    def test_leaves_out_fields(self, tmp_path: Path) -> None:
        assert self.names(tmp_path, "class A:\n    recorded: int\n\nA()\n") == []

    def test_what_a_test_uses_is_used(self, tmp_path: Path) -> None:
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests/test_a.py").write_text("from a import f\n\nf()\n", encoding="utf-8")
        assert self.names(tmp_path, "def f():\n    pass\n") == []

    def test_what_is_registered_by_a_decorator_is_used(self, tmp_path: Path) -> None:
        assert self.names(tmp_path, "@cli.command\ndef show():\n    pass\n", "@*.command") == []


class TestMain:
    def test_reads_the_exceptions_from_pyproject(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "src").mkdir()
        (tmp_path / "src/a.py").write_text("def f():\n    pass\n", encoding="utf-8")
        config = tmp_path / "pyproject.toml"
        config.write_text("", encoding="utf-8")
        assert main(tmp_path) == 1
        assert capsys.readouterr().out == "src/a.py:1: unused function f\n"
        config.write_text('[tool.vulture]\nignore_names = ["f"]\n', encoding="utf-8")
        assert main(tmp_path) == 0
