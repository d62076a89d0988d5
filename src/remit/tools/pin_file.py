"""Pinned tools as a file that can be checked in: for stand-ins where no journal holds the pins, such as in CI."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from remit.errors import SettingsError
from remit.tools.pins import Definitions


class PinFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: the definitions of each server's tools, by the server's own names, as the server words them."""

    version: Literal[1] = 1
    servers: dict[str, dict[str, dict[str, Any]]]


def written_pins(servers: dict[str, Definitions]) -> bytes:
    """The file's text: sorted and indented, so that a change is easy to review."""
    pins = PinFile(servers={name: dict(tools) for name, tools in servers.items()})
    return msgspec.json.format(msgspec.json.encode(pins, order="sorted"), indent=2) + b"\n"


def read_pins(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The definitions that a file holds, by server. Raises SettingsError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=PinFile).servers
    except OSError as error:
        why = error.strerror or str(error)
    except msgspec.DecodeError as error:
        why = str(error)
    raise SettingsError(f"mcp.pins_file: {path}: {why}", remedy="Write it again: remit mcp pin --export FILE")
