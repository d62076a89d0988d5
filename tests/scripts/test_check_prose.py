from pathlib import Path

import pytest

from scripts.check_prose import RULES, Text, files, findings, main, markdown, python, rules, template

ROOT = Path(__file__).parents[2]
WHOEVER = """
extends: substitution
message: "write %s instead of '%s'"
ignorecase: true
swap:
  whoever: "'the caller'"
"""
NONE = """
extends: existence
message: "rewrite '%s'"
tokens:
  - 'where there is none'
"""


def held(root: Path, **sources: str) -> Path:
    folder = root / RULES
    folder.mkdir(parents=True)
    for name, source in sources.items():
        (folder / f"{name}.yml").write_text(source, encoding="utf-8")
    return folder


class TestRules:
    def test_a_substitution_says_what_to_write(self, tmp_path: Path) -> None:
        folder = held(tmp_path, People=WHOEVER)
        text = Text("a.md", 1, "One.\nWhoever asks.")
        assert findings([text], rules(folder)) == ["a.md:2: write 'the caller' instead of 'Whoever' [People]"]

    def test_wording_to_avoid_is_found_over_line_breaks(self, tmp_path: Path) -> None:
        folder = held(tmp_path, Inversions=NONE)
        text = Text("a.py", 7, "# It is made where\n# there is none.")
        assert findings([text], rules(folder)) == ["a.py:7: rewrite 'where # there is none' [Inversions]"]

    def test_only_whole_words_count(self, tmp_path: Path) -> None:
        folder = held(tmp_path, People=WHOEVER)
        assert findings([Text("a.md", 1, "whoevers")], rules(folder)) == []

    def test_another_kind_of_check_is_refused(self, tmp_path: Path) -> None:
        folder = held(tmp_path, Long="extends: occurrence\nmessage: too long\n")
        with pytest.raises(ValueError, match="Long: checks of the kind occurrence are not supported"):
            rules(folder)


class TestTexts:
    def found(self, texts: list[Text]) -> list[tuple[int, str]]:
        return [(text.line, " ".join(text.content.split())) for text in texts]

    def test_a_page_is_read_without_its_code(self) -> None:
        [text] = markdown("a.md", "A word.\n```\ncode block\n```\nUse `some code`, [here](docs/a.md).\n")
        assert "code" not in text.content
        assert "docs/a.md" not in text.content
        assert text.content.splitlines()[4].startswith("Use ")

    def test_a_module_is_read_by_docstrings_comments_and_messages(self) -> None:
        source = '"""A module."""\n\nNAME = "word"\n# A remark\n# on two lines.\nraise ValueError(f"{NAME} is wrong")\n'
        assert self.found(python("a.py", source)) == [
            (1, "A module."),
            (4, "# A remark # on two lines."),
            (6, "X is wrong"),
        ]

    def test_a_template_is_read_without_its_tags(self) -> None:
        [text] = template("a.html", '<p class="whoever">{% if whoever %}Ask {{ whoever }} first{% endif %}</p>')
        assert "whoever" not in text.content
        assert "first" in text.content


def test_the_status_says_whether_anything_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held(tmp_path, People=WHOEVER)
    assert main(tmp_path) == 0
    (tmp_path / "README.md").write_text("Whoever.\n", encoding="utf-8")
    assert main(tmp_path) == 1
    assert capsys.readouterr().out == "README.md:1: write 'the caller' instead of 'Whoever' [People]\n"


def test_the_project_is_read_with_its_own_rules() -> None:
    assert {rule.name for rule in rules(ROOT / RULES)} >= {"Inversions", "People", "Words"}
    read = {path for path, _ in files(ROOT)}
    assert {"README.md", "docs/concepts.md", "src/remit/app.py", "src/remit/pages/templates/job.html"} <= read
