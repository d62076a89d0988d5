"""llm-sandbox on podman: `python -c pass` one after another, in one container that is there already."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.peers.program import Meter, asked, missing

_RUNS, _PATIENCE_S = 5, 20.0
_IMAGE = "localhost/remit-sandbox-test"


def _run(work: Callable[[Path, str], None], folder: Path) -> None:
    podman = shutil.which("podman")
    if podman and subprocess.run([podman, "image", "exists", _IMAGE], check=False).returncode == 0:  # noqa: S603 - our own words
        work(folder, _IMAGE)
    else:
        missing("podman has no image: `python -m tests.parts.sandbox.image podman` makes it")


def _service(stack: ExitStack, folder: Path) -> str:
    """The address of podman's API, on a socket of its own."""
    place = folder / "podman.sock"
    words = ["podman", "system", "service", "--time", "0", f"unix://{place}"]
    service = stack.enter_context(
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own words
    )
    stack.callback(service.terminate)
    until = time.monotonic() + _PATIENCE_S
    while not place.exists():
        if service.poll() is not None or time.monotonic() > until:
            raise RuntimeError("podman's service does not start")
        time.sleep(0.02)  # noqa: TID251 - nothing tells that it listens
    return f"unix://{place}"


def _python(folder: Path, image: str) -> None:
    from llm_sandbox import SandboxBackend, SandboxSession  # noqa: PLC0415 - podman's image may be missing
    from podman import PodmanClient  # noqa: PLC0415 - a requirement of the benchmarks only

    with ExitStack() as stack:
        client = PodmanClient(base_url=_service(stack, folder))
        session = stack.enter_context(
            SandboxSession(
                client=client,
                backend=SandboxBackend.PODMAN,
                lang="python",
                image=image,
                keep_template=True,
                skip_environment_setup=True,
                runtime_configs={"command": "/bin/sh"},
            )
        )
        assert session.run("pass").exit_code == 0
        meter = Meter()
        meter.start()
        for _ in range(_RUNS):
            assert session.run("pass").exit_code == 0
        meter.stop(_RUNS)


if __name__ == "__main__":
    asked({"python": _python}, _run)
