"""Codex runs the hooks that its user trusts, each by a hash that Codex itself makes: its app server is asked for it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from remit.mcp_config.config_file import read_text, remove, replace_text
from remit.mcp_config.connection_record import ConnectionRecord, digest_of, put_together

_UNTRUSTED: Final = (
    "Codex is not on the PATH here, and runs only hooks that were trusted: trust them in it, with /hooks"
)
_CHANGED: Final = "it did not take the trust in the hooks"


class AppServer:
    """A conversation with `codex app-server`, in JSON-RPC over its pipes."""

    def __init__(self, program: str, cwd: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the agent that is connected
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            text=True,
        )
        self._last = 0

    def __enter__(self) -> Self:
        self.call("initialize", {"clientInfo": {"name": "remit", "title": "Remit", "version": "1"}})
        self._send({"method": "initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return what it answers. Raises OSError if it does not."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        for line in self._process.stdout or ():
            message = json.loads(line)
            if message.get("id") == self._last:
                if "error" in message:
                    raise OSError(f"codex app-server: {message['error'].get('message')}")
                return message["result"]
        raise OSError("codex app-server ended")

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()


def trust_hooks(file: Path, records: Path, cwd: Path) -> list[str]:
    """Have Codex trust the hooks in a file that are Remit's; what is left to do. Raises OSError."""
    program = shutil.which("codex")
    if program is None:
        return [_UNTRUSTED]
    settings = file.with_name("config.toml")
    record = ConnectionRecord(records, settings)
    before = read_text(settings) if settings.exists() else None
    with AppServer(program, cwd) as server:
        ours = _ours(server, file, cwd)
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in ours}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        if not ours or any(hook["trustStatus"] != "trusted" for hook in _ours(server, file, cwd)):
            raise OSError(_CHANGED)
    if record.read() is None:
        record.keep(put_together(None, settings, "codex", before, read_text(settings), ()))
    return []


def doubted(file: Path, cwd: Path) -> list[str]:
    """Return which of the hooks in a file that are Remit's Codex does not trust. Raises OSError."""
    program = shutil.which("codex")
    if program is None or not file.is_file():
        return []
    with AppServer(program, cwd) as server:
        ours = [(hook["eventName"], hook["trustStatus"]) for hook in _ours(server, file, cwd)]
    return [f"{file}: {name}: the hook is {status}, not trusted" for name, status in ours if status != "trusted"]


def _ours(server: AppServer, file: Path, cwd: Path) -> list[dict[str, Any]]:
    listed = server.call("hooks/list", {"cwds": [str(cwd)]})["data"]
    hooks = [hook for each in listed for hook in each["hooks"]]
    return [hook for hook in hooks if hook["sourcePath"] == str(file) and " guard ask codex." in str(hook["command"])]


def untrust(file: Path, records: Path) -> None:
    """Take the trust back, so that Codex' settings are as they were; if they were changed since, it stays."""
    settings = file.with_name("config.toml")
    record = ConnectionRecord(records, settings)
    connection = record.read()
    if connection is None or digest_of(read_text(settings)) != connection.digest:
        return
    if connection.original is None:
        remove(settings)
    else:
        replace_text(settings, connection.original)
    record.forget()
