"""ContextForge before a server over HTTP, run in .venv-gateway: `contextforge.py URL FOLDER [tuned]`.

Prints its URL and what it calls the tool. It runs as it is installed, with what keeps it from refusing calls; tuned, it
also has every setting that was found to make it faster.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

from bench.peers.processes import answers, free_ports, started
from bench.peers.program import missing

_READY_S = 120.0
"""Every start makes a new database through all its migrations: 15 s on a machine that does nothing else."""
_SETTINGS = {
    # 100 calls a minute by default.
    "RATE_LIMITING_ENABLED": "false",
    "SSRF_ALLOW_LOCALHOST": "true",
    "AUTH_REQUIRED": "false",
    "ALLOW_UNAUTHENTICATED_ADMIN": "true",
    # Nothing is made safe by these: they only have to look strong.
    **dict.fromkeys(("JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET"), "Bench-0123456789-abcdefghij-KLMNOPQR"),
    **dict.fromkeys(("BASIC_AUTH_PASSWORD", "PLATFORM_ADMIN_PASSWORD"), "Bench-0123456789-xyz"),
}
_TUNED = {
    # A client's session keeps one with the server; without, every call opens one again: a quarter of the rate.
    "USE_STATEFUL_SESSIONS": "true",
    "CACHE_TYPE": "memory",
    "LOG_LEVEL": "ERROR",
}
_SPARED = (
    "CLIENT_DISCONNECT_MIDDLEWARE_ENABLED",
    "COMPRESSION_ENABLED",
    "CORRELATION_ID_ENABLED",
    "DB_METRICS_RECORDING_ENABLED",
    "EMAIL_AUTH_ENABLED",
    "HEADER_SIZE_VALIDATION_ENABLED",
    "LEGACY_API_ENABLED",
    "LLMCHAT_ENABLED",
    "MCPGATEWAY_A2A_ENABLED",
    "MCPGATEWAY_ADMIN_API_ENABLED",
    "MCPGATEWAY_CATALOG_ENABLED",
    "MCPGATEWAY_ELICITATION_ENABLED",
    "MCPGATEWAY_TOOL_CANCELLATION_ENABLED",
    "MCPGATEWAY_UI_ENABLED",
    "PERFORMANCE_TRACKING_ENABLED",
    "SECURITY_HEADERS_ENABLED",
    "STRUCTURED_LOGGING_ENABLED",
    "TOKEN_USAGE_LOGGING_ENABLED",
)
"""What a call can go without: each takes time of every call, or adds routes that every call is compared with."""


def _post(url: str, body: Any) -> None:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the same
        answer.read()


def main(upstream: str, folder: Path, *, tuned: bool) -> None:
    """Start it, make the server known to it, say where it is, and end with this process."""
    (port,) = free_ports(1)
    environ = {"DATABASE_URL": f"sqlite:///{folder}/gateway.db", "HOME": str(folder), "TMPDIR": str(folder)}
    faster = {**_TUNED, **dict.fromkeys(_SPARED, "false")} if tuned else {}
    env = {**os.environ, **_SETTINGS, **faster, **environ}
    command = [sys.executable, "-m", "uvicorn", "mcpgateway.main:app", "--port", str(port), "--no-access-log"]
    with started(command, lambda: answers(port), folder=folder, env=env, within=_READY_S):
        url = f"http://127.0.0.1:{port}"
        _post(f"{url}/v1/gateways", {"name": "bench", "url": upstream, "transport": "STREAMABLEHTTP"})
        print(f"{url}/mcp", "bench-echo", flush=True)
        signal.pause()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        main(sys.argv[1], Path(sys.argv[2]).resolve(), tuned="tuned" in sys.argv[3:])
    except (OSError, RuntimeError) as error:
        missing(str(error))
