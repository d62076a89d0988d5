"""Restate: a handler runs a step and calls another handler, then waits; changed code resumes it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from bench.peers.processes import answers, free_ports, started

_SERVER = Path(__file__).parents[3] / "build/peers/node_modules/.bin/restate-server"
_service = restate.Service("changed")
_ran: list[str] = []
_waiting: list[str] = []
_RECORDED: dict[str, Any] = {"name": "pay", "step": 1, "call": 1, "call_first": False}
_code = dict(_RECORDED)
"""The code that is in force: the step's name, the arguments of step and call, and their order."""


@_service.handler()
async def mail(_: restate.Context, cents: int) -> str:
    """Tell of the payment."""
    _ran.append(f"mail {cents}")
    return f"mail {cents}"


@_service.handler(
    inactivity_timeout=timedelta(milliseconds=300),
    invocation_retry_policy=restate.InvocationRetryPolicy(max_attempts=2, on_max_attempts="kill"),
)
async def run(context: restate.Context) -> list[str]:
    """Pay in a step, mail by a call, wait."""

    def pay() -> str:
        _ran.append(f"pay {cents}")
        return f"pay {cents}"

    async def step() -> str:
        paid: str = await context.run_typed(_code["name"], pay)
        return paid

    async def call() -> str:
        answer: str = await context.service_call(mail, _code["call"])
        return answer

    cents = _code["step"]
    results = [await act() for act in ((call, step) if _code["call_first"] else (step, call))]
    name, promise = context.awakeable()
    _waiting.append(name)
    await promise
    return results


def _post(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"} if data else {}, method="POST")  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.read().decode()


def resumed(url: str, change: str, **code: Any) -> str:
    """Run up to the wait, change the code, go on; say what ran again and what came back."""
    _code.update(_RECORDED)
    _waiting.clear()
    with ThreadPoolExecutor(1) as caller:
        answer = caller.submit(_post, f"{url}/changed/run")
        while not _waiting:
            time.sleep(0.01)  # noqa: TID251 - the server does not tell when it has put a run away
        time.sleep(1)  # noqa: TID251 - nor when it has finished doing so
        _ran.clear()
        _code.update(code)
        _post(f"{url}/restate/awakeables/{_waiting[0]}/resolve", 1)
        return f"{change}: ran again: {_ran}; {answer.result()}"


def _serve(port: int) -> None:
    config = Config.from_mapping(bind=[f"127.0.0.1:{port}"], loglevel="ERROR")
    app: Any = restate.app([_service], "bidi")
    asyncio.run(serve(app, config, shutdown_trigger=asyncio.Event().wait, mode="asgi"))


def main(folder: Path) -> None:
    """Start the server and the service, and try each change."""
    own, ingress, admin, node = free_ports(4)
    env = {
        "RESTATE_BASE_DIR": str(folder / "restate"),
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
    }
    threading.Thread(target=_serve, args=(own,), daemon=True).start()

    def ready() -> bool:
        return all(map(answers, (own, ingress, admin)))

    with started([str(_SERVER), "--no-logo"], ready, folder=folder, env={**os.environ, **env}):
        _post(f"http://127.0.0.1:{admin}/deployments", {"uri": f"http://127.0.0.1:{own}"})
        url = f"http://127.0.0.1:{ingress}"
        print(resumed(url, "same"))
        print(resumed(url, "reorder", call_first=True))
        print(resumed(url, "rename", name="pay_now"))
        print(resumed(url, "other arguments of a step", step=2))
        print(resumed(url, "other arguments of a call", call=2))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
