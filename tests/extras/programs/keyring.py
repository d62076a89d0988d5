"""docs/configuration.md: a server's variable holds a secret from the keyring."""

import os
import sys
from pathlib import Path

from here import project, told

BACKEND = '''
from keyring.backend import KeyringBackend


class Keyring(KeyringBackend):
    """A keyring with one secret, in the place of the system's."""

    priority = 1

    def get_password(self, service, username):
        return {("remit", "TIDE"): "two a day"}.get((service, username))

    def set_password(self, service, username, password):
        raise NotImplementedError
'''
SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "tide", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": str(len(os.environ["TIDE"]))}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"""

Path("one_secret.py").write_text(BACKEND, encoding="utf-8")
Path("server.py").write_text(SERVER, encoding="utf-8")
os.environ |= {"PYTHONPATH": str(Path.cwd()), "PYTHON_KEYRING_BACKEND": "one_secret.Keyring"}
table = f"""
[[mcp.servers]]
name = "sea"
command = ["{sys.executable}", "server.py"]
env = {{ TIDE = "${{keyring:TIDE}}" }}
level = "L0"
"""
project(table)
assert told("mcp", "call", "sea.tide")["value"] == "9"
