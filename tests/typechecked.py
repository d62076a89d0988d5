"""Code of users under mypy and pyright, strictly, against the sources of this checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def mypy(folder: Path, *files: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Check files of a folder; `cache` is for this run alone: two runs at the same time break a shared one.

    With the project's own settings, for which `make check` has left what it knows: mypy does not begin anew.
    """
    known = ROOT / "build/mypy"
    if known.is_dir():
        shutil.copytree(known, cache)
    options = ["--strict", "--no-error-summary", "--cache-dir", str(cache)]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(str(folder / file) for file in files)],
        cwd=ROOT,
        env={"MYPYPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


NODE = shutil.which("node")
"""What pyright runs on; its wheel holds everything else, and nothing is downloaded."""


def pyright(folder: Path, file: str) -> list[int]:
    """The lines of a file in which pyright finds errors."""
    import pyright as installed  # noqa: PLC0415 - only one test needs it

    assert NODE is not None
    options = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src"), str(ROOT / "testing/src")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(options), encoding="utf-8")
    program = Path(installed.__file__).with_name("dist") / "index.js"
    done = subprocess.run(
        [NODE, program, "--outputjson", "--pythonpath", sys.executable, file],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1, done.stdout
    return sorted({one["range"]["start"]["line"] + 1 for one in found["generalDiagnostics"]})
