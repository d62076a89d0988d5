"""Build Remit's wheel, install it alone, and run a job with it: `python -m scripts.wheel FOLDER [--core]`.

`--core` leaves out all parts: what is built is the house that every part stands on (rule 17).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts.dist import ROOT, distributions
from tests.wiring.test_without_parts import PARTS, PROGRAM

_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "*.egg-info")


def main() -> int:
    """Build and try the wheel of the working tree; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--core", action="store_true", help="without parts")
    options = parser.parse_args()
    gone = PARTS if options.core else []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        wheel = distributions(tree_without(gone, scratch / "tree"), scratch / "made", 0)[0]
        options.folder.mkdir(parents=True, exist_ok=True)
        file = options.folder / wheel.name
        file.write_bytes(wheel.data)
        python = _installed(file.resolve(), scratch / "venv")
        _run([python, "-c", PROGRAM, *gone], scratch)
    sys.stdout.write(f"{file}  {len(wheel.data)} bytes: a job ran, and every face stands\n")
    return 0


def tree_without(gone: list[str], tree: Path) -> Path:
    """Return a copy of what a build needs, without some parts."""
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "requirements", tree / "requirements")
    shutil.copytree(ROOT / "src", tree / "src", ignore=_LEFT_OUT)
    for part in gone:
        shutil.rmtree(tree / "src/remit/parts" / part)
    return tree


def _installed(wheel: Path, place: Path) -> str:
    """Install a wheel and what it needs, pinned, in an environment of its own; return its Python."""
    _run([sys.executable, "-m", "venv", str(place)], ROOT)
    python = str(place / "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--require-hashes", "-r", str(ROOT / "requirements/runtime.txt")], ROOT)
    _run([*pip, "--no-deps", str(wheel)], ROOT)
    return python


def _run(command: list[str], folder: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=folder, env=env, check=True)  # noqa: S603 - of this file's own words


if __name__ == "__main__":
    sys.exit(main())
