"""What the programs share: the command of their environment, a project in the current folder, a page of the web."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMANDS = Path(sys.executable).parent
PAGE = (
    "<!doctype html><title>Tides</title><main><h1>Tides</h1><p>The moon raises two tides a day, and the sun helps when "
    "it stands in line with the moon, which it does at full and at new moon.</p></main>"
)


def remit(*words: str, status: int = 0) -> str:
    """Run the command, and return what it printed."""
    ran = subprocess.run([COMMANDS / "remit", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == status, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


def told(*words: str, status: int = 0) -> Any:
    """Run the command with `--json`, and return what it told."""
    return json.loads(remit(*words, "--json", status=status))


def project(settings: str = "") -> None:
    """Make the project of the first day, with more settings."""
    remit("init", ".")
    if settings:
        with Path("remit.toml").open("a", encoding="utf-8") as file:
            file.write(settings)
        remit("trust", "--yes")


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command that lasts until the block ends."""
    command = [str(COMMANDS / "remit"), *words]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()


def address(process: subprocess.Popen[str]) -> str:
    """The first address that a command prints."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if match := re.search(r"http://[\d.]+:\d+", line):
            return match[0]
    raise AssertionError(read)


def worked_on(job: str) -> str:
    """Have a worker bring a job to its end, and return the state that it then has."""
    with started("worker"):
        remit("trace", job, "--follow")
    return str(told("show", job)["state"])


@contextmanager
def web() -> Iterator[str]:
    """Serve a page, and yield its host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path != "/robots.txt"
            self.send_response(200 if found else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(PAGE.encode() if found else b"")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name is given
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
