"""Restate: its server from npm beside a service of its Python SDK, speaking HTTP/2 with each other.

The service runs in this process, or in several that share its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bench.peers.processes import answers, free_ports, started
from bench.peers.program import EACH, JOBS, MOST, RUNS, STEPS, Meter, asked, missing
from bench.peers.workers import Start, ready

_SERVER = Path(__file__).parents[2] / "build/peers/node_modules/.bin/restate-server"
_service = restate.Service("bench")
_waiting: list[str] = []


def _step() -> int:
    return 1


@_service.handler()
async def steps(context: restate.Context, count: int) -> int:
    """Steps, one after the other; each is kept before the next begins."""
    for _ in range(count):
        await context.run_typed("step", _step)
    return count


@_service.handler(inactivity_timeout=timedelta(milliseconds=300))
async def resumed(context: restate.Context, count: int) -> int:
    """The same, then a wait for which the run is put away: afterwards the steps are given back."""
    await steps(context, count)
    name, promise = context.awakeable()
    _waiting.append(name)
    await promise
    return count


def _post(url: str, body: Any) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - the same
        return json.loads(answer.read() or b"null")


def sequential(url: str, meter: Meter) -> None:
    """One run."""
    meter.start()
    _post(f"{url}/bench/steps", STEPS)
    meter.stop(STEPS)


def concurrent(runs: int, url: str, meter: Meter) -> None:
    """Many runs at once."""
    with ThreadPoolExecutor(runs) as callers:
        meter.start()
        for call in [callers.submit(_post, f"{url}/bench/steps", EACH) for _ in range(runs)]:
            call.result()
        meter.stop(runs * EACH)


def replay(url: str, meter: Meter) -> None:
    """From the end of a wait to the end of the run."""
    with ThreadPoolExecutor(1) as caller:
        run = caller.submit(_post, f"{url}/bench/resumed", STEPS)
        while not _waiting:
            time.sleep(0.01)  # noqa: TID251 - the server does not tell when it has put a run away
        time.sleep(1)  # noqa: TID251 - nor when it has finished doing so
        meter.start()
        _post(f"{url}/restate/awakeables/{_waiting[-1]}/resolve", 1)
        run.result()
        meter.stop(STEPS)
    assert len(_waiting) > 1, "the run was not put away, so nothing was given back"


def _serve(port: int) -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(("127.0.0.1", port))
        config = Config.from_mapping(bind=[f"fd://{listening.detach()}"], loglevel="ERROR")
    app: Any = restate.app([_service], "bidi")
    asyncio.run(serve(app, config, shutdown_trigger=asyncio.Event().wait, mode="asgi"))


def _work(start: Start, port: int) -> None:
    threading.Thread(target=start.wait, daemon=True).start()
    _serve(port)


def main(workload: tuple[int, Callable[[str, Meter], None]], folder: Path) -> None:
    """Start both, the service in so many processes of its own or in this one (0), make them known, measure."""
    count, measured = workload
    if not _SERVER.exists():
        missing("its server is not installed; `make bench PEERS=1` does that")
        return
    own, ingress, admin, node = free_ports(4)
    env = {
        "RESTATE_BASE_DIR": str(folder / "restate"),
        # 24 by default; as many as suit two cores are faster when many runs go on at once.
        "RESTATE_DEFAULT_NUM_PARTITIONS": "4",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
    }
    if not count:
        threading.Thread(target=_serve, args=(own,), daemon=True).start()

    def up() -> bool:
        return all(map(answers, (own, ingress, admin)))

    with (
        ready(count, _work, own) as workers,
        started([str(_SERVER), "--no-logo"], up, folder=folder, env={**os.environ, **env}) as server,
    ):
        _post(f"http://127.0.0.1:{admin}/deployments", {"uri": f"http://127.0.0.1:{own}"})
        url = f"http://127.0.0.1:{ingress}"
        _post(f"{url}/bench/steps", 1)
        measured(url, Meter(lambda: server.cpu() + workers.cpu()))


WORKLOADS: dict[str, tuple[int, Callable[[str, Meter], None]]] = {
    "sequential": (0, sequential),
    "concurrent": (0, partial(concurrent, RUNS)),
    "replay": (0, replay),
    **{f"workers-{count}": (count, partial(concurrent, JOBS)) for count in range(1, MOST + 1)},
}


if __name__ == "__main__":
    asked(WORKLOADS, main)
