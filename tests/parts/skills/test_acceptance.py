"""Loading, switching and refusing: what the seed wants of skills, at every face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.client import RemoteRemit
from remit.codes import Code
from remit.errors import NotFoundError, PolicyError, RemitError, SettingsError, StateError
from remit.jobs.plans.check import read_plan
from remit.parts.skills.noun import SkillRow
from remit.service.options import Options
from remit.settings import load
from remit.trust.claims import claims
from tests.cli.conftest import Project, project
from tests.pages.conftest import serving, token
from tests.parts.skills.project import opened, settings, skill

__all__ = ["project"]

SHIPPED = ["agent", "edit_docs", "research_report", "run_code_snippet"]
OFF = "[skills]\nfolders = ['skills']\n[skills.edit_docs]\nenabled = false\n"


@recipe("settle")
async def settle(run: Run) -> str:
    """End at once."""
    return run.job_id


async def rows(remit: Remit) -> dict[str, SkillRow]:
    return {row.name: row for row in await remit.service.skills.rows()}


# --- the seed's three lines


async def test_a_manifest_that_comes_is_loaded_at_start_and_one_that_goes_is_unloaded(tmp_path: Path) -> None:
    async with opened(settings(tmp_path)) as remit:
        assert sorted(await rows(remit)) == SHIPPED
        skill(tmp_path / "skills", "notes", tools="notes.read")
        (tmp_path / "skills/triage.json").write_text('{"skill_name": "triage", "required_tools": ["notes.read"]}')
        (tmp_path / "skills/label.yaml").write_text("skill_name: label\nallowed_run_types: [agent]\n")
        assert sorted(await rows(remit)) == SHIPPED
    async with opened(settings(tmp_path)) as remit:
        found = await rows(remit)
        assert sorted(found) == sorted([*SHIPPED, "notes", "triage", "label"])
        assert {row.state for row in found.values()} == {"enabled"}
        (tmp_path / "skills/triage.json").unlink()
    async with opened(settings(tmp_path)) as remit:
        assert "triage" not in await rows(remit)
        with pytest.raises(NotFoundError):
            await remit.service.skills.view("triage")


def test_a_skill_whose_tools_were_never_listed_is_not_called_unavailable(project: Project) -> None:
    skill(project.folder / "skills", "notes", tools="notes.read")
    skill(project.folder / "skills", "lacks", tools="no.such")
    tools = "from remit import tool\n\n@tool('notes.read', level='L0')\ndef read() -> str:\n    return ''\n"
    (project.folder / "notes.py").write_text(tools, encoding="utf-8")
    toml = "[app]\nmodules = ['notes.py']\n[skills]\nfolders = ['skills']\n"
    (project.folder / "remit.toml").write_text(toml, encoding="utf-8")
    before = project.here("skills", "list")
    assert [line.split()[:3] for line in before.out.splitlines()[-2:]] == [
        ["not", "known", "lacks"],
        ["not", "known", "notes"],
    ]
    assert "run `remit tools` once" in before.err
    assert "not known, it requires tools" in project.here("skills", "show", "notes").out
    assert project.here("tools").status == 0
    after = project.here("skills", "list").out
    assert ("notes" in after, "unavailable  lacks" in after, "not known" in after) == (True, True, False)


@pytest.mark.slow
async def test_the_console_shows_which_skills_are_enabled_and_switches_them(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "notes", tools="notes.read", about="Read <b>notes</b>.")
    skill(tmp_path / "skills", "lacks", tools="no.such")
    tokens = [token("ada", "read", "decide"), token("bob", "read")]
    async with opened(settings(tmp_path)) as remit, serving(remit, tokens) as browser:
        await browser.log_in("secret-ada")
        page = await browser.get("/skills")
        assert page.status == 200
        for text in ("Read &lt;b&gt;notes&lt;/b&gt;.", "SKILL_UNAVAILABLE", "missing: no.such", "research_report"):
            assert text in page.text
        fields = [("csrf", page.csrf), ("skill", "notes"), ("on", "false")]
        assert (await browser.send("/skills/switch", fields)).status == 303
        assert page.text.count(">Switch off<") == page.text.count('name="on" value="false"') == 6
        assert (await rows(remit))["notes"].why == "switched off by ada"
        assert "switched off by ada" in (await browser.get("/skills")).text
        await browser.log_in("secret-bob")
        page = await browser.get("/skills")
        assert ">Switch off<" not in page.text
        assert (await browser.send("/skills/switch", [("csrf", page.csrf), *fields[1:]])).status == 403


@pytest.mark.slow
async def test_the_page_of_a_job_names_its_skills_and_those_on_offer(tmp_path: Path) -> None:
    for name in ("notes", "mail"):
        skill(tmp_path / "skills", name, tools="notes.read")
    toml = "[skills]\nfolders = ['skills']\n[skills.mail]\nactivate = true\n"
    async with opened(settings(tmp_path, {"say": "Done."}, toml=toml)) as remit, serving(remit) as browser:
        under = await remit.service.jobs.start_named("agent", {"task": "x"}, Options(skills=("notes",)))
        free = await remit.service.jobs.start_named("run_code_snippet", {"language": "python", "code": "1"})
        pins = (await remit.service.jobs.view(under)).skills or {}
        page = (await browser.get(f"/jobs/{under}")).text
        assert f'<span title="{pins["notes"]}">notes</span>, <span title="{pins["mail"]}">mail</span>' in page
        assert page.count("on offer") == 1
        assert "<dt>Skills</dt>" not in (await browser.get(f"/jobs/{free}")).text


@pytest.mark.parametrize("by", ["settings", "switch"])
async def test_a_run_type_whose_skills_are_switched_off_is_refused_at_creation(tmp_path: Path, by: str) -> None:
    async with opened(settings(tmp_path, toml=OFF if by == "settings" else "")) as remit:
        if by == "switch":
            await remit.service.skills.disable("edit_docs", reason="not now")
        given = {"paths": ["a.md"], "instruction": "x"}
        with pytest.raises(StateError) as caught:
            await remit.service.jobs.start_named("edit_docs", given)
        assert caught.value.code is Code.SKILL_DISABLED
        assert caught.value.remedy
        assert await remit.jobs() == []
        plan = read_plan(
            {
                "name": "p",
                "version": "taskgraph-v1",
                "nodes": [{"id": "a", "recipe": "edit_docs", "input": {"paths": ["a.md"]}}],
            }
        )
        with pytest.raises(StateError):
            await remit.service.jobs.start_plan(plan, {})
        # Others go on.
        await remit.service.jobs.start_named(
            "run_code_snippet", {"language": "python", "code": "1"}, Options(delay_s=1e6)
        )
        if by == "switch":
            await remit.service.skills.enable("edit_docs")
            await remit.service.jobs.start_named("edit_docs", given, Options(delay_s=1e6))


# --- which run types are concerned


async def test_a_recipe_that_no_skill_names_runs_as_before(tmp_path: Path) -> None:
    async with Remit(settings=settings(tmp_path, toml=""), recipes=[settle]) as remit:
        assert await remit.run(settle())
        assert [tool.name for tool in await remit.service.tools.views() if tool.name.startswith("skill.")] == []


@pytest.mark.parametrize(
    ("toml", "allowed"),
    [
        ("[skills]\nrequired = true\n", False),
        ("[skills]\nrequired = true\n[skills.agent]\nrun_types = ['agent', 'settle']\n", True),
        ("[skills.agent]\nrun_types = ['settle']\nenabled = false\n", False),
        ("[skills.agent]\nrun_types = ['settle']\nenabled = false\n[skills.edit_docs]\nrun_types = ['settle']\n", True),
    ],
)
async def test_one_enabled_skill_that_names_it_is_enough(tmp_path: Path, toml: str, allowed: bool) -> None:
    async with Remit(settings=settings(tmp_path, toml=toml), recipes=[settle]) as remit:
        if allowed:
            assert await remit.run(settle())
        else:
            with pytest.raises(StateError) as caught:
                _ = await remit.start(settle())
            assert caught.value.code is Code.SKILL_DISABLED


async def test_a_skill_that_lacks_a_tool_stands_in_for_none_that_is_switched_off(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "lacks", tools="no.such", run_types="settle edit_docs")
    async with opened(settings(tmp_path), recipes=[settle]) as remit:
        assert await remit.run(settle())  # no other is switched off
        await remit.service.skills.disable("edit_docs")
        with pytest.raises(StateError) as caught:
            await remit.service.jobs.start_named("edit_docs", {"paths": ["a.md"], "instruction": "x"})
        assert caught.value.remedy == "Switch it on: remit skills enable edit_docs"


async def test_a_retry_is_looked_at_like_a_new_job(tmp_path: Path) -> None:
    @recipe("fails")
    async def fails(run: Run) -> str:
        raise ValueError(run.job_id)

    toml = "[skills.agent]\nrun_types = ['fails']\n"
    async with Remit(settings=settings(tmp_path, toml=toml), recipes=[fails]) as remit:
        job = await remit.start(fails())
        await remit.settled(job.id)
        await remit.service.skills.disable("agent")
        with pytest.raises(StateError) as caught:
            await remit.service.jobs.retry(job.id)
        assert caught.value.code is Code.SKILL_DISABLED


# --- where skills lie


async def test_the_project_wins_over_the_user_and_a_collision_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("skills", ".agents/skills", "home/.agents/skills"):
        skill(tmp_path / folder, "notes", about=f"Of {folder}.")
    skill(tmp_path / "home/.agents/skills", "own")
    skill(tmp_path / "skills", "agent")
    async with opened(settings(tmp_path, toml="[skills]\nrequired = false\n")) as remit:
        found = await remit.service.skills.rows()
        (counts,) = [row for row in found if row.name == "notes" and row.state == "enabled"]
        assert (counts.description, counts.source) == ("Of skills.", "project")
        others = [row for row in found if row.name == "notes" and row.state == "not loaded"]
        assert {row.source for row in others} == {"project", "user"}
        assert {said.code for row in others for said in row.findings} == {"collision"}
        assert next(row for row in found if row.name == "own").source == "user"
        ours = [(row.source, row.state) for row in found if row.name == "agent"]
        assert sorted(ours) == [("project", "enabled"), ("remit", "not loaded")]


async def test_skills_of_a_project_count_once_its_settings_speak_of_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMIT_TRUST", raising=False)
    skill(tmp_path / "skills", "edit_docs", about="Not the one that ships.")
    async with opened(settings(tmp_path, toml="")) as remit:
        found = await remit.service.skills.rows()
        assert [row.findings[0].code for row in found if row.state == "not loaded"] == ["untrusted_folder"]
        assert (await rows(remit))["edit_docs"].source == "remit"


def test_what_an_untrusted_file_says_of_skills_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text("[skills]\nfolders = ['skills']\n[skills.agent]\nenabled = false\n")
    found = load(cwd=tmp_path, env={}, doubted=("skills.folders", "skills.named"))
    assert {source for key, source in found.sources.items() if key.startswith("skills.")} == {"default"}
    needed = [claim.key for claim in claims(load(cwd=tmp_path, env={}), {})]
    assert needed == ["skills.folders", "skills.named"]


@pytest.mark.parametrize(
    "toml",
    [
        "[skills.x]\nenabledd = true\n",
        "[skills.x]\nenabled = 'yes'\n",
        "[skills.x]\npolicy = 'allow'\n",
        "[skills.x]\nsandbox = {netwrk = []}\n",
        "[skills.x]\npolicy = [{effect = 'allow', tools = ['*']}]\n",
        "[skills.x]\ntools = ['a b']\n",
        "[skills]\nswitched_off = 'never'\n",
        "[skills]\nfoldrs = ['x']\n",
    ],
)
async def test_a_wrong_word_of_the_operator_is_an_error_and_not_ignored(tmp_path: Path, toml: str) -> None:
    with pytest.raises((SettingsError, PolicyError)) as caught:
        async with opened(settings(tmp_path, toml=toml)) as remit:
            await remit.service.skills.rows()
    assert caught.value.remedy


async def test_a_table_for_a_skill_that_is_not_there_is_said(tmp_path: Path) -> None:
    async with opened(settings(tmp_path, toml="[skills.edit_doc]\nenabled = false\n")) as remit:
        row = (await rows(remit))["edit_doc"]
        assert (row.state, row.source, row.findings[0].code) == ("not loaded", "settings", "unknown_skill")
        assert "edit_docs" in row.why
        with pytest.raises(NotFoundError) as caught:
            await remit.service.skills.view("edit_doc")
        assert caught.value.code is Code.SKILL_NOT_FOUND


# --- at a terminal, and over HTTP


@pytest.mark.slow
def test_at_a_terminal(project: Project) -> None:
    project.configure("[skills]\nfolders = ['skills']\n")
    assert project.here("skills", "new", "release-notes").out == "skills/release-notes/SKILL.md\n"
    again = project.here("skills", "new", "release-notes", "--json")
    assert (again.status, again.error["code"]) == (2, "USAGE")
    assert project.here("skills", "new", "Release Notes", "--json").error["code"] == "SKILL_INVALID"
    listed = {row["name"]: row for row in project.here("skills", "list", "--json").json}
    assert listed["release-notes"]["state"] == "enabled"
    assert "release-notes" in project.here("skills", "list").out
    shown = project.here("skills", "show", "release-notes", "--json").json
    assert shown["digest"].startswith("sha256:")
    assert "# release-notes" in project.here("skills", "show", "release-notes").out
    assert project.here("skills", "show", "nothing", "--json").error["code"] == "SKILL_NOT_FOUND"
    (unwritten,) = project.here("skills", "check", "--json").json
    assert (unwritten["code"], unwritten["fatal"]) == ("template", False)
    (project.folder / "bad").mkdir()
    (project.folder / "bad/SKILL.md").write_text("text")
    bad = project.here("skills", "check", "./bad", "--json")
    assert (bad.status, bad.json[0]["code"]) == (1, "front_matter")
    off = project.here("skills", "disable", "agent", "--reason", "later", "--json").json
    assert (off["state"], off["why"]) == ("disabled", "switched off by alice: later")
    refused = project.here("run", "agent", "--task", "x", "--json")
    assert refused.error["code"] == "SKILL_DISABLED"
    assert project.here("skills", "enable", "agent").out == "agent is enabled\n"


async def test_over_http(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "notes", tools="notes.read")
    async with opened(settings(tmp_path, {"say": "Done."})) as remit, serving(remit) as browser:
        listed: list[Any] = json.loads((await browser.get("/v1/skills")).text)
        assert {row["name"] for row in listed} == {*SHIPPED, "notes"}
        assert json.loads((await browser.get("/v1/skills/notes")).text)["tools"] == ["notes.read"]
        assert (await browser.get("/v1/skills/none")).status == 404
        async with browser.session.post(f"{browser.url}/v1/skills/notes/disable", json={"reason": "r"}) as answer:
            assert (await answer.json())["state"] == "disabled"
        body = {"recipe": "agent", "input": {"task": "x"}, "skills": ["notes"]}
        async with browser.session.post(f"{browser.url}/v1/jobs", json=body) as answer:
            assert (answer.status, (await answer.json())["error_code"]) == (403, "SKILL_DISABLED")
        async with browser.session.post(f"{browser.url}/v1/skills/notes/enable", json={}) as answer:
            assert answer.status == 200
        async with browser.session.post(f"{browser.url}/v1/jobs?wait=50", json=body) as answer:
            assert answer.status == 201
            assert (await answer.json())["state"] == "completed"
        async with RemoteRemit(browser.url) as remote:
            far = remote.service
            await far.skills.disable("notes")
            assert (await far.skills.view("notes")).why.startswith("switched off by")
            with pytest.raises(RemitError) as caught:
                await far.jobs.start_named("agent", {"task": "x"}, Options(skills=("notes",)))
            assert caught.value.code is Code.SKILL_DISABLED
            await far.skills.enable("notes")
            job = await far.jobs.start_named("agent", {"task": "x"}, Options(skills=("notes",)))
            assert list((await far.jobs.view(job)).skills or ()) == ["notes"]
