"""A small MCP server to try Remit with: notes in a file of JSON. It needs only Python.

python notes.py [FILE]
"""

import json
import sys
from pathlib import Path

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
FILE = Path(sys.argv[1] if len(sys.argv) > 1 else "notes.json")
TOPIC = {"type": "string", "description": "what the note is about"}
TOOLS = [
    {
        "name": "read_note",
        "description": "Give back the note on a topic.",
        "inputSchema": {"type": "object", "properties": {"topic": TOPIC}, "required": ["topic"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "write_note",
        "description": "Write a note on a topic in place of the one that is there.",
        "inputSchema": {
            "type": "object",
            "properties": {"topic": TOPIC, "text": {"type": "string"}},
            "required": ["topic", "text"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
]


def called(name: str, topic: str = "", text: str = "") -> dict[str, object]:
    """The result of a call."""
    if name not in {tool["name"] for tool in TOOLS}:
        return {"content": [{"type": "text", "text": f"there is no tool {name}"}], "isError": True}
    notes = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if name == "write_note":
        FILE.write_text(json.dumps({**notes, topic: text}), encoding="utf-8")
        return {"content": [{"type": "text", "text": f"noted {topic}"}]}
    if topic not in notes:
        return {"content": [{"type": "text", "text": f"there is no note on {topic}"}], "isError": True}
    return {"content": [{"type": "text", "text": notes[topic]}]}


def answered(method: str, params: dict[str, object]) -> dict[str, object] | None:
    """The result of a request; None for one that is not known."""
    match method:
        case "initialize":
            info = {"name": "notes", "version": "1.0"}
            asked = params.get("protocolVersion")
            version = asked if asked in VERSIONS else VERSIONS[-1]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            arguments = params.get("arguments")
            return called(str(params["name"]), **arguments if isinstance(arguments, dict) else {})
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    """Answer requests, one JSON object a line, until stdin is closed."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue  # a notification
        result = answered(message["method"], message.get("params", {}))
        error = {"code": -32601, "message": f"unknown method {message['method']}"}
        body = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)


if __name__ == "__main__":
    main()
