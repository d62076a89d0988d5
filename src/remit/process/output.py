"""The output of a program that settings name, such as one that prints a key; it appears nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from remit.errors import SettingsError
from remit.process.child import ChildProcess
from remit.process.environment import environment

_LONGEST: Final = 64 * 1024
_LONGEST_S: Final = 30.0


async def output_of(command: Sequence[str], environ: Mapping[str, str], folder: Path, setting: str) -> bytes:
    """Return what a program prints that runs in `folder`. Raise SettingsError, which names the setting."""
    child = ChildProcess(tail_bytes=_LONGEST)
    try:
        await child.start(command, env=environment(environ, {}), cwd=str(folder))
        child.close_stdin()
        async with asyncio.timeout(_LONGEST_S):
            status = await child.ended()
    except (OSError, TimeoutError) as error:
        reason = f"{setting} fails: {str(error) or 'no answer in time'}"
        raise SettingsError(reason, remedy="Name a program by its path.") from error
    finally:
        await child.close()
    if status != 0:
        raise SettingsError(f"{setting} fails: {child.why_ended}", remedy="Run it in the project folder, and see.")
    return child.out.data
