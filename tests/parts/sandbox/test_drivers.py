"""Every driver that works here keeps the promises of the port."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.container import Container, ContainerDriver, RunFiles
from remit.parts.sandbox.driver import Driver, Isolation, ProbeReport
from remit.parts.sandbox.identity import UserIdentity
from remit.process.enclosure import FolderMount, SandboxUnavailableError, Spec, quiet
from remit_testing.sandbox import DRIVER_CHECKS, Check, Trial
from tests.parts.sandbox.abuse.subjects import NAMES, containers, skip_untried
from tests.parts.sandbox.conftest import PYTHON

pytestmark = pytest.mark.slow

MARK = "remit-sandbox-1-2-3"


def trial(name: str) -> Trial:
    if name == "bwrap":
        return Trial(BwrapDriver(), (PYTHON,))
    return Trial(containers(name), ("python3",))


@pytest_asyncio.fixture(params=NAMES, scope="module", loop_scope="module")
async def tried(request: pytest.FixtureRequest) -> AsyncIterator[Trial]:
    skip_untried(request.param)
    made = trial(request.param)
    yield made
    await made.driver.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", DRIVER_CHECKS, ids=lambda check: check.__name__)
async def test_a_driver_keeps_the_promises_of_the_port(check: Check, tried: Trial) -> None:
    await check(tried)


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (ContainerDriver("/usr/bin/docker"), "image: sandbox.container_image names no image"),
        (ContainerDriver("/no/docker", "image"), "No such file"),
        (BwrapDriver("/no/bwrap"), "bwrap: /no/bwrap cannot be run"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_a_driver_that_cannot_isolate_names_the_check_and_a_remedy(driver: Driver, reason: str) -> None:
    found = await driver.probe()
    assert not found.usable
    assert reason in found.reasons[0]
    assert found.remedy
    with pytest.raises(SandboxUnavailableError, match=re.escape(reason)):
        await driver.exec(Spec(id="x", argv=("x",), workspace=Path("/")), quiet)


async def test_a_network_that_would_not_be_filtered_is_refused(tmp_path: Path) -> None:
    class Usable(ContainerDriver):
        async def look(self) -> ProbeReport:
            return ProbeReport(driver=self.name, version="1", level=Isolation.namespaces)

    with pytest.raises(SandboxUnavailableError, match="has no filtered network"):
        await Usable("/no/docker", "image").exec(
            Spec(id="x", argv=("x",), workspace=tmp_path, network=("a.example",)), quiet
        )


def test_a_container_gets_every_limit_and_no_more_than_it_needs() -> None:
    spec = Spec(
        id="r1",
        argv=("python3", "-c", "1"),
        workspace=Path("/w"),
        env={"A": "b"},
        mounts=(FolderMount(Path("/in"), "/inputs"), FolderMount(Path("/a,b:c"), "/x", writable=True)),
    )
    files = RunFiles(Path("/f"), b"{}")
    words = Container(MARK, "docker", "image", "runsc").run(spec, UserIdentity(7, 7), files)
    line = " ".join(words)
    for part in (
        f"docker run --name {MARK}-r1 --interactive --network none --read-only --cap-drop ALL",
        "--security-opt no-new-privileges",
        "--security-opt seccomp=/f/seccomp.json",
        "--pull never",
        "--runtime runsc --user 7:7 --memory 1073741824 --memory-swap 1073741824",
        "--ulimit nofile=1024:1024",
        "--workdir /workspace --mount type=bind,source=/w,target=/workspace ",
        "--mount type=bind,source=/f/resolv.conf,target=/etc/resolv.conf,readonly",
        "--mount type=bind,source=/in,target=/inputs,readonly",
        '--mount type=bind,"source=/a,b:c",target=/x ',
        "--shm-size 67108864",
        "--env-file /f/variables --entrypoint python3 image -c 1",
    ):
        assert part in line
    assert "--privileged" not in line
    assert "A=b" not in line
    assert Container(MARK, "docker", "image").remove("r1") == ["docker", "rm", "--force", f"{MARK}-r1"]
    assert "--userns keep-id" in " ".join(Container(MARK, "podman", "image").run(spec, UserIdentity(), files))
    assert "seccomp=" not in " ".join(
        Container(MARK, "podman", "i").run(spec, UserIdentity(), RunFiles(Path("/f"), b""))
    )


def test_variables_of_a_container_lie_in_a_file_that_only_we_can_read(tmp_path: Path) -> None:
    files = RunFiles(tmp_path, b"{}")
    files.write({"A": "b = 'c' # d ", "EMPTY": "", "WIDE": "\u00e4"})
    assert files.variables.read_bytes() == "A=b = 'c' # d \nEMPTY=\nWIDE=\u00e4\n".encode()
    assert [path.stat().st_mode & 0o777 for path in (files.variables, tmp_path / "seccomp.json")] == [0o600, 0o600]
    assert files.resolver.read_bytes() == b""


@pytest.mark.parametrize("value", ["two\nlines", "a\rreturn", "nul\0", "x" * 70_000, "\udcff"], ids=repr)
def test_a_variable_that_such_a_file_cannot_hold_is_refused_by_its_name(value: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="no variable like SOME"):
        RunFiles(tmp_path, b"").write({"SOME": value})
    assert list(tmp_path.iterdir()) == []


CLI = """#!{python}
import subprocess, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
if words[0] == "run":
    open("oom", "w").close()  # as podman's monitor does
if words[0] == "version":
    print("9.9.9")
elif words[0] == "run":
    sys.stderr.write({says!r})
    entry = words.index("--entrypoint")
    sys.exit(subprocess.call([words[entry + 1], *words[entry + 3:]]))
"""


async def test_a_container_is_deleted_however_its_program_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    program = tmp_path / "docker"
    log = tmp_path / "log"
    program.write_text(CLI.format(python=sys.executable, log=str(log), says=""))
    program.chmod(0o755)
    driver = ContainerDriver(str(program), "image", "runsc")
    found = await driver.probe()
    assert (found.level.name, found.version) == ("kernel", "9.9.9")
    spec = Spec(id="r2", argv=("/bin/sh", "-c", "echo hello; exit 4"), workspace=tmp_path)
    execution = await driver.exec(spec, quiet)
    assert (execution.status, execution.exit_code, execution.stdout.data) == ("FAILED", 4, b"hello\n")
    assert log.read_text().splitlines()[-1] == f"rm --force {cleanup_process().mark}-r2"
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("says", "reason", "remedy"),
    [
        ("Resource limits are not supported and ignored on cgroups V1 rootless systems", "limits: ", "version 2"),
        ("crun: cgroups in hybrid mode not supported", "run: ", 'container_runtime = "runc"'),
        ("Error: some-image: image not known", "run: ", "docker pull some-image"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "run: ", "systemctl start docker"),
        ('Error: default OCI runtime "crun" not found: invalid argument', "run: ", "Install that runtime"),
        ("Error response from daemon: Unknown runtime specified runsc.", "run: ", "Install that runtime"),
        ("something else", "run: ", "docker run --rm some-image"),
    ],
)
async def test_a_service_that_says_no_is_met_with_a_remedy(says: str, reason: str, remedy: str, tmp_path: Path) -> None:
    program = tmp_path / "docker"
    text = CLI.format(python=sys.executable, log=str(tmp_path / "log"), says=says)
    ignored = reason.startswith("limits")
    program.write_text(text if ignored else text.replace("sys.exit(", "sys.exit(125 or "))
    program.chmod(0o755)
    found = await ContainerDriver(str(program), "some-image").probe()
    assert not found.usable
    assert found.reasons[0].startswith(reason)
    assert remedy in found.remedy
