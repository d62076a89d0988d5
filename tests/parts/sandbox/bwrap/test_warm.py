"""A sandbox that was started ahead does what one that was not would do, is used once, and sees one conversation."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver, key_of
from remit.parts.sandbox.commands import Commands
from remit.parts.sandbox.policy import SandboxPolicy
from remit.parts.sandbox.sandbox import Ran, Sandbox, SandboxRequest
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.workspaces import Workspaces, recover, take_place
from remit.process.enclosure import INPUTS, FolderMount, ProgramRun, Spec

pytestmark = pytest.mark.slow

NAMES = ("python", "node", "bash")
SCRIPTS = {
    "what it is given": "import sys, os\nprint(sys.argv, os.environ['WORD'], sys.path[0], __name__, __file__)\n"
    "print(sorted(name for name in globals() if not name.startswith('__')), len(sys.orig_argv), sys.stdin.read())",
    "an error": "def f():\n    raise ValueError('x')\nf()",
    "a syntax error": "print(1)\nx = (",
    "its own hook": "import sys\nsys.excepthook = lambda *a: print('mine')\nraise ValueError",
    "an exit": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(7)",
    "a message as exit": "raise SystemExit('wrong')",
    "a pool": "import multiprocessing as mp\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    print(mp.Pool(2).map(f, [1, 2, 3]))",
    "spawned": "import multiprocessing as mp\ndef f(x): print(x, flush=True)\n"
    "if __name__ == '__main__':\n    mp.set_start_method('spawn')\n    p = mp.Process(target=f, args=(5,))\n"
    "    p.start()\n    p.join()",
    "a class of its own": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))), A.__module__)",
    "a signal": "import os\nos.kill(os.getpid(), 11)",
    "open files": "import os\nprint(sorted(os.listdir('/proc/self/fd')))",
    "a neighbour": "import beside\nprint(beside.WORD, open('/tmp/x', 'w').write('x'))",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as place:
        place.chmod(0o711)
        yield place


@pytest.fixture
async def pooled(folder: Path) -> AsyncIterator[BwrapDriver]:
    driver = BwrapDriver("", 2, folder / "warm")
    yield driver
    await driver.close()
    assert list((folder / "warm").iterdir()) == [] if (folder / "warm").exists() else True


def sandbox(driver: BwrapDriver, folder: Path) -> Sandbox:
    return Sandbox(driver, SandboxPolicy(commands=frozenset(NAMES)), Commands(NAMES), Workspaces(folder))


async def ready(driver: BwrapDriver) -> None:
    """Wait until whatever is to be started ahead is."""
    assert driver.pool is not None
    await driver.pool.filled()


async def ran(driver: BwrapDriver, place: Sandbox, name: str, *command: str, key: str = "k", stdin: bytes = b"") -> Ran:
    await ready(driver)
    asked = SandboxRequest(conversation=f"job/{name}", key=key, command=command, stdin=stdin, env={"WORD": "a b"})
    return await place.run(asked)


def waiting(driver: BwrapDriver) -> int:
    assert driver.pool is not None
    return len(driver.pool._waiting)


@pytest.mark.slow
@pytest.mark.parametrize("what", SCRIPTS)
async def test_a_script_finds_everything_as_it_would_be(what: str, pooled: BwrapDriver, folder: Path) -> None:
    files = [("main.py", SCRIPTS[what].encode()), ("beside.py", b"WORD = 'beside'")]
    warm, cold = sandbox(pooled, folder), sandbox(BwrapDriver(), folder / "cold")

    async def tried(place: Sandbox, driver: BwrapDriver, name: str) -> ProgramRun:
        await place.write(f"job/{name}", files)
        command = ("python", "main.py", "one", "two words")
        if driver is pooled:
            return (await ran(driver, place, name, *command, stdin=b"fed")).execution
        asked = SandboxRequest(conversation="job/x", key="k", command=command, stdin=b"fed", env={"WORD": "a b"})
        return (await place.run(asked)).execution

    expected = await tried(cold, cold.driver, "x")  # type: ignore[arg-type]
    await tried(warm, pooled, "first")
    await ready(pooled)
    assert waiting(pooled) == 1
    found = await tried(warm, pooled, "second")
    for one in ("status", "exit_code", "signal", "limit"):
        assert getattr(found, one) == getattr(expected, one)
    assert found.stdout.data == expected.stdout.data
    assert found.stderr.data == expected.stderr.data
    await cold.driver.close()


async def test_each_is_used_once_and_sees_one_conversation(pooled: BwrapDriver, folder: Path) -> None:
    place = sandbox(pooled, folder)
    code = b"import os\nprint(sorted(os.listdir('.')), os.path.exists('/tmp/left'))\n"
    code += b"open('/tmp/left', 'w').close(); open('made', 'a').write('x')"
    for name in ("one", "two", "three", "two"):
        await place.write(f"job/{name}", [("main.py", code), (f"of-{name}", b"")])
        found = await ran(pooled, place, name, "python", "main.py", key=os.urandom(4).hex())
        seen = found.execution.stdout.data.decode()
        others = {"one", "two", "three"} - {name}
        assert not any(f"of-{other}" in seen for other in others)
        assert seen.endswith("False\n")
        assert f"of-{name}" in seen
    assert (folder / "projects" / "job_two" / "work" / "made").read_text() == "xx"
    assert (folder / "projects" / "job_one" / "work" / "made").read_text() == "x"


async def test_what_changed_is_told_and_a_repetition_begins_anew(pooled: BwrapDriver, folder: Path) -> None:
    place = sandbox(pooled, folder)
    await place.write("job/a", [("main.py", b"print(open('log', 'a+').write('x')); print(open('log').read())")])
    await ran(pooled, place, "a", "python", "main.py", key="first")
    second = await ran(pooled, place, "a", "python", "main.py", key="second")
    assert (second.execution.stdout.data, [one.path for one in second.files]) == (b"1\nxx\n", ["log"])
    again = await ran(pooled, place, "a", "python", "main.py", key="second")
    assert (again.execution.stdout.data, again.restored) == (b"1\nxx\n", True)


async def test_limits_hold_as_for_any_other(pooled: BwrapDriver, folder: Path) -> None:
    place = sandbox(pooled, folder)
    await place.write("job/a", [("main.py", b"print('begun', flush=True)\nwhile True: pass")])
    asked = SandboxRequest(
        conversation="job/a", key="1", command=("python", "main.py"), layers=({"limits": {"wall_ms": 300}},)
    )
    for _ in range(2):
        await ready(pooled)
        found = (await place.run(asked)).execution
        assert (found.status, found.limit, found.stdout.data) == ("TIMEOUT", "wall_ms", b"begun\n")
    flood = SandboxRequest(
        conversation="job/a", key="2", command=("python", "main.py"), layers=({"limits": {"stdout_bytes": 3}},)
    )
    await place.write("job/a", [("main.py", b"while True: print('x' * 1000)")])
    await ready(pooled)
    found = (await place.run(flood)).execution
    assert (found.limit, found.stdout.data) == ("stdout_bytes", b"xxx")


async def test_other_limits_need_another_sandbox(pooled: BwrapDriver, folder: Path) -> None:
    place = sandbox(pooled, folder)
    await place.write("job/a", [("main.py", b"import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])")])
    await ran(pooled, place, "a", "python", "main.py")
    await ready(pooled)
    asked = SandboxRequest(
        conversation="job/a", key="2", command=("python", "main.py"), layers=({"limits": {"descriptors": 64}},)
    )
    assert (await place.run(asked)).execution.stdout.data == b"64\n"


@pytest.mark.slow
async def test_node_runs_as_it_would(pooled: BwrapDriver, folder: Path) -> None:
    if not Path("/usr/bin/node").exists():
        pytest.skip("no node here")
    place = sandbox(pooled, folder)
    code = "console.log(process.argv, require.main === module, typeof fs, __filename, process.env.WORD);\n"
    code += "process.stdin.on('data', (d) => console.log(String(d)));"
    await place.write("job/a", [("main.js", code.encode())])
    cold = await ran(pooled, place, "a", "node", "main.js", "x y", key="1", stdin=b"fed")
    await ready(pooled)
    assert waiting(pooled) == 1
    warm = await ran(pooled, place, "a", "node", "main.js", "x y", key="2", stdin=b"fed")
    assert warm.execution.stdout.data == cold.execution.stdout.data
    assert warm.execution.stderr.data == b""


def test_only_scripts_are_started_ahead(folder: Path) -> None:
    work, inputs = folder / "work", folder / "inputs"
    work.mkdir()
    inputs.mkdir()

    def spec(*argv: str, network: tuple[str, ...] = ()) -> Spec:
        mounts = (FolderMount(inputs, INPUTS),)
        return Spec(id="x", argv=argv, workspace=work, mounts=mounts, network=network)

    assert key_of(spec("/usr/bin/python3", "main.py")) is not None
    assert key_of(spec("/usr/bin/python3", "-c", "1")) is None
    assert key_of(spec("/bin/bash", "main.sh")) is None
    assert key_of(spec("/usr/bin/python3")) is None
    assert key_of(spec("/usr/bin/python3", "main.py", network=("a.example",))) is None
    (inputs / "given").touch()
    assert key_of(spec("/usr/bin/python3", "main.py")) is None


def test_a_workspace_whose_move_was_broken_off_is_whole_again(tmp_path: Path) -> None:
    work, fresh = tmp_path / "work", tmp_path / "fresh"
    for made in (work, fresh):
        made.mkdir()
    (work / "a").write_text("a")
    (work / "b").write_text("b")
    take_place(fresh, work)
    assert sorted(path.name for path in work.iterdir()) == ["a", "b"]
    assert not fresh.exists()
    beside = tmp_path / "work.new"  # as if it had ended after the first of two files
    beside.mkdir()
    (work / "a").rename(beside / "a")
    recover(work)
    assert sorted(path.name for path in work.iterdir()) == ["a", "b"]
    assert not beside.exists()
    recover(work)
