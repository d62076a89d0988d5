"""Commands are found where only the system puts programs, with packages that they can only read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remit.parts.sandbox.commands import Commands
from remit.process.enclosure import CommandMissingError, SandboxUnavailableError
from tests.parts.sandbox.conftest import Box


def test_no_search_path_has_a_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bash").write_text("#!/bin/sh\necho ours")
    (tmp_path / "bash").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(Commands(("bash",)).find("bash").program).resolve().is_relative_to("/usr")
    for name in ("../../tmp/x", str(tmp_path / "bash"), "no-such-program"):
        with pytest.raises(CommandMissingError, match="is not in"):
            Commands((name,)).find(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "package", "code"),
    [
        ("python", "mine.py", "X = 7", "import mine; print(mine.X)"),
        ("perl", "Mine.pm", "package Mine; sub x { 7 } 1;", "use Mine; print Mine::x(), qq(\n)"),
        ("node", "mine.js", "exports.x = 7", "console.log(require('mine').x)"),
        ("ruby", "mine.rb", "X = 7", "require 'mine'; puts X"),
    ],
)
async def test_packages_of_each_language_can_be_used_and_not_changed(
    name: str, file: str, package: str, code: str, box: Box, reachable: Path
) -> None:
    (reachable / file).write_text(package)
    try:
        found = Commands((name,), {name: reachable}).find(name)
    except CommandMissingError:
        pytest.skip(f"no {name} here")
    flag = "-c" if name == "python" else "-e"
    ran = await box(found.program, flag, code, env=dict(found.env), mounts=found.mounts)
    assert (ran.stdout.data, ran.stderr.data) == (b"7\n", b"")
    [mount] = found.mounts
    denied = await box("/bin/sh", "-c", f"echo changed > {mount.target}/{file}", mounts=found.mounts)
    assert b"Read-only file system" in denied.stderr.data
    assert (reachable / file).read_text() == package


def test_packages_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="packages of python does not exist") as error:
        Commands(("python",), {"python": tmp_path / "none"}).find("python")
    assert "sandbox.packages" in error.value.remedy


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user's programs run as that user")
def test_packages_that_the_sandbox_s_user_cannot_read_are_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(SandboxUnavailableError, match="cannot read the packages"):
        Commands(("python",), {"python": tmp_path}).find("python")
