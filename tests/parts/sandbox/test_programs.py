"""Real programs under the filter and the limits as they come."""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.driver import Driver
from remit.parts.sandbox.scratch import scratch
from remit.process.enclosure import FolderMount, Spec, quiet
from tests.parts.sandbox.conftest import PYTHON

SCIENCE = Path(__file__).parents[3] / "build" / "peers-packages"
"""numpy, pandas and matplotlib; `make peers` installs them."""
pytestmark = pytest.mark.slow


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name, path="/usr/local/bin:/usr/bin") is None, reason=f"no {name} here")


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    made = BwrapDriver()
    yield made
    await made.close()


@pytest.fixture
def work() -> Iterator[Path]:
    with scratch() as place:
        yield place


async def run(driver: Driver, work: Path, *argv: str, packages: Path | None = None) -> str:
    """What a program that succeeds says."""
    mounts = () if packages is None else (FolderMount(packages, "/packages/python"),)
    env = {"PYTHONPATH": "/packages/python"} if packages is not None else {}
    spec = Spec(id="program", argv=argv, workspace=work, env={**env, "MPLCONFIGDIR": "/tmp/x"}, mounts=mounts)
    found = await driver.exec(spec, quiet)
    assert (found.status, found.stderr.data) == ("SUCCEEDED", b""), found
    return found.stdout.data.decode()


async def test_processes_share_work_by_a_pool_locks_queues_and_shared_memory(driver: Driver, work: Path) -> None:
    code = """
import multiprocessing as mp
from multiprocessing import shared_memory

def square(x):
    return x * x

def write(name, lock, queue):
    with lock:
        part = shared_memory.SharedMemory(name=name)
        part.buf[0] += 1
        part.close()
    queue.put(1)

if __name__ == "__main__":
    with mp.Pool(3) as pool:
        print(sum(pool.map(square, range(100))))
    part = shared_memory.SharedMemory(create=True, size=8)
    lock, queue = mp.Lock(), mp.Queue()
    made = [mp.Process(target=write, args=(part.name, lock, queue)) for _ in range(3)]
    [one.start() for one in made]
    print(sum(queue.get() for _ in made))
    [one.join() for one in made]
    print(part.buf[0])
    part.close()
    part.unlink()
"""
    (work / "main.py").write_text(code)
    assert await run(driver, work, PYTHON, "main.py") == "328350\n3\n3\n"


async def test_threads_subprocesses_databases_and_event_loops_work(driver: Driver, work: Path) -> None:
    code = """
import asyncio, concurrent.futures as cf, sqlite3, subprocess, tempfile, zoneinfo, ssl, ctypes, mmap
print(sum(cf.ThreadPoolExecutor(8).map(len, ["x"] * 50)))
print(subprocess.run(["sh", "-c", "echo out; exit 0"], capture_output=True, text=True, check=True).stdout, end="")
base = sqlite3.connect("base.db")
base.execute("pragma journal_mode=wal")
base.execute("create table t(x)"); base.execute("insert into t values (7)"); base.commit()
print(base.execute("select x from t").fetchone()[0])
with tempfile.TemporaryFile() as file:
    file.write(b"12345"); file.flush()
    print(len(mmap.mmap(file.fileno(), 0)))
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print((await process.communicate(b"piped\\n"))[0].decode(), end="")
asyncio.run(main())
"""
    assert await run(driver, work, PYTHON, "-c", code) == "50\nout\n7\n5\npiped\n"


@needs("git")
async def test_git_makes_a_repository_with_a_branch_and_a_merge(driver: Driver, work: Path) -> None:
    script = """set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main . && echo 1 > one && git add one && git commit -q -m first
git checkout -q -b side && echo 2 > two && git add two && git commit -q -m second
git checkout -q main && git merge -q --no-ff -m merged side && git gc -q && git fsck --no-progress
git log --topo-order --format=%s && git clone -q . copy && ls copy
"""
    assert (await run(driver, work, "/bin/bash", "-c", script)).split() == ["merged", "second", "first", "one", "two"]


@needs("gcc")
async def test_gcc_compiles_links_and_its_program_runs(driver: Driver, work: Path) -> None:
    source = '#include <pthread.h>\n#include <stdio.h>\nvoid *f(void *x) { puts("thread"); return x; }\n'
    (work / "main.c").write_text(
        source + "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }\n"
    )
    found = await run(driver, work, "/bin/bash", "-c", "gcc -O2 -o main main.c -lpthread -lm && ./main")
    assert found == "thread\n"


@needs("node")
async def test_node_runs_workers_children_files_and_webassembly(driver: Driver, work: Path) -> None:
    code = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage(6 * 7); return; }
const fs = require('fs'), { execFileSync } = require('child_process');
fs.writeFileSync('made.txt', 'made');
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
console.log(WebAssembly.validate(bytes), fs.readFileSync('made.txt', 'utf8'));
console.log(execFileSync('echo', ['child']).toString().trim());
new Worker(__filename).on('message', (got) => console.log(got));
"""
    (work / "main.js").write_text(code)
    assert await run(driver, work, "/usr/bin/node", "main.js") == "true made\nchild\n42\n"


def packages() -> Path:
    names = SCIENCE.glob("numpy/_core/_multiarray_umath.cpython-*.so")
    if not any(f"cpython-{sys.version_info[0]}{sys.version_info[1]}-" in path.name for path in names):
        pytest.skip("`make peers` installs numpy, pandas and matplotlib")
    return SCIENCE


PLOT = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

x = np.linspace(0, 6, 100)
frame = pd.DataFrame({"x": x, "y": np.sin(x)})
print(frame.groupby(frame.x.astype(int)).y.mean().round(2).tolist()[:2], float(np.linalg.det(np.eye(400))))
plt.plot(frame.x, frame.y)
plt.savefig("wave.png", dpi=50)
"""


async def test_numpy_pandas_and_matplotlib_compute_and_draw(driver: Driver, work: Path) -> None:
    assert await run(driver, work, PYTHON, "-c", PLOT, packages=packages()) == "[0.45, 0.96] 1.0\n"
    data = (work / "wave.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (320, 240)
