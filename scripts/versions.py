"""Run the fast tests on every Python that Remit is for and that this machine has, and print one table.

python -m scripts.versions [--smoke] [VERSION…]: each version gets an environment of its own in build/versions.
`--smoke` takes less than a minute for each: the import, the demo, and the tests of what versions did differently.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
PINS: Final = ROOT / "requirements/dev.txt"
DIFFER: Final = (
    "tests/api/test_openapi.py", "tests/http/test_tls.py", "tests/jobs/effects/test_asks.py", "tests/jobs/test_run.py",
    "tests/mcp_config/test_jsonc.py", "tests/parts/notify/test_mail.py", "tests/test_public.py",
    "tests/tools/test_hints.py", "tests/tools/test_shapes.py", "tests/wiring/test_schemas.py",
)  # fmt: skip
"""Tests of what one version of Python did differently from another, and a few of the core."""
_ASK: Final = "import sys; print('%d.%d %d.%d.%d' % (*sys.version_info[:2], *sys.version_info[:3]))"
_SUM: Final = re.compile(r"^(\d.*?) in [\d.]+s", re.MULTILINE)


class Row(NamedTuple):
    """What one version did."""

    version: str
    import_: str = "-"
    demo: str = "-"
    tests: str = "not on this machine"
    seconds: int = 0
    failed: bool = False


def main() -> int:
    """Print the table; the status is 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="less than a minute for each version")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"some of {', '.join(VERSIONS)}; else all")
    options = parser.parse_args()
    rows = [tried(version, smoke=options.smoke) for version in options.versions or VERSIONS]
    for line in table(rows):
        sys.stdout.write(f"{line}\n")
    return int(any(row.failed for row in rows))


def tried(version: str, *, smoke: bool) -> Row:
    """Return what a version does, in an environment of its own."""
    python = interpreter(version)
    if python is None:
        return Row(version)
    env = environment(version, python)
    begin = time.monotonic()
    imported = _run([env / "bin/python", "-c", "import remit, remit.cli, remit.wiring.runtime"])
    demo = _run([ROOT / "scripts/demo.sh"], DEMO_ENV=str(env))
    chosen = ["-n", "2", *DIFFER] if smoke else ["-n", os.environ.get("JOBS", "3")]
    tests = _run([env / "bin/python", "-m", "pytest", "--quiet", "--quick", *chosen])
    for done in (imported, demo, tests):
        if done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
    summary = _SUM.search(tests.stdout)
    return Row(
        _version_of(python)[1],
        "failed" if imported.returncode else "ok",
        "failed" if demo.returncode else "ok",
        summary[1] if summary else "did not run",
        round(time.monotonic() - begin),
        any(done.returncode for done in (imported, demo, tests)),
    )


def interpreter(version: str) -> Path | None:
    """Return an interpreter of a version: one on the PATH that runs, or pyenv's newest."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    paths = sorted(
        pyenv.glob(f"{version}.*/bin/python"), key=lambda path: [*map(int, re.findall(r"\d+", path.parts[-3]))]
    )
    places = [sys.executable, shutil.which(f"python{version}"), *map(str, reversed(paths))]
    return next((Path(place) for place in places if place and _version_of(Path(place))[0] == version), None)


def environment(version: str, python: Path) -> Path:
    """Return the environment of a version, with today's pins and this checkout; our own if it is of that version."""
    if python == Path(sys.executable):
        return Path(sys.prefix)
    env = ROOT / "build/versions" / version
    ready, state = env / ".ready", hashlib.sha256(PINS.read_bytes()).hexdigest()
    if not ready.exists() or ready.read_text(encoding="ascii") != state:
        pip: list[str | Path] = [env / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _make([python, "-m", "venv", "--clear", env])
        _make([*pip, "--require-hashes", "--requirement", PINS])
        _make([*pip, "--no-build-isolation", "--no-deps", "--editable", ROOT, "--editable", ROOT / "testing"])
        ready.write_text(state, encoding="ascii")
    return env


def table(rows: list[Row]) -> Iterator[str]:
    """Return the lines of the table."""
    cells = [("python", "import", "demo", "tests", "seconds")]
    cells += [(row.version, row.import_, row.demo, row.tests, str(row.seconds or "-")) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _version_of(python: Path) -> tuple[str, str]:
    """Return a version, short and whole; empty for what does not run, as a shim of pyenv for what is not chosen."""
    done = _run([python, "-c", _ASK])
    short, _, whole = done.stdout.strip().partition(" ")
    return (short, whole) if done.returncode == 0 else ("", "")


def _make(command: list[str | Path]) -> None:
    done = _run(command)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nfailed: {' '.join(map(str, command))}")


def _run(command: list[str | Path], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own programs, and interpreters of this machine
        command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
