from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from remit.canonical import sha256
from remit.parts.recipes.report import Report
from remit.parts.recipes.verification import _compared, reader_of
from tests.cli.conftest import Project, project

__all__ = ["project"]

TEXT = "Rain fell on Monday. The bridge was closed until noon."


def report(**changes: Any) -> Report:
    """A report with one quotation of TEXT."""
    place = {"sha256": "s", "start": 21, "end": 54} | changes.pop("place", {})
    citation = {
        "n": 1, "text": TEXT[21:54], "plain": TEXT[21:54], "source": 1, "source_index": 0,
        "start": 21, "end": 54, "sha256": "s", "stored": place,
    }  # fmt: skip
    facts = {"query": "q", "searched": {}, "unread": []}
    return msgspec.convert({**facts, "evidence": [citation | changes], "sources": [], "evidence_count": 1}, Report)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"text": "The bridge was closed until dusk."}, "quotation_differs"),
        ({"place": {"start": 20}}, "quotation_differs"),
        ({"place": {"end": 53}}, "quotation_differs"),
        ({"place": {"sha256": "t"}}, "source_unknown"),
    ],
)
def test_a_quotation_stands_where_the_report_says(changes: dict[str, Any], code: str | None) -> None:
    answer = _compared("j_1", report(**changes), {"s": TEXT})
    assert (answer.verdict, answer.code, answer.records) == ("invalid" if code else "valid", code, 1)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{"query": "q"}'),
        ("a.json", b"["),
        ("a.json", b"[" * 100_000),
        ("a.txt", b"text"),
        ("events.jsonl", b"{}"),
    ],
)
def test_other_files_are_no_reports(tmp_path: Path, name: str, data: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    assert reader_of(file) is None
    assert reader_of(tmp_path / "absent.json") is None


def test_a_report_is_compared_with_the_record_that_it_came_from(project: Project) -> None:
    notes = project.folder / "notes"
    notes.mkdir()
    (notes / "bridge.md").write_text("# The bridge\n\nThe bridge was closed on Monday. It was opened again at noon.\n")
    words = ("--query", "When was the bridge closed?", "--folder", str(notes))
    assert project.here("run", "research_report", *words).status == 0
    assert project.here("artifacts", "last", "--save", "out").status == 0
    for name in ("report.md", "report.json", "report.html"):
        whole = project.here("verify", f"out/{name}", "--json").json
        assert (whole["verdict"], whole["records"] > 0) == ("valid", True), name

    changed = json.loads((project.folder / "out/report.json").read_text())
    changed["evidence"][0]["text"] = "It was never closed."
    (project.folder / "changed.json").write_text(json.dumps(changed))
    refused = project.here("verify", "changed.json", "--json")
    assert (refused.status, refused.json["code"]) == (1, "report_unknown")
    (project.folder / "page.html").write_text("<p>Anything")
    unknown = project.here("verify", "page.html", "--json")
    assert (unknown.status, unknown.json["code"]) == (2, "report_unknown")


class Older:
    """The service of a journal in which an older Remit wrote a report."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.jobs = self.artifacts = self

    async def search(self, _wanted: Any) -> Any:
        return SimpleNamespace(rows=[SimpleNamespace(job="j_1", name="research_report")], next=None)

    async def rows(self, _job: str) -> list[Any]:
        return [SimpleNamespace(path=path, sha256=sha256(data)) for path, data in self.files.items()]

    async def read(self, _job: str, digest: str) -> bytes:
        return next(data for data in self.files.values() if sha256(data) == digest)


@pytest.mark.parametrize("files", [{"report.md": b"# R"}, {"report.md": b"# R", "report.json": b'{"query": "q"}'}])
async def test_a_report_of_an_older_remit_is_undecidable(tmp_path: Path, files: dict[str, bytes]) -> None:
    file = tmp_path / "report.md"
    file.write_bytes(b"# R")
    compare = reader_of(file)
    assert compare is not None
    assert (await compare(Older(files)))[:2] == ("undecidable", "report_old")
