import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = sorted((ROOT / "requirements").glob("*.in"))


def documented() -> list[str]:
    text = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Za-z][\w.-]*) \|", text, re.MULTILINE)
    return sorted(name for name in rows if name != "package")


def required() -> list[str]:
    lines = "\n".join(path.read_text(encoding="utf-8") for path in LISTS)
    return sorted(re.findall(r"^[A-Za-z][\w.-]*", lines, re.MULTILINE))


def test_every_dependency_is_documented_and_nothing_else_is() -> None:
    assert documented() == sorted(set(required()))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_dependency_is_pinned(path: Path) -> None:
    pins = path.with_suffix(".txt").read_text(encoding="utf-8").lower()
    names = re.findall(r"^[A-Za-z][\w.-]*", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in names if f"\n{name.lower()}==" not in pins] == []


@pytest.mark.parametrize("path", [path.with_suffix(".txt") for path in LISTS], ids=lambda path: path.stem)
def test_pins_are_hashed_and_name_no_index(path: Path) -> None:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    pins = [number for number, line in enumerate(lines) if "==" in line]
    assert pins
    assert all(lines[number + 1].startswith("--hash=sha256:") for number in pins)
    assert [line for line in lines if "://" in line or re.match(r"--(?!hash=)", line)] == []


def test_every_peer_of_the_tests_is_documented_and_nothing_else_is() -> None:
    part = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8").partition("## To test against")[2]
    cells = re.findall(r"^\| (`[^|]*`) \|", part.partition("\n## ")[0], re.MULTILINE)
    packages = [
        json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "tests/peers").glob("npm*/package.json")
    ]
    servers = [path.read_text(encoding="utf-8").splitlines() for path in (ROOT / "tests/peers/python").glob("*.in")]
    named = {name for each in packages for name in {**each["dependencies"], **each.get("optionalDependencies", {})}}
    peers = named | {line for lines in servers for line in lines}
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == {
        name for name in peers if name not in ("mcp<2", "pydantic<2.12") and not name.startswith("#")
    }
