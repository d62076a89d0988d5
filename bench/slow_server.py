"""A server that takes its time to start: `python -S bench/slow_server.py SECONDS`; it is light: plain JSON lines."""

import json
import sys
import time

TOOL = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}

time.sleep(float(sys.argv[1]))  # noqa: TID251 - being slow is what it is for
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result: dict[str, object] = {"tools": [TOOL]}
    if request["method"] == "initialize":
        info = {"name": "slow", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()
