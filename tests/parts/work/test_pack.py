"""The context pack: written whole, checked on both sides, and what is left in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import write_document
from remit.parts.work.envelope import write_envelope
from remit.parts.work.order import Command, Constraints, WorkOrder
from remit.parts.work.pack import RESULT, Contents, ContextPack
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, WorkResult, read_result

ISSUE = IssueRef.parse("org/sub/repo#7")
RUN = "2026-02-14-work-0001"
ORDER = WorkOrder(
    issue_ref=str(ISSUE),
    run_id=RUN,
    role="work",
    repo_dir="/srv/tree",
    spec_snapshot="# Mend it\n",
    constraints=Constraints(
        forbidden_paths=("ci/**",), commands=(Command(args=("make", "test")),), notes=("Be brief.",)
    ),
)
RESULT_OF_RUN = WorkResult(
    issue_ref=str(ISSUE), run_id=RUN, status="ok", summary="Done.", changes=Changes(commit="abc")
)


@pytest.fixture
def pack(tmp_path: Path) -> ContextPack:
    """A pack that was handed over."""
    made = ContextPack.of(tmp_path, ISSUE, RUN)
    made.write(ORDER, Contents(links=("local#1",), look_at=("src/",), files={"skills/a/SKILL.md": b"hello"}))
    return made


def test_a_pack_is_text_that_any_program_reads(pack: ContextPack) -> None:
    assert pack.order() == ORDER
    assert pack.folder.parent.name == ISSUE.file_name
    texts = {path.name: path.read_text() for path in pack.folder.iterdir() if path.is_file()}
    assert texts["spec_snapshot.md"] == "# Mend it\n"
    assert "Must pass: `make test`" in texts["constraints.md"]
    assert "Be brief." in texts["constraints.md"]
    assert texts["manifest.txt"] == "src/\n"
    pack.verify()


def test_a_pack_is_written_once(pack: ContextPack) -> None:
    before = (pack.folder / "work_order.json").stat().st_mtime_ns
    pack.write(ORDER, Contents())
    assert (pack.folder / "work_order.json").stat().st_mtime_ns == before
    assert sorted(path.name for path in pack.folder.parent.iterdir()) == [RUN], "nothing is left beside it"


def _change(pack: ContextPack) -> None:
    (pack.folder / "constraints.md").chmod(0o600)
    (pack.folder / "constraints.md").write_text("None.")


def _link(pack: ContextPack) -> None:
    (pack.folder / "links.md").unlink()
    (pack.folder / "links.md").symlink_to("/etc/passwd")


def _pipe(pack: ContextPack) -> None:
    os.mkfifo(pack.folder / "pipe")


@pytest.mark.parametrize(
    "harm",
    [
        _change,
        _link,
        _pipe,
        lambda pack: (pack.folder / "spec_snapshot.md").unlink(),
        lambda pack: (pack.folder / "more.md").write_text("x"),
    ],
    ids=["changed", "link", "pipe", "missing", "added"],
)
def test_what_was_changed_is_seen(pack: ContextPack, harm: object) -> None:
    assert callable(harm)
    harm(pack)
    with pytest.raises(UsageError) as refused:
        pack.verify()
    assert refused.value.code is Code.WORK_INVALID


@pytest.mark.parametrize("path", ["../x", "/x", "a/../b", "a//b", "./a", "work_result.json", "manifest.json", ""])
def test_no_file_leaves_the_pack_or_stands_in_for_another(tmp_path: Path, path: str) -> None:
    made = ContextPack.of(tmp_path, ISSUE, RUN)
    with pytest.raises(UsageError):
        made.write(ORDER, Contents(files={path: b""}))
    assert not made.exists


def test_a_result_in_json_comes_before_one_in_text_and_none_is_none(pack: ContextPack) -> None:
    assert pack.claim() is None
    (pack.folder / "work_result.txt").write_bytes(write_envelope(RESULT_OF_RUN))
    text = pack.claim()
    assert text is not None
    assert text.summary == "Done."
    (pack.folder / RESULT).write_bytes(write_document(RESULT_OF_RUN))
    assert pack.claim() == RESULT_OF_RUN
    pack.verify()


def test_what_was_proved_takes_the_place_of_what_was_said_which_is_kept(pack: ContextPack) -> None:
    (pack.folder / RESULT).write_bytes(write_document(RESULT_OF_RUN))
    assert pack.result() is None
    proved = replace(RESULT_OF_RUN, status="fail", result_code="test_failed")
    for _ in range(2):
        pack.put_result(proved)
        assert (pack.result(), pack.claim()) == (proved, RESULT_OF_RUN)
        assert read_result((pack.folder / RESULT).read_bytes()) == proved
        pack.verify()
    (pack.folder / RESULT).write_bytes(write_document(RESULT_OF_RUN))
    assert pack.result() == proved, "a program of the run cannot write there"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (RESULT, b"{"),
        (RESULT, b"x" * 2_000_000),
        ("work_result.txt", b"it went well"),
        ("work_result.txt", b"Status: ok\n\nx"),
    ],
)
def test_a_result_that_cannot_be_read_is_said_to_be_one(pack: ContextPack, name: str, data: bytes) -> None:
    (pack.folder / name).write_bytes(data)
    with pytest.raises(UsageError) as refused:
        pack.claim()
    assert refused.value.code is Code.output_unparseable


@pytest.mark.parametrize("name", [RESULT, "work_result.txt"])
def test_a_result_is_a_file_and_no_link(pack: ContextPack, name: str) -> None:
    (pack.folder / name).symlink_to("/etc/hostname")
    with pytest.raises(UsageError):
        pack.claim()
