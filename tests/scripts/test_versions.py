from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.versions import VERSIONS, Row, environment, interpreter, table

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
ROOT = Path(__file__).parents[2]


def test_our_own_interpreter_runs_in_its_own_environment() -> None:
    python = interpreter(HERE)
    assert python == Path(sys.executable)
    assert environment(HERE, python) == Path(sys.prefix)


def test_what_does_not_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="ascii")
    shim.chmod(0o700)
    pyenv = tmp_path / "versions/3.99.1/bin/python"
    pyenv.parent.mkdir(parents=True)
    pyenv.write_text("#!/bin/sh\necho 3.98 3.98.1\n", encoding="ascii")
    pyenv.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreter("3.99") is None


def test_the_newest_of_pyenv_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in (2, 10, 9):
        place = tmp_path / f"versions/3.99.{patch}/bin/python"
        place.parent.mkdir(parents=True)
        place.write_text(f"#!/bin/sh\necho 3.99 3.99.{patch}\n", encoding="ascii")
        place.chmod(0o700)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    found = interpreter("3.99")
    assert found is not None
    assert found.parts[-3] == "3.99.10"


def test_the_table_says_what_was_not_tried() -> None:
    lines = [*table([Row("3.11.7", "ok", "ok", "116 passed", 30), Row("3.14")])]
    assert [line.split() for line in lines] == [
        ["python", "import", "demo", "tests", "seconds"],
        ["3.11.7", "ok", "ok", "116", "passed", "30"],
        ["3.14", "-", "-", "not", "on", "this", "machine", "-"],
    ]


def test_every_version_that_the_package_names_is_tried() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = {version for version in VERSIONS if f"Python :: {version}" in text}
    assert f">={VERSIONS[0]}" in text
    assert named == {"3.11", "3.12", "3.13"}
