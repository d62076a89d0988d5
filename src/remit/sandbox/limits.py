"""The limits of a run (contract: tools, "Sandbox"). Only ever made stricter (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.process.enclosure import LooserError

MB: Final = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one run; every one is enforced, and its mechanism is in the receipt."""

    wall_ms: int = 60_000
    """From the start to the end."""
    cpu_ms: int = 60_000
    """Processor time of all processes together."""
    cpu_percent: int = 100
    """Share of processors at any time; 100 is one whole processor."""
    memory_bytes: int = 1024 * MB
    pids: int = 256
    """Processes and threads at the same time."""
    descriptors: int = 1024
    """Open files of one process."""
    file_bytes: int = 256 * MB
    """The largest file."""
    tmp_bytes: int = 64 * MB
    """`/tmp`."""
    workspace_bytes: int = 512 * MB
    """All files of the workspace together."""
    workspace_files: int = 10_000
    """Its files and folders."""
    stdout_bytes: int = 1_000_000
    stderr_bytes: int = 1_000_000
    artifact_bytes: int = 50 * MB
    """All collected files together."""
    artifact_files: int = 100


LEAST: Final[Mapping[str, int]] = {"wall_ms": 1, "cpu_ms": 1, "cpu_percent": 1, "pids": 4, "descriptors": 16}
"""Below these nothing starts; every other limit may be 0, memory excepted."""
_LEAST_MEMORY: Final = 16 * MB


def least(name: str) -> int:
    """The smallest value of a limit."""
    return _LEAST_MEMORY if name == "memory_bytes" else LEAST.get(name, 0)


def tightened(limits: Limits, asked: Mapping[str, Any]) -> Limits:
    """The limits with those of `asked`, each at most what it was. Raises LooserError that names the field."""
    for name, value in asked.items():
        if name not in Limits.__struct_fields__:
            raise LooserError(
                f"limits.{name}", f"there is no such limit; known are {', '.join(Limits.__struct_fields__)}"
            )
        if not isinstance(value, int) or isinstance(value, bool) or value < least(name):
            raise LooserError(f"limits.{name}", f"it must be a whole number from {least(name)}, not {value!r}")
        if value > getattr(limits, name):
            raise LooserError(f"limits.{name}", f"{value} is more than the {getattr(limits, name)} that is allowed")
    return msgspec.structs.replace(limits, **asked)
