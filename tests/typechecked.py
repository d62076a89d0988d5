"""Code of users under mypy, strictly, against the sources of this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def mypy(folder: Path, *files: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Check files of a folder; `cache` is for this run alone: two runs at the same time break a shared one."""
    known = ROOT / "build/mypy"
    if known.is_dir():
        shutil.copytree(known, cache)
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(cache)]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
