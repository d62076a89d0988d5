"""A Python that a plain user can run with Remit in it, for a battery that was started as root."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from remit.parts.sandbox.identity import reachable
from tests.parts.sandbox.abuse.subjects import PYTHON

NOBODY: Final = 65534


@contextmanager
def plain_python() -> Iterator[str | None]:
    """Its path; None if there is none: ours lies in a closed folder, and the system's is of another version."""
    if reachable(Path(sys.executable)) and reachable(Path(sys.base_prefix)):
        yield sys.executable
        return
    words = [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]
    version = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    if version != [str(part) for part in sys.version_info[:2]]:
        yield None
        return
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(folder, "venv")
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(place)], check=True)
        [packages] = place.glob("lib/python*/site-packages")
        ours = sysconfig.get_path("purelib")
        (packages / "remit.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        yield str(place / "bin" / "python")
