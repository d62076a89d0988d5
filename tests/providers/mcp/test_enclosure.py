"""MCP servers that people use, in the sandbox: they work, and see only what they were given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from remit.errors import ProviderError
from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.enclosure import SandboxEnclosures
from remit.parts.sandbox.identity import reachable
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Sandbox
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces
from remit.process.enclosure import SandboxTerms
from remit.providers.mcp.enclosure import launch_of
from remit.providers.mcp.provider import McpProvider
from remit.settings.mcp import McpServer
from remit_testing.providers import call_context
from tests.peers import servers
from tests.providers.mcp.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PYTHON: Final = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as work:
        work.chmod(0o777)
        yield work


@pytest.fixture
async def enclosures(folder: Path) -> AsyncIterator[SandboxEnclosures]:
    """Programs in the driver bwrap, with their homes beside the test's own folder."""
    finder = Commands(())
    made = SandboxEnclosures(Sandbox(BwrapDriver(), SandboxPolicy(), finder, Workspaces(folder)), finder, folder.parent)
    yield made
    await made.close()


def served(mcp: World, enclosures: SandboxEnclosures, command: list[str], **given: Any) -> McpProvider:
    env = given.pop("env", {})
    server = mcp.server(
        command=tuple(command), cwd="/", level="L0", env=env, sandbox=SandboxTerms(**given) if given else True
    )
    return mcp.provider(server, launch=launch_of(server, lambda: enclosures))


async def call(provider: McpProvider, tool: str, args: dict[str, Any]) -> str:
    names = {meta.definition["name"]: meta.name for meta in await provider.list_tools() if meta.definition}
    return str((await provider.invoke(names[tool], args, call_context())).value)


def command_lines() -> str:
    return subprocess.run(["/usr/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def python_peer(name: str) -> tuple[list[str], str]:
    """A server of PyPI under a Python that every user can run, and the folder of its packages."""
    command = servers.time() if name == "time" else servers.git(Path("/"))
    packages = Path(command[0]).parents[1] / "lib" / Path(PYTHON).name / "site-packages"
    if not Path(PYTHON).exists() or not packages.exists():
        pytest.skip(f"there is no {PYTHON} for all users")
    return [PYTHON, "-m", f"mcp_server_{name}"], str(packages.resolve())


async def test_a_server_of_npm_reads_its_root_and_nothing_else(
    enclosures: SandboxEnclosures, mcp: World, folder: Path
) -> None:
    (folder / "here.txt").write_text("hello from here")
    (folder.parent / "secret.txt").write_text("not for servers")
    command = servers.filesystem(folder)
    command.append(str(folder.parent))  # it may, if the server had its way
    provider = served(mcp, enclosures, command, roots=(str(folder),))
    assert "hello from here" in await call(provider, "read_text_file", {"path": str(folder / "here.txt")})
    beside = {"path": str(folder.parent / "secret.txt")}
    with pytest.raises(ProviderError, match=r"ENOENT|no such file"):
        await call(provider, "read_text_file", beside)
    with pytest.raises(ProviderError, match=r"EROFS|read-only"):
        await call(provider, "write_file", {"path": str(folder / "new.txt"), "content": "x"})
    assert not (folder / "new.txt").exists()


async def test_a_server_of_npm_changes_what_it_may_change(
    enclosures: SandboxEnclosures, mcp: World, folder: Path
) -> None:
    provider = served(mcp, enclosures, servers.filesystem(folder), writable=(str(folder),))
    await call(provider, "write_file", {"path": str(folder / "new.txt"), "content": "written"})
    assert (folder / "new.txt").read_text() == "written"


async def test_a_server_of_pypi_works(enclosures: SandboxEnclosures, mcp: World) -> None:
    command, packages = python_peer("time")
    words = [*command, "--local-timezone", "UTC"]
    provider = served(mcp, enclosures, words, roots=(packages,), env={"PYTHONPATH": packages})
    assert "UTC" in await call(provider, "get_current_time", {"timezone": "UTC"})


async def test_a_server_has_its_own_environment_and_none_of_ours(
    enclosures: SandboxEnclosures, mcp: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_TEST_SECRET", "swordfish")
    provider = served(mcp, enclosures, servers.everything(), env={"TOKEN": "its own"})
    await provider.list_tools()
    process = (await provider._supervisor.connection()).process
    assert process is not None
    seen = await call(provider, "get-env", {})
    assert "swordfish" not in seen
    assert "its own" in seen
    assert "'HOME': '/workspace'" in seen or '"HOME": "/workspace"' in seen
    assert "its own" not in command_lines()


async def test_a_server_that_dies_is_started_again_in_its_sandbox(enclosures: SandboxEnclosures, mcp: World) -> None:
    provider = served(mcp, enclosures, servers.everything())
    assert "hello" in await call(provider, "echo", {"message": "hello"})
    process = (await provider._supervisor.connection()).process
    assert process is not None
    mcp.clock.advance(100)
    process._signal(9)  # type: ignore[arg-type]
    await process._gone.wait()
    assert "again" in await call(provider, "echo", {"message": "again"})


async def test_what_it_says_on_stderr_and_how_it_ended_is_told(enclosures: SandboxEnclosures, mcp: World) -> None:
    provider = served(mcp, enclosures, ["/bin/sh", "-c", "echo no luck today >&2; exit 3"])
    with pytest.raises(ProviderError, match="exit code 3; it last wrote: no luck today"):
        await provider.list_tools()


async def test_it_is_never_started_without_the_sandbox(mcp: World, folder: Path) -> None:
    finder = Commands(())
    driver = BwrapDriver(str(folder / "absent"))
    none = SandboxEnclosures(Sandbox(driver, SandboxPolicy(), finder, Workspaces(folder)), finder, folder.parent)
    provider = served(mcp, none, ["/bin/sh", "-c", f"touch {folder}/made"], writable=(str(folder),))
    with pytest.raises(ProviderError, match=r"absent cannot be run.*Install bubblewrap"):
        await provider.list_tools()
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"roots": ("/absent",)}, "/absent does not exist"),
        ({"roots": ("/",)}, "/ cannot be a root"),
        ({"roots": ("/proc/1",)}, "/proc/1 cannot be a root"),
        ({"limits": {"memory_bytes": 1 << 60}}, "limits.memory_bytes: .* is more than"),
        ({"limits": {"memry": 1}}, "limits.memry: there is no such limit"),
        ({"network": ("http://x",)}, "network: .* does not look like host"),
    ],
)
async def test_terms_that_make_no_sense_are_refused_in_words(
    mcp: World, enclosures: SandboxEnclosures, given: dict[str, Any], said: str
) -> None:
    provider = served(mcp, enclosures, ["/bin/sh", "-c", "exit"], **given)
    with pytest.raises(ProviderError, match=said):
        await provider.list_tools()


async def test_its_home_is_kept_from_run_to_run(enclosures: SandboxEnclosures, mcp: World, folder: Path) -> None:
    node, server = servers.memory(folder / "x")[2:]
    env = {"MEMORY_FILE_PATH": "/workspace/graph.jsonl"}
    made = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}
    first = served(mcp, enclosures, [node, server], env=env)
    await call(first, "create_entities", made)
    await first.close()
    second = served(mcp, enclosures, [node, server], env=env)
    assert "Ada" in await call(second, "read_graph", {})


def test_a_server_without_sandbox_is_launched_as_before(enclosures: SandboxEnclosures) -> None:
    assert launch_of(McpServer(name="x", command=("x",)), lambda: enclosures) is None
    assert launch_of(McpServer(name="x", url="https://x", sandbox=True), lambda: enclosures) is None


def test_the_interpreter_of_these_tests_is_found_with_all_it_needs(enclosures: SandboxEnclosures) -> None:
    found = Commands(()).locate("python3", Path("/"), str(Path(sys.executable).parent))
    assert Path(sys.prefix) in found.reads
    base = Path(sys.base_prefix)
    assert base.is_relative_to("/usr") or base in found.reads or not reachable(base)
    node = shutil.which("node", path=os.defpath)
    assert node is None or Commands(()).locate("node", Path("/"), os.defpath).reads == ()
