"""Commands on a full disk and on read-only media, with real mounts: looking works, and what writes says why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Project
from tests.patience import PATIENCE_S

MOUNTS = ("unshare", "--map-root-user", "--mount")
LOOKS = ("jobs", "confirm", "show last", "verify", "audit", "export last -o {out}/last.zip", "usage", "replay last",
         "journal backup {out}/b.db --verify")  # fmt: skip
WRITES = ("run report --detach", "confirm {id} --deny", "worker", "resume last")
SCRIPT = r"""
import json, os, shutil, subprocess, sys
home, folder, out, state, commands = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", home], check=True)
shutil.copytree(folder, f"{home}/project")
os.chdir(f"{home}/project")
if state == "full":
    with open(f"{home}/filling", "wb", buffering=0) as filling:
        try:
            while True:
                filling.write(bytes(4096))
        except OSError:
            pass
else:
    subprocess.run(["mount", "-o", "remount,ro", home], check=True)
done = {}
for command in json.loads(commands):
    ended = subprocess.run([sys.executable, "-m", "remit", *command.split()], capture_output=True, text=True)
    done[command] = ended.returncode, ended.stderr
target = subprocess.run([sys.executable, "-m", "remit", "--journal", out + "/b.db", "journal", "backup",
                         home + "/c.db"], capture_output=True, text=True)
done["backup"] = target.returncode, target.stderr
json.dump([done, sorted(os.listdir(".remit")), sorted(os.listdir(home))], sys.stdout)
"""


def mounts() -> bool:
    try:
        return subprocess.run([*MOUNTS, "true"], capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.skipif(not mounts(), reason="this user may not make a mount namespace")
@pytest.mark.parametrize(("state", "code"), [("full", "JOURNAL_FULL"), ("read-only", "JOURNAL_READ_ONLY")])
def test_looking_works_and_what_writes_says_why_not(
    project: Project, tmp_path_factory: pytest.TempPathFactory, state: str, code: str
) -> None:
    project.job("report")
    project.job("notes", "--path", "a.txt")
    (question,) = project.here("confirm", "--json").json
    home, out = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("out")
    names = {"out": str(out), "id": question["confirmation"]}
    commands = [line.format(**names) for line in (*LOOKS, *WRITES)]
    environ = {**os.environ, **project.env, "COLUMNS": "400"}
    ended = subprocess.run(
        [*MOUNTS, sys.executable, "-c", SCRIPT, home, project.folder, out, state, json.dumps(commands)],
        env=environ, capture_output=True, text=True, timeout=PATIENCE_S * 10, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    done, beside, there = json.loads(ended.stdout)
    assert {line: done[line] for line in commands[: len(LOOKS)] if "error:" in done[line][1]} == {}
    refused = {
        line: (status, code in words) for line, (status, words) in done.items() if line in commands[len(LOOKS) :]
    }
    assert refused == dict.fromkeys(commands[len(LOOKS) :], (1, True))
    assert {"journal.db"} <= set(beside) <= {".gitignore", "journal.db", "journal.db-wal", "journal.db-shm"}
    status, words = done["backup"]
    assert (status, "c.db" in words or str(home) in words, code in words) == (1 if state == "full" else 2, True, False)
    assert [name for name in there if name.startswith("c.db")] == []
