"""What the next run is told of those before it."""

from __future__ import annotations

from pathlib import Path

from remit.parts.work.order import WorkOrder
from remit.parts.work.pack import Contents, ContextPack, contents_for, named_files
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, Test, WorkResult, read_result
from remit.parts.work.unit import Run, WorkUnit

ISSUE = IssueRef.parse("local#1")
OLD, NEW = "2026-02-14-work-0001", "2026-02-14-work-0002"
RESULT = WorkResult(
    issue_ref="local#1",
    run_id=OLD,
    status="fail",
    changes=Changes(pr="https://git.example/4", commit="4f2c1d9"),
    tests=(Test(command="make test", result="fail"),),
    summary="Half of it.",
    questions=("Which\nclock?",),
)


def order(run: str, *, spec: str = "") -> WorkOrder:
    """Return the order of a run."""
    return WorkOrder(
        issue_ref="local#1", run_id=run, role="work", repo_dir="/x", spec_snapshot=spec, depends_on=("local#9",)
    )


def test_the_next_pack_has_results_logs_and_open_questions(tmp_path: Path) -> None:
    old = ContextPack.of(tmp_path, ISSUE, OLD)
    old.write(order(OLD), Contents())
    (old.folder / "stdout.log").write_bytes(b"x" * 100_000 + b"the end\n")
    unit = WorkUnit()
    unit.runs = {
        OLD: Run(run_id=OLD, role="work", executor="shell", standing="accepted"),
        NEW: Run(run_id=NEW, role="work", executor="codex", standing="active", previous=OLD),
    }
    contents = contents_for(order(NEW), unit, {OLD: RESULT}, tmp_path)
    pack = ContextPack.of(tmp_path, ISSUE, NEW)
    pack.write(order(NEW), contents)
    pack.verify()
    links = (pack.folder / "links.md").read_text()
    for told in (
        f"run {OLD} by shell, fail",
        "builds on local#9",
        "pull request https://git.example/4",
        "fail: make test",
        "open question: Which clock?",
    ):
        assert f"- {told}\n" in links
    assert read_result((pack.folder / "runs" / OLD / "work_result.json").read_bytes()) == RESULT
    log = (pack.folder / "runs" / OLD / "stdout.log").read_bytes()
    assert len(log) < 70_000
    assert log.endswith(b"the end\n")


def test_files_that_the_specification_names_deserve_attention(tmp_path: Path) -> None:
    for name in ("src/clock.py", "README.md", ".git/config", "docs/a b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    text = "See `src/clock.py`, ./README.md, src/, /etc/passwd, ../up, .git/config, src/none.py and e.g. src/clock.py."
    assert named_files(text, tmp_path) == ("src/clock.py", "README.md", "src/")
    assert named_files("nothing", tmp_path) == ()
