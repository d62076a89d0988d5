"""Running code: through the driver beside the bare command line, started ahead or not, many at once; and peers."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.lab import LLM_SANDBOX, ROOT, Lab
from bench.measure import Mark, Peer, PeerMissingError, Reading, Result, Sample, Watch, against
from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.bwrap.program import find
from remit.parts.sandbox.bwrap.run import FILES, Descriptors, command, environment
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.identity import identity
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Sandbox, SandboxRequest
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.seccomp import encoded
from remit.parts.sandbox.workspaces import Workspaces
from remit.process.enclosure import Spec, quiet

RUNS, AT_ONCE, CONVERSATIONS = 20, 8, 12
PYTHON = "/usr/bin/python3"
ARGV = (PYTHON, "-c", "pass")
_SETTINGS: dict[str, dict[str, list[str]]] = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
}


def _spec(work: Path, number: int = 0) -> Spec:
    return Spec(id=f"bench{number}", argv=ARGV, workspace=work)


async def _bare(work: Path) -> None:
    """The very command line of the driver, started and awaited: nothing is limited, watched or kept."""

    def memory(content: bytes) -> int:
        fd = os.memfd_create("bench")
        os.pwrite(fd, content, 0)
        return fd

    spec, (begin, end) = _spec(work), os.pipe()
    os.write(end, b"x")
    status = os.open(os.devnull, os.O_WRONLY)
    files = tuple(memory(content) for content in FILES.values())
    fds = Descriptors(status, begin, memory(encoded(platform.machine())), memory(environment(spec)), files)
    passed = [fds.status, fds.block, fds.filter, fds.environment, *fds.files]
    who = identity()
    process = await asyncio.create_subprocess_exec(
        *command("bench", spec, fds),
        executable=find().path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=passed,
        env={},
        user=who.uid,
        group=who.gid,
    )
    for fd in (*passed, end):
        os.close(fd)
    _, output = await process.communicate()
    assert process.returncode == 0, output


@asynccontextmanager
async def _driven() -> AsyncIterator[tuple[BwrapDriver, Path]]:
    driver = BwrapDriver()
    with scratch() as work:
        await driver.exec(_spec(work), quiet)
        yield driver, work
        await driver.close()


async def sandboxed(lab: Lab) -> list[Result]:
    """`python -c pass`, one after another."""

    async def sample() -> Reading:
        async with _driven() as (driver, work):
            watch = Watch()
            for _ in range(RUNS):
                assert (await driver.exec(_spec(work), quiet)).status == "SUCCEEDED"
            return watch.millis(RUNS)

    async def floor() -> Reading:
        with scratch() as work:
            await _bare(work)
            watch = Watch()
            for _ in range(RUNS):
                await _bare(work)
            return watch.millis(RUNS)

    peers = [Peer("srt", _srt(lab.folder)), *map(_each, lab.rival(LLM_SANDBOX, "python", None))] if lab.peers else []
    note = "floor: the bare bwrap command line"
    return await against("sandbox: python -c pass", "ms", sample, floor, note, mark=Mark(1.25, "floor"), peers=peers)


async def sandboxed_at_once(_lab: Lab) -> list[Result]:
    """The same, eight at once."""

    async def sample() -> Reading:
        async with _driven() as (driver, work):
            watch = Watch()
            for _ in range(RUNS // 4):
                await asyncio.gather(*(driver.exec(_spec(work, number), quiet) for number in range(AT_ONCE)))
            return watch.rate(RUNS // 4 * AT_ONCE)

    async def floor() -> Reading:
        async with _driven() as (driver, work):
            watch = Watch()
            for _ in range(RUNS):
                await driver.exec(_spec(work), quiet)
            return watch.rate(RUNS)

    note = "floor: one after another; at most as many times faster as there are cores"
    return await against("sandbox: eight at once", "per second", sample, floor, note)


async def sandboxed_warm(_lab: Lab) -> list[Result]:
    """A script in a workspace of its own, in a sandbox that was started ahead."""

    async def ran(warm: int) -> Reading:
        with scratch() as folder:
            folder.chmod(0o711)
            driver = BwrapDriver("", warm, folder / "warm")
            sandbox = Sandbox(driver, SandboxPolicy(), Commands(("python",)), Workspaces(folder))
            spent = cpu = 0.0
            for number in range(CONVERSATIONS + 1):
                name = f"job/{number}"
                await sandbox.write(name, [("main.py", b"pass")])
                await _at_rest(driver)
                watch = Watch()
                ended = await sandbox.run(SandboxRequest(conversation=name, key="1", command=("python", "main.py")))
                taken = watch.millis(1)
                assert ended.execution.status == "SUCCEEDED"
                if number:  # the first finds none that was started ahead
                    spent, cpu = spent + taken.value, cpu + (taken.cpu_us or 0)
            await sandbox.driver.close()
            return Reading(spent / CONVERSATIONS, cpu / CONVERSATIONS)

    note = "floor: the same, not started ahead"
    return await against("sandbox: started ahead", "ms", lambda: ran(2), lambda: ran(0), note, mark=Mark(0.5, "floor"))


async def _at_rest(driver: BwrapDriver) -> None:
    """Wait until what is to be started ahead is."""
    if driver.pool is not None:
        await driver.pool.filled()


def _each(peer: Peer) -> Peer:
    """A peer that counts runs per second, by the milliseconds of each."""

    async def sample() -> Reading:
        reading = await peer.sample()
        return Reading(1_000 / reading.value, reading.cpu_us)

    return peer._replace(sample=sample)


def _srt(folder: Path) -> Sample:
    """Anthropic's sandbox runtime, with the same bwrap."""

    async def sample() -> Reading:
        program = ROOT / "build/peers/node_modules/.bin/srt"
        missing = [name for name in ("bwrap", "socat", "rg", "node") if shutil.which(name) is None]
        if not program.exists() or missing:
            raise PeerMissingError(f"it needs {', '.join(missing)}" if missing else "make bench PEERS=1 installs it")
        settings = folder / "srt.json"
        settings.write_bytes(msgspec.json.encode(_SETTINGS))
        watch = Watch()
        for _ in range(RUNS // 4):
            process = await asyncio.create_subprocess_exec(
                str(program), "--settings", str(settings), "-c", f"{PYTHON} -c pass", stdin=asyncio.subprocess.DEVNULL
            )
            assert await process.wait() == 0
        return watch.millis(RUNS // 4)

    return sample
