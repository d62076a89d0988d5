"""Settings in, a working runtime out."""

from __future__ import annotations

from pathlib import Path

import pytest

import remit
from remit.codes import Code
from remit.errors import SettingsError, UsageError
from tests.opened import OpenRemit


async def test_the_catalog_holds_what_is_built_in(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        names = {tool.name for tool in await remit.service.tools.views()}
        assert {"fs.read", "fs.write", "folder.search", "folder.read"} <= names
        assert remit.runtime.services.catalog.failures == {}


async def test_of_parts_that_are_named_alone_there_are_tools(remit_in: OpenRemit) -> None:
    async with remit_in(flags={"tools.only": ["folder"]}) as remit:
        names = {tool.name for tool in await remit.service.tools.views()}
        assert "folder.search" in names
        assert "fs.read" not in names


async def test_a_part_that_there_is_not_cannot_be_named_alone(remit_in: OpenRemit) -> None:
    with pytest.raises(SettingsError, match=r"tools\.only") as raised:
        async with remit_in(flags={"tools.only": ["fodler"]}) as remit:
            await remit.service.tools.views()
    assert "folder" in raised.value.remedy


async def test_modules_named_in_the_settings_bring_tools_and_recipes(remit_in: OpenRemit, tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text(
        "from remit import Run, recipe, tool\n"
        "@tool('mine.twice', level='L0')\n"
        "async def twice(n: int) -> int:\n    return 2 * n\n"
        "@recipe('mine')\n"
        "async def mine(run: Run, n: int) -> int:\n    return (await run.call('mine.twice', {'n': n})).value\n"
    )
    async with remit_in(flags={"app.modules": [str(module)]}) as remit:
        job = await remit.service.jobs.start_named("mine", {"n": "21"})
        assert await remit.job(job) == 42


async def test_a_provider_made_at_the_top_of_such_a_module_is_one_of_the_process(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    module = tmp_path / "notes.py"
    module.write_text(
        "from remit.tools.stub import StubProvider\n"
        "from remit.tools.meta import ToolMeta\n"
        "notes = StubProvider([ToolMeta(name='notes.find', provider_id='notes')], provider_id='notes')\n"
    )
    async with remit_in(flags={"app.modules": [str(module)]}) as remit:
        tools = await remit.service.tools.views()
        assert [tool.provider_id for tool in tools if tool.name == "notes.find"] == ["notes"]


async def test_a_module_that_cannot_be_imported_is_named(remit_in: OpenRemit, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("\nimport nothing_of_this_name\n")
    with pytest.raises(UsageError, match=r"broken\.py:2 in <module>\): ModuleNotFoundError") as raised:
        async with remit_in(flags={"app.modules": [str(broken)]}):
            pass
    assert raised.value.code is Code.MODULE_UNLOADABLE


async def test_without_mcp_what_needs_it_is_not_ready(remit_in: OpenRemit) -> None:
    async with remit_in(flags={"tools.no_mcp": True}) as remit:
        snapshot = await remit.service.tools.readiness()
        assert snapshot.degraded
        assert snapshot.optional["mcp"].code == "DEP_UNAVAILABLE"


def test_faces_reach_the_parts_of_a_process_through_the_service_alone() -> None:
    """What a face needs is a noun of the service, or on Remit itself."""
    source = Path(remit.__file__).parent
    faces = [path for face in ("api", "cli", "mcp_server", "pages") for path in (source / face).rglob("*.py")]
    assert len(faces) > 100
    assert [str(path) for path in faces if "remit.runtime" in path.read_text(encoding="utf-8")] == []
