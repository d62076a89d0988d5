"""An MCP server on stdio without an SDK, whose calls are tasks, in both eras. Needs only Python.

A call's arguments say what comes of it: after `polls` questions about its task, its `result` or `error`; with `asks`,
it first asks the person something, and the answer is its result. `note` of a cancelled task is written to stderr.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
OPEN = {"type": "object"}
TOOLS = [
    {"name": "must", "description": "A task.", "inputSchema": OPEN, "execution": {"taskSupport": "required"}},
    {"name": "may", "description": "A task or not.", "inputSchema": OPEN, "execution": {"taskSupport": "optional"}},
    {"name": "told", "description": "The tasks that were given up.", "inputSchema": OPEN},
]
QUESTION = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"which": {"type": "string"}}},
    "mode": "form",
}
tasks: dict[str, dict[str, Any]] = {}
cancelled: list[str] = []


class RpcError(Exception):
    """An error of JSON-RPC."""


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def seen(task: dict[str, Any], modern: bool) -> dict[str, Any]:
    """A task as the era words it."""
    common = {key: task[key] for key in ("taskId", "status")}
    message = {"statusMessage": f"{task['polls']} to go"} if task["status"] == "working" else {}
    at = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    ms = {"ttlMs": 60_000, "pollIntervalMs": 20} if modern else {"ttl": 60_000, "pollInterval": 20}
    return {**common, **message, **at, **ms}


def begun(params: dict[str, Any], modern: bool) -> dict[str, Any]:
    args = params.get("arguments") or {}
    task = {"taskId": f"t{len(tasks)}", "status": "working", "polls": args.get("polls", 0), "args": args}
    tasks[task["taskId"]] = task
    return {"resultType": "task", **seen(task, True)} if modern else {"task": seen(task, False)}


def called(params: dict[str, Any], modern: bool) -> dict[str, Any]:
    """The answer to a call."""
    name, args = params["name"], params.get("arguments") or {}
    if name == "told":
        return text(json.dumps(cancelled))
    if modern:
        declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("extensions", {})
        if TASKS not in declared:
            raise RpcError({"code": -32021, "message": "tasks are missing"})
        return begun(params, True) if name == "must" or "polls" in args else args["result"]
    if name == "must" and "task" not in params:
        raise RpcError({"code": -32601, "message": "call it as a task"})
    return begun(params, False) if "task" in params else args["result"]


def polled(task: dict[str, Any], modern: bool) -> dict[str, Any]:
    args = task["args"]
    if task["status"] == "working":
        if task["polls"]:
            task["polls"] -= 1
        elif args.get("asks") and "answer" not in task:
            task["status"] = "input_required"
        else:
            task["status"] = "failed" if "error" in args else "completed"
    shown = seen(task, modern)
    if not modern:
        return shown
    if shown["status"] == "input_required":
        if task.get("stale"):  # what was answered shows only once it was asked about again
            task.update(stale=False, status="working")
        return {**shown, "inputRequests": {"q": {"method": "elicitation/create", "params": QUESTION}}}
    if task["status"] == "completed":
        return {**shown, "result": text(task["answer"]) if "answer" in task else args["result"]}
    return {**shown, "error": args["error"]} if task["status"] == "failed" else shown


def about(method: str, params: dict[str, Any], modern: bool, request: Any) -> dict[str, Any] | None:
    """The answer to a request about a task; None: it comes later."""
    task = tasks.get(params.get("taskId", ""))
    if task is None:
        raise RpcError({"code": -32602, "message": "no such task"})
    if method == "tasks/get":
        return polled(task, modern)
    if method == "tasks/update":
        if "answer" in task:
            raise RpcError({"code": -32602, "message": "answered twice"})
        task.update(answer=json.dumps(params["inputResponses"]["q"]), stale=True)
        return {}
    if method == "tasks/cancel":
        cancelled.append(task["taskId"])
        task["status"] = "cancelled"
        return seen(task, False) if not modern else {}
    if task["status"] == "input_required":
        task["waits"] = request
        send({"id": f"ask-{task['taskId']}", "method": "elicitation/create", "params": QUESTION})
        return None
    if task["status"] == "failed":
        raise RpcError(task["args"]["error"])
    return text(task["answer"]) if "answer" in task else task["args"]["result"]


def answered(method: str, params: dict[str, Any], request: Any) -> dict[str, Any] | None:
    """The result of a request."""
    modern = (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion") == MODERN
    if method == "initialize":
        if params["protocolVersion"] == MODERN:
            raise RpcError({"code": -32602, "message": "not this one"})
        tasks_offered: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        capabilities = {"tools": {}, "tasks": tasks_offered}
        info = {"name": "tasks", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    if method == "server/discover":
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "tasks", "version": "1"}}
        capabilities = {"tools": {}, "extensions": {TASKS: {}}}
        versions = {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private"}
        return {"resultType": "complete", "capabilities": capabilities, "_meta": meta, **versions}
    if method == "tools/list":
        return {"tools": TOOLS, **({"ttlMs": 0, "cacheScope": "private"} if modern else {})}
    if method == "tools/call":
        return called(params, modern)
    if method.startswith("tasks/"):
        return about(method, params, modern, request)
    raise RpcError({"code": -32601, "message": "unknown method " + method})


def main() -> None:
    """Answer requests, one JSON object a line, until stdin is closed."""
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            task = tasks[message["id"].removeprefix("ask-")]
            task.update(answer=json.dumps(message["result"]), status="completed")
            send({"id": task.pop("waits"), "result": text(task["answer"])})
        elif "id" in message:
            try:
                result = answered(message["method"], message.get("params") or {}, message["id"])
            except RpcError as fault:
                send({"id": message["id"], "error": fault.args[0]})
            else:
                if result is not None:
                    send({"id": message["id"], "result": {"resultType": "complete", **result}})


main()
