from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError, RunError
from remit.gateway.outcome import Outcome, refused
from remit.jobs.answers import CallError
from remit.jobs.run import Run
from remit.parts.recipes.gather import items_of
from remit.parts.recipes.report_files import ReportProvider
from remit.parts.recipes.research_report import research_report
from remit.providers.folder.provider import FolderSearchProvider
from remit_testing.providers import call_context

T = TypeVar("T")

QUERY = "how is a task cancelled"


class ScriptedRun:
    """A run whose calls go straight to a provider, except those that a test makes fail."""

    def __init__(self, provider: FolderSearchProvider) -> None:
        self.provider = provider
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failing: set[str] = set()
        self.branches = 0

    async def attempt(self, tool: str, args: dict[str, Any], **_more: Any) -> Outcome:
        if tool == "report.write":
            return Outcome(status="ok", value=(await ReportProvider().invoke(tool, args, call_context())).value)
        self.calls.append((tool, args))
        if args.get("path") in self.failing:
            return refused(Code.FILE_CHANGED, "changed")
        try:
            result = await self.provider.invoke(tool, args, call_context())
        except ProviderError as error:
            return refused(error.code or Code.TOOL_EXEC_FAILED, str(error))
        return Outcome(status="ok", value=result.value)

    async def call(self, tool: str, args: dict[str, Any]) -> Outcome:
        outcome = await self.attempt(tool, args)
        if not outcome.ok:
            raise CallError(outcome, tool, "1")
        return outcome

    async def gather(self, *branches: Awaitable[T]) -> list[T]:
        self.branches = max(self.branches, len(branches))
        return list(await asyncio.gather(*branches))

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    library.mkdir()
    for colour in ("red", "green", "blue"):
        text = (
            f"# The {colour} task\n\nA {colour} task is cancelled by its {colour} owner. Bread is baked from flour.\n"
        )
        (library / f"{colour}.md").write_text(text)
    (library / "other.md").write_text("# Weather\n\nIt is fine today.\n")
    return library


@pytest.fixture
def run(tmp_path: Path) -> ScriptedRun:
    return ScriptedRun(FolderSearchProvider(tmp_path / "index"))


async def report(run: ScriptedRun, folder: Path, **more: Any) -> dict[str, Any]:
    return await research_report.function(cast("Run", run), more.pop("query", QUERY), str(folder), **more)


async def test_a_report_quotes_what_the_files_say(run: ScriptedRun, folder: Path) -> None:
    found = await report(run, folder)
    assert found["evidence_count"] == len(found["evidence"]) == 3
    paths = {source["n"]: source["path"] for source in found["sources"]}
    for claim in found["evidence"]:
        data = (folder / paths[claim["source"]]).read_bytes()
        assert data.decode()[claim["start"] : claim["end"]] == claim["text"]
        assert claim["sha256"] == sha256(data)
        assert claim["text"] in found["report"]
        assert f"[{claim['n']}]" in found["report"]
    assert found["searched"]["files"] == 4
    assert f"`{folder}`" in found["report"]


async def test_passages_are_read_in_branches_of_their_own(run: ScriptedRun, folder: Path) -> None:
    await report(run, folder)
    assert [tool for tool, _ in run.calls] == ["folder.search", *["folder.read"] * 3]
    assert run.branches == 3
    assert all(args["sha256"] for tool, args in run.calls if tool == "folder.read")


async def test_where_a_file_cannot_be_read_the_next_result_is_taken(
    run: ScriptedRun, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.parts.recipes.research_report._PASSAGES_PER_SOURCE", 1)
    first = (await report(run, folder, max_sources=1))["sources"][0]["path"]
    run.failing.add(first)
    [source] = (await report(run, folder, max_sources=1))["sources"]
    assert source["path"] != first


async def test_results_are_tried_until_there_is_enough(
    run: ScriptedRun, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "white.md").write_text("# The white task\n\nA white task is cancelled by its white owner.\n")
    monkeypatch.setattr("remit.parts.recipes.research_report._PASSAGES_PER_SOURCE", 1)
    await report(run, folder, max_sources=2)
    first, second = (args["path"] for tool, args in run.calls if tool == "folder.read")
    run.failing |= {first}
    await report(run, folder, max_sources=2)
    third = run.calls[-1][1]["path"]
    run.failing |= {third}
    found = await report(run, folder, max_sources=2)
    fourth = ({"red.md", "green.md", "blue.md", "white.md"} - {first, second, third}).pop()
    assert {source["path"] for source in found["sources"]} == {second, fourth}


async def test_where_no_file_can_be_read_the_report_says_so(run: ScriptedRun, folder: Path) -> None:
    run.failing |= {"red.md", "green.md", "blue.md"}
    found = await report(run, folder)
    assert found["evidence_count"] == 0
    assert "No evidence" in found["report"]


async def test_where_nothing_answers_the_report_says_so(run: ScriptedRun, folder: Path) -> None:
    for query in ("penguins of antarctica", "?"):
        found = await report(run, folder, query=query)
        assert found["evidence_count"] == 0
        assert "No evidence" in found["report"]


async def test_no_more_files_are_quoted_than_asked_for(run: ScriptedRun, folder: Path) -> None:
    assert len((await report(run, folder, max_sources=2))["sources"]) == 2
    assert len((await report(run, folder, max_sources=0))["sources"]) == 1


async def test_the_same_files_give_the_same_report(run: ScriptedRun, folder: Path) -> None:
    assert await report(run, folder) == await report(run, folder)


async def test_a_folder_that_is_not_there_fails_the_report(run: ScriptedRun, folder: Path) -> None:
    with pytest.raises(CallError) as error:
        await report(run, folder / "none")
    assert error.value.code is Code.FOLDER_NOT_FOUND


async def test_one_file_does_not_crowd_out_the_others(run: ScriptedRun, folder: Path) -> None:
    section = "## Part {n}\n\nA task is cancelled when part {n} of the cancelled task says so. {pad}\n\n"
    (folder / "long.md").write_text("".join(section.format(n=n, pad="Bread is baked. " * 30) for n in range(40)))
    await report(run, folder)
    read = [args["path"] for tool, args in run.calls if tool == "folder.read"]
    assert read.count("long.md") == 4
    assert {"red.md", "green.md", "blue.md"} < set(read)


def test_the_recipe_takes_its_arguments_by_name() -> None:
    bound = research_report.bind({"query": "x", "folder": ".", "max_sources": "3", "web": "true"}, strict=False)
    given = {"query": "x", "folder": ".", "max_sources": 3, "web": True, "model": "", "documents": ""}
    assert bound.input == given


async def test_without_a_place_to_look_in_it_says_what_to_name(run: ScriptedRun) -> None:
    with pytest.raises(RunError, match="nothing to look in"):
        await research_report.function(cast("Run", run), QUERY)


def test_a_list_of_results_is_put_into_the_form_of_items(caplog: pytest.LogCaptureFixture) -> None:
    given = [
        {"link": "https://a.example/", "title": "A", "content": "words"},
        {"url": "ftp://b.example/"},
        "https://c.example/",
        {"href": "http://d.example/"},
    ]
    assert items_of(given) == [
        {"title": "A", "url": "https://a.example/", "snippet": "words", "provider": "list", "rank": 1},
        {"title": "", "url": "http://d.example/", "snippet": "", "provider": "list", "rank": 3},
    ]
    assert "old form" in caplog.text
    assert items_of("none") == []
    assert items_of({"results": []}) == []
    assert items_of({"items": [given[0]]}) == items_of(given[:1])
    own = [{"title": "A", "url": "https://a.example/", "snippet": "words", "provider": "brave", "rank": 1}]
    assert items_of({"items": own}) == own
