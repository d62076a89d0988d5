"""Runs the battery and writes its outcome to docs: `python -m tests.parts.sandbox.abuse`.

As root it is run once more as a plain user, but for containers: that user's service would need an image of its own. `--only DRIVER` prints the findings of one driver as JSON instead.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

from tests.parts.sandbox.abuse.battery import battery
from tests.parts.sandbox.abuse.page import write
from tests.parts.sandbox.abuse.plain import NOBODY, plain_python
from tests.parts.sandbox.abuse.subjects import CONTAINERS, HERE, NAMES, TRIED, Finding


def as_nobody(name: str) -> list[Finding] | None:
    """The findings of a plain user; None if there is no Python that one could run."""
    with plain_python() as python:
        if python is None:
            return None
        done = subprocess.run(
            [python, "-m", "tests.parts.sandbox.abuse", "--only", name],
            cwd=HERE,
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
        )
    return [Finding(*row) for row in json.loads(done.stdout)]


def main(words: list[str]) -> None:
    if words[:1] == ["--only"]:
        sys.stdout.write(json.dumps(asyncio.run(battery(words[1]))))
        return
    user = "root" if os.geteuid() == 0 else "user"
    if missing := ", ".join(sorted({*CONTAINERS} - {*TRIED})):
        raise SystemExit(f"REMIT_TEST_CONTAINERS does not name {missing}: the pages would lose it")
    found = {(name, user): asyncio.run(battery(name)) for name in ("none", *NAMES)}
    if user == "root":
        for name in ("none", *(name for name in NAMES if name not in CONTAINERS)):
            rows = as_nobody(name)
            if rows is not None:
                found[name, "user"] = rows
    write(found)


if __name__ == "__main__":
    main(sys.argv[1:])
