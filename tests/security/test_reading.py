"""Files (reviews s02) and plans as callers (s04/W41): what an agent may not see, change or call itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.codes import Code
from remit.gateway.outcome import Outcome
from remit.jobs.plans.source import parse_plan
from remit.policy.rule import parse_rule
from tests.opened import OpenRemit, until_waiting

ALLOW = {"policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with notes, a module, Remit's own files and hidden ones."""
    for name in ("docs/a.txt", ".remit/cache/x", ".git/config", ".ssh/id_rsa", "tools.py", "pkg/mod.py", "remit.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("" if name == "remit.toml" else "# needle\n", encoding="utf-8")
    return tmp_path


NO_SECRETS = {"id": "no-secrets", "effect": "deny", "when": {"path": {"glob": ["secrets/**", "**/*.pem"]}}}
NO_SECRET_PATHS = parse_rule(NO_SECRETS, 1).when[0]


async def called(remit: Remit, tool: str, **args: Any) -> Outcome:
    return await remit.call(tool, args)


async def test_search_and_list_pass_over_what_belongs_to_remit(project: Path, remit_in: OpenRemit) -> None:  # F21, F22
    async with remit_in(flags=ALLOW) as remit:
        found = await called(remit, "fs.search", path=".", query="needle")
        assert found.ok
        assert "docs/a.txt" in [one["path"] for one in found.value["matches"]]
        assert not [one for one in found.value["matches"] if one["path"].startswith(".remit")]
        listed = await called(remit, "fs.list", path=".", recursive=True)
        assert not [one for one in listed.value["items"] if one["path"].startswith(".remit")]


@pytest.mark.parametrize("path", ["tools.py", "TOOLS.py", "pkg/mod.py", "pkg/new.py", "remit.toml"])
async def test_nothing_that_decides_is_written(project: Path, remit_in: OpenRemit, path: str) -> None:  # F24
    flags = {**ALLOW, "app.modules": ["tools.py", "pkg"]}
    (project / "pkg/__init__.py").write_text("", encoding="utf-8")
    async with remit_in(flags=flags) as remit:
        refused = await called(remit, "fs.write", path=path, content="import os")
        assert refused.cause == Code.PATH_NOT_ALLOWED.name
        assert (await called(remit, "fs.write", path="docs/b.txt", content="x")).ok


@pytest.mark.parametrize("path", ["log/j.db", "log/j.db-wal", "LOG/J.DB"])
async def test_the_journal_is_not_written_wherever_it_is(project: Path, remit_in: OpenRemit, path: str) -> None:
    (project / "log").mkdir()
    async with remit_in(flags={**ALLOW, "journal.url": str(project / "log/j.db")}) as remit:
        refused = await called(remit, "fs.write", path=path, content="")
        assert refused.cause == Code.PATH_NOT_ALLOWED.name
        assert (await called(remit, "fs.write", path="log/other", content="x")).ok


@pytest.mark.parametrize(
    "folder", [".git", ".remit", ".ssh", "docs/../.git", "~/.ssh", "/etc", "/proc/self", "/var/log"]
)
async def test_hidden_and_system_folders_are_not_read(
    project: Path, remit_in: OpenRemit, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # S01 to S06
    monkeypatch.setenv("HOME", str(project))
    async with remit_in(flags=ALLOW) as remit:
        for tool, more in (("folder.read", {"path": "config"}), ("folder.search", {"query": "needle"})):
            refused = await called(remit, tool, folder=folder, **more)
            assert not refused.ok
            assert refused.cause in {Code.PATH_NOT_ALLOWED.name, Code.FOLDER_NOT_FOUND.name}


async def test_a_hidden_root_that_the_operator_named_is_read(project: Path, remit_in: OpenRemit) -> None:
    async with remit_in(flags={**ALLOW, "fs.roots": [str(project / ".ssh")]}) as remit:
        assert (await called(remit, "folder.search", folder=str(project / ".ssh"), query="needle")).ok


@pytest.mark.parametrize(("callers", "writes"), [("job:*", False), ("job:triage", False), ("plan:triage", True)])
async def test_a_plan_has_no_recipe_s_rights_by_its_name(
    project: Path, remit_in: OpenRemit, callers: str, writes: bool
) -> None:  # W41
    rules = [{"id": "triage", "effect": "allow", "tools": ["fs.write"], "callers": [callers]}]
    plan = parse_plan(
        "version: taskgraph-v1\nname: triage\nnodes:\n"
        "  - {id: a, tool: fs.write, args: {path: out.txt, content: x}}\noutput: done\n"
    )
    async with remit_in(flags={"policy.rules": rules}) as remit:
        job = await remit.start_plan(plan)
        if writes:
            await remit.ended(job.id)
        else:
            await until_waiting(remit, job.id)
    assert (project / "out.txt").exists() == writes


@pytest.fixture
def guarded(project: Path, remit_in: OpenRemit) -> OpenRemit:
    """A project with secrets, and the rule of the documentation about them."""
    for name in ("secrets/key.txt", "docs/tls.pem", "docs/deep/secrets/n.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("needle of a key\n", encoding="utf-8")

    def opened(**said: Any) -> Any:
        return remit_in(flags={"policy.rules": [*ALLOW["policy.rules"], NO_SECRETS]}, **said)

    return opened


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("secrets", "key.txt"),
        ("./secrets/", "key.txt"),
        (".", "secrets/key.txt"),
        ("docs/../secrets", "key.txt"),
        ("SECRETS", "key.txt"),
        ("sec\u200brets", "key.txt"),
        ("docs", "tls.pem"),
        ("docs", "tls.pem::$DATA"),
    ],
)
async def test_a_rule_about_a_path_covers_a_folder_and_a_path(
    guarded: OpenRemit, folder: str, path: str
) -> None:  # S09
    async with guarded() as remit:
        refused = await called(remit, "folder.read", folder=folder, path=path)
        assert refused.code is Code.POLICY_DENIED
        assert (await called(remit, "folder.read", folder="docs", path="a.txt")).ok


async def test_a_rule_about_a_path_covers_a_folder_that_is_searched(guarded: OpenRemit) -> None:
    async with guarded() as remit:
        refused = await called(remit, "folder.search", folder="secrets", query="needle")
        assert refused.code is Code.POLICY_DENIED


@pytest.mark.parametrize(
    ("tool", "args", "items"),
    [
        ("fs.search", {"path": "", "query": "needle"}, "matches"),
        ("fs.search", {"path": ".", "query": "needle"}, "matches"),
        ("fs.list", {"path": "", "recursive": True}, "items"),
        ("fs.list", {"path": "docs"}, "items"),
        ("folder.search", {"folder": ".", "query": "needle of a key"}, "items"),
    ],
)
async def test_what_could_not_be_read_is_not_found_either(
    guarded: OpenRemit, tool: str, args: dict[str, Any], items: str
) -> None:  # S10, S13
    async with guarded() as remit:
        found = await called(remit, tool, **args)
        assert found.ok
        names = [one["path"] for one in found.value[items]]
        assert [name for name in names if "a.txt" in name]
        assert not [name for name in names if name.startswith("secrets") or name.endswith(".pem")]


async def test_what_would_be_asked_about_is_not_found_unasked(project: Path, remit_in: OpenRemit) -> None:
    rules = [
        {"id": "asked", "effect": "ask", "tools": ["fs.read"], "when": {"path": {"glob": "docs/**"}}},
        {"id": "tls", "effect": "deny", "tools": ["fs.read"], "when": {"path": {"glob": "pkg/**"}}},
    ]
    async with remit_in(flags={"policy.rules": rules}) as remit:
        found = await called(remit, "fs.search", query="needle")
        assert {one["path"] for one in found.value["matches"]} == {"tools.py", ".ssh/id_rsa"}


@pytest.mark.parametrize("text", ["DE\u200bLETE", "DE\0LETE", "DEL\u00adETE", "\u202eDELETE", "DELETE\ufe0f"])
def test_what_is_drawn_as_nothing_hides_no_word_from_a_rule_that_denies(text: str) -> None:  # P07b to P09
    constraint = parse_rule({"effect": "deny", "when": {"method": {"equals": "delete"}}}, 1).when[0]
    assert constraint.judge(wide=True)({"method": text}, None)


@pytest.mark.parametrize("text", ["secrets\0/x", "secrets/\u2060x", "secrets/x::$DATA", "sec\u034frets/x"])
def test_nor_a_path(text: str) -> None:
    assert NO_SECRET_PATHS.judge(wide=True)({"path": text}, None)


@pytest.mark.parametrize("text", ["docs/\u202ea.txt", "docs/a\u200b.txt", "docs/a.txt\ufeff"])
def test_and_a_rule_that_allows_does_not_know_such_a_path(text: str) -> None:  # P02
    constraint = parse_rule({"effect": "allow", "when": {"path": {"glob": "docs/**"}}}, 1).when[0]
    assert constraint.judge(wide=False)({"path": text}, None) is None


async def test_writing_settings_is_asked_about_and_an_approved_write_of_them_is_refused(
    project: Path, remit_in: OpenRemit
) -> None:  # F20
    async with remit_in(work=False) as remit:
        for path in ("remit.toml", "REMIT.toml", "./remit.toml", "docs/../remit.toml"):
            asked = await called(remit, "fs.write", path=path, content="x")
            if asked.confirmation:
                await remit.service.confirmations.decide(asked.confirmation, "approve", by="bob")
                asked = await called(remit, "fs.write", path=path, content="x")
            assert asked.code is not None
            assert not asked.ok
    assert (project / "remit.toml").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        pytest.param("~/.ssh", "id_rsa", id="S04"),
        pytest.param(".", ".env", id="S07"),
        pytest.param("docs", "../secrets/key.txt", id="S08"),
        pytest.param("out", "id_rsa", id="S14"),
        pytest.param("docs", "lnk.txt", id="S15"),
    ],
)
async def test_a_search_that_stays_in_the_roots_reads_nothing_else(
    project: Path, remit_in: OpenRemit, tmp_path_factory: pytest.TempPathFactory, folder: str, path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    home = tmp_path_factory.mktemp("home")
    for name in (home / ".ssh/id_rsa", project / ".env", project / "secrets/key.txt"):
        name.parent.mkdir(exist_ok=True)
        name.write_text("TOPSECRET", encoding="utf-8")
    (project / "out").symlink_to(home / ".ssh")
    (project / "docs/lnk.txt").symlink_to(project / "secrets/key.txt")
    monkeypatch.setenv("HOME", str(home))
    flags = {**ALLOW, "fs.search_anywhere": False, "fs.roots": [str(project)]}
    async with remit_in(flags=flags, work=False) as remit:
        refused = await called(remit, "folder.read", folder=folder, path=path)
    assert refused.cause == Code.PATH_NOT_ALLOWED.name
    assert "TOPSECRET" not in str(refused)


@pytest.mark.parametrize("path", ["docs/..", "docs/../secrets", ".", "", "./"])
async def test_no_spelling_of_the_root_finds_secrets(guarded: OpenRemit, path: str) -> None:  # S11, S12
    async with guarded(work=False) as remit:
        found = await called(remit, "fs.search", path=path, query="needle of a key")
    assert not found.ok or found.value["matches"] == [] or "key.txt" not in str(found.value)
    assert "secrets/key.txt" not in str(found.value)


async def test_the_words_of_a_folder_are_kept_where_others_cannot_look(project: Path, remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:  # S16
        assert (await called(remit, "folder.search", folder=".", query="needle")).ok
    index = [path for path in project.rglob("*") if path.is_file() and path.stat().st_size and ".db" in path.suffixes]
    assert index
    for path in index:
        private = [one for one in (path, *path.parents) if project in one.parents and not one.stat().st_mode & 0o077]
        assert private, path
