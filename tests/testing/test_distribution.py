"""The suites are a distribution of their own, of the same version as Remit."""

import tomllib
from pathlib import Path

from remit.version import __version__


def test_its_version_and_what_it_needs_are_those_of_remit() -> None:
    project = tomllib.loads(Path("testing/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    assert project["dependencies"] == [f"remit == {__version__}"]
