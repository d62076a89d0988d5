"""An exception to a rule of the linter stands with its reason."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BARE = re.compile(r"# noqa(?:: [A-Z0-9, ]+)?$", re.MULTILINE)


def test_every_noqa_says_why() -> None:
    files = [
        path for folder in ("src", "testing", "tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(files) > 100
    assert [str(path) for path in files if _BARE.search(path.read_text(encoding="utf-8"))] == []
