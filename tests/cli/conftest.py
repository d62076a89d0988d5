"""A project folder with the sample module, and three ways to run the command there."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest

from remit.cli.root import run
from tests.cli.terminal import Terminal
from tests.dates import DATE_ENV
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
MODULE = Path(__file__).with_name("sample_module.py")


RISKY_MAY_RUN = """
[[policy.rules]]
id = "risky-may-run"
effect = "allow"
tools = ["risky.write"]
"""


class ProjectProcess(subprocess.Popen[str]):
    """A command that runs: its block waits for its end, and ends it where the test fails, as nothing else would."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if error is not None:
            self.kill()
        super().__exit__(kind, error, frames)


class Finished(NamedTuple):
    """What a command came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as the one JSON value that it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Its stderr as the one JSON value that it must be."""
        return json.loads(self.err)


def run_here(
    patch: pytest.MonkeyPatch,
    captured: pytest.CaptureFixture[str],
    folder: Path,
    env: Mapping[str, str],
    *words: str,
    stdin: str = "",
) -> Finished:
    """Run a command in a folder, in this process; what it imported of the folder is forgotten, as a process would."""
    for name in [name for name in os.environ if name.startswith("REMIT_") or name in {"NO_COLOR", "FORCE_COLOR"}]:
        patch.delenv(name)
    for name, value in env.items():
        patch.setenv(name, value)
    patch.chdir(folder)
    patch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")), encoding="utf-8")
    )
    captured.readouterr()
    patch.setattr(sys, "dont_write_bytecode", True)  # two versions within a second look alike to that cache
    status = run(list(words))
    within = f"{folder}/"
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(within):
            del sys.modules[name]
    return Finished(status, *captured.readouterr())


class Project:
    """A folder with a remit.toml."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._captured = captured
        self.env = {
            **DATE_ENV,
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONWARNINGS": "error",
            "LANG": "C.UTF-8",
            "REMIT_PRINCIPAL": "alice",
            "REMIT_TRUST": "1",
        }
        self.configure()

    def configure(self, more: str = "", *, modules: bool = True) -> None:
        """Write remit.toml again."""
        app = f'[app]\nmodules = ["{MODULE}"]\n{RISKY_MAY_RUN}' if modules else ""
        (self.folder / "remit.toml").write_text(app + more, encoding="utf-8")

    def here(self, *words: str, stdin: str = "") -> Finished:
        """Run a command in this process: the fast way."""
        return run_here(self._monkeypatch, self._captured, self.folder, self.env, *words, stdin=stdin)

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> ProjectProcess:
        """Run a command as a process of its own, with pipes."""
        return ProjectProcess(
            self.command(*words),
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def apart(self, *words: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run a command as a process of its own, to its end."""
        with self.start(*words, env=env) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
            return Finished(process.returncode, out, err)

    def run_script(self, path: Path) -> Finished:
        """Run a script in the project."""
        done = subprocess.run([path], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        return Finished(done.returncode, done.stdout, done.stderr)

    def terminal(self, *words: str, columns: int = 100, env: Mapping[str, str] | None = None) -> Terminal:
        """Run a command at a pseudo-terminal."""
        return Terminal(self.command(*words), cwd=self.folder, env={**self.env, **(env or {})}, columns=columns)

    def command(self, *words: str) -> list[str]:
        """The command line of a process."""
        return [sys.executable, "-m", "remit", *words]

    def job(self, *words: str) -> str:
        """Run a job in this process, however it is left; its id."""
        job: str = self.here("run", *words, "--json").json["job"]
        return job


def hiding(modules: str, *words: str) -> list[str]:
    """Return the command `remit mcp` as it is where these modules are not installed."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({modules.split()!r}))\n"
    return [sys.executable, "-c", f"{hidden}from remit.cli.root import run; sys.exit(run(['mcp', *{words!r}]))"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Project]:
    """A project in a folder of the test's own; what commands do to this process's logging is undone."""
    logger = logging.getLogger("remit")
    kept = (list(logger.handlers), logger.level, logger.propagate)
    yield Project(tmp_path, monkeypatch, capsys)
    logger.handlers[:], logger.level, logger.propagate = kept


def lines_until(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> list[str]:
    """Read a process's stderr up to a line; a process that does not write it is killed when the test's time is over."""
    found = []
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found.append(line)
            if wanted(line):
                return found
    except BaseException:
        process.kill()  # who started it waits for its end
        raise
    msg = f"it ended before the line came: {found}"
    raise AssertionError(msg)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever starts the real command takes long: `make quick` leaves it out."""
    here = Path(__file__).parent
    for item in items:
        if "project" in getattr(item, "fixturenames", ()) and here in item.path.parents:
            item.add_marker(pytest.mark.slow)
