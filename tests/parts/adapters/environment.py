"""Runs programs in the environments of the frameworks, which `make peers` installs; their models are on loopback."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[3]
PROGRAMS: Final = Path(__file__).with_name("programs")


class Ran(NamedTuple):
    """What a program printed."""

    out: str
    err: str


async def run(environment: str, program: Path, folder: Path, model_url: str, *words: str) -> Ran:
    """Run a program of an environment in `folder`, with models at a URL.

    Raises:
        FileNotFoundError: The environment is not installed; `make peers` does that.
        AssertionError: The program failed.
    """
    python = ROOT / "build" / environment / "bin" / "python"
    commands = Path(sys.executable).parent  # where `remit` is
    variables = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "src") if environment == "adapters" else "",
        "OPENAI_BASE_URL": f"{model_url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model_url,
        "GOOGLE_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "OTEL_SDK_DISABLED": "true",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(program),
        *words,
        cwd=folder,
        env=variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return Ran(out.decode(), err.decode())
