"""docs/notifications.md says what targets can be, and its example can be read."""

from __future__ import annotations

import re
from pathlib import Path

from remit.parts.notify.people import read_directory, read_targets
from remit.parts.notify.sender import Notice
from remit.parts.notify.target import ABOUT_CALLS, EVENTS, OPEN, NotifyTarget
from remit.settings import load

PAGE = (Path(__file__).parents[2] / "docs/notifications.md").read_text(encoding="utf-8")


def named(title: str) -> list[str]:
    """What stands in the first cells of a section's table."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    cells = [line.split("|")[1] for line in found[1].splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_example_is_read(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text("".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)), encoding="utf-8")
    settings = load(env={}, cwd=tmp_path)
    assert [target.name for target in read_targets(settings)] == [
        "oncall",
        "boss",
        "payments",
        "duty",
        "turns-ann",
        "turns-bob",
    ]
    assert read_directory(settings).accounts == {
        ("slack", "T0123/U0456"): "okta:00u1",
        ("telegram", "123456789"): "okta:00u1",
        ("slack", "T0123/U0001"): "ann",
        ("slack", "T0123/U0002"): "bob",
    }


def test_every_event_key_and_field_is_listed() -> None:
    assert named("Events") == list(EVENTS)
    assert sorted(named("Keys of a target")) == sorted({*NotifyTarget.__struct_encode_fields__} - {"person", "table"})
    assert sorted(named("The message")) == sorted(Notice.__struct_fields__)


def test_the_table_says_which_events_take_which_conditions() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (yes|no) \| (yes|no) \|$", PAGE, re.MULTILINE)
    assert [name for name, after, _ in rows if after == "yes"] == list(OPEN)
    assert [name for name, _, calls in rows if calls == "yes"] == list(ABOUT_CALLS)
