"""A program is recorded in the sandbox, and replayed on a copy of its folder, which it sees at the recorded path.

A plain user runs it: root's sandbox is another user, whom root's folders are closed to.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.parts.hooks.test_fence import Place
from tests.parts.model_gateway.test_record import AGENT, answer, calls, provider, until
from tests.parts.sandbox.abuse.plain import plain_python
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
GOVERNED: Final = AGENT.with_name("governed_agent.py")
SLEEP: Final = "import time; time.sleep(600)"
ATTEMPTS: Final = {
    "hooks of git": "echo > .git/hooks/post-commit",
    "journal": "ls $SETTINGS",
    "another file": "cat $SECRET",
}


@pytest.fixture
def place() -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("it makes a plain user's home")
    with plain_python() as python, tempfile.TemporaryDirectory(prefix="f-", ignore_cleanup_errors=True) as folder:
        if python is None:
            pytest.skip("no Python here that a plain user could run")
        Path(folder).chmod(0o755)
        made = Place(Path(folder), python)
        shutil.copy(AGENT, made.folder / "bin" / "agent.py")
        made.env |= {"OPENAI_API_KEY": "provider-key", "SECRET": str(made.folder / "secret")}
        made.env |= {"SETTINGS": str(made.settings), "REMIT_JOURNAL_URL": str(made.settings / "journal.db")}
        yield made


def record(place: Place, *options: str, turns: int = 1) -> subprocess.CompletedProcess[str]:
    """Record the agent of these tests before a provider."""
    with provider(answer(turns=turns)) as server:
        place.env["OPENAI_BASE_URL"] = f"{server.url}/v1"
        return place.remit("record", *options, "--", "/usr/bin/python3", str(place.folder / "bin/agent.py"), "hi")


def running(folder: Path) -> bool:
    """Return whether the program that sleeps for a folder runs."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if place.read_bytes().endswith(f"\0{SLEEP}\0{folder}\0".encode()):
                return True
    return False


def shown(place: Place) -> dict[str, Any]:
    """Return the result of the last job."""
    result: dict[str, Any] = json.loads(place.remit("show", "last", "--json").stdout)["result"]
    return result


def test_a_program_is_recorded_in_the_sandbox_and_replayed_there(place: Place) -> None:
    place.env["REACH"] = "https://elsewhere.test/"
    done = record(place, "--sandbox")
    assert (done.returncode, done.stdout) == (0, "bye\n"), done.stderr
    result = shown(place)
    assert (result["requests"], result["tried"]) == (2, ["elsewhere.test:443"])
    assert [file["path"] for file in result["changed"]] == ["out.txt"]
    place.env.pop("REACH")
    again = place.remit("replay", "last", "--", "/usr/bin/python3", str(place.folder / "bin/agent.py"), "hi")
    assert (again.returncode, "2 of 2 recorded questions" in again.stdout) == (0, True), again.stderr + again.stdout


def test_in_the_sandbox_it_changes_its_project_and_nothing_that_decides(place: Place) -> None:
    lines = [f"if ({words}) 2>/dev/null; then echo '{name}'; fi" for name, words in ATTEMPTS.items()]
    place.agent("\n".join([*lines, "echo x > made.txt", "exit 5"]), name="program")
    place.own()
    done = place.remit("record", "--sandbox", "--", "program")
    assert (done.returncode, done.stdout) == (5, ""), done.stderr
    assert [file["path"] for file in shown(place)["changed"]] == ["made.txt"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--network", "a.example"), "USAGE"),
        (("--sandbox", "--open"), "USAGE"),
        (("--sandbox", "--read", "/no/such/path"), "does not exist"),
        (("--sandbox", "--read", "/proc"), "cannot be a root"),
    ],
)
def test_what_cannot_be_held_is_not_started(words: tuple[str, ...], code: str, place: Place) -> None:
    place.agent("echo started")
    done = place.remit("record", *words, "--", "claude")
    assert (code in done.stderr, done.stdout, done.returncode != 0) == (True, "", True), done.stderr


def test_a_replay_elsewhere_leaves_the_recorded_folder_alone(place: Place) -> None:
    record(place, turns=2)
    before = (place.project / "out.txt").read_text()
    copy = place.folder / "copy"
    copy.mkdir()
    place.own()
    recorded, place.project = place.project, copy
    agent = ("--", "/usr/bin/python3", str(place.folder / "bin/agent.py"), "hi")
    done = place.remit("replay", "last", *agent)
    assert (done.returncode, "3 of 3 recorded questions" in done.stdout) == (0, True), done.stderr + done.stdout
    assert (copy / "out.txt").read_text() == '{"x":1}'
    (recorded / "out.txt").write_text("as it was")
    (copy / "out.txt").unlink()
    with provider(answer("other", turns=2)) as server:
        place.env["OPENAI_BASE_URL"] = f"{server.url}/v1"
        fork = place.remit("replay", "last", "--fork-at", "3", *agent)
    assert (fork.returncode, fork.stdout, before) == (0, "other\n", '{"x":1}'), fork.stderr
    assert ((copy / "out.txt").read_text(), (recorded / "out.txt").read_text()) == ('{"x":1}', "as it was")


def test_a_governed_agent_in_the_sandbox_has_tools_from_outside(place: Place) -> None:
    """They are called out here, and answer from the record in a replay elsewhere, which holds another file."""
    shutil.copy(GOVERNED, place.folder / "bin" / "governed.py")
    place.agent(f'exec /usr/bin/python3 {place.folder}/bin/governed.py "$@"')
    (place.project / "note.txt").write_text("as it was")
    place.own()
    bin_ = ("--read", str(place.folder / "bin"))
    with provider(calls("fs__read", '{"path": "note.txt"}')) as server:
        place.env["OPENAI_BASE_URL"] = f"{server.url}/v1"
        done = place.remit("record", "--sandbox", "--governed", *bin_, "--", "claude", "-p", "hi")
    assert (done.returncode, done.stdout) == (0, "bye\n"), done.stderr
    assert (shown(place)["governed"], shown(place)["ungoverned"]) == (1, [])
    copy = place.folder / "copy"
    copy.mkdir()
    place.own()
    place.project = copy
    again = place.remit("replay", "last", "--results", "governed", "--", "claude", "-p", "hi")
    assert (again.returncode, "2 of 2 recorded questions" in again.stdout) == (0, True), again.stderr + again.stdout


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_program_in_the_sandbox_too(how: signal.Signals, place: Place) -> None:
    ready = place.project / "ready"
    os.mkfifo(ready, 0o666)
    place.agent(f"echo $$ > ready; exec /usr/bin/python3 -c '{SLEEP}' {place.project}", name="program")
    place.own()
    process = place.start("record", "--sandbox", "--", "program", stdin=subprocess.DEVNULL)
    assert ready.read_text().strip().isdecimal()
    until(lambda: running(place.project))
    process.send_signal(how)
    _, err = process.communicate(timeout=PATIENCE_S)
    until(lambda: not running(place.project))
    if how is signal.SIGKILL:
        assert process.returncode == -how
    else:
        assert (process.returncode, shown(place)["exit_code"]) == (137, 137), err
