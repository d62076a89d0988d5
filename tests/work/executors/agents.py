"""Coding agents for tests: programs of a few lines that play one scene."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

FAKE = Path(__file__).with_name("fake_agent.py")


def agent_program(folder: Path, name: str, scene: str) -> str:
    """Write a program that plays a scene as the agent of this name would; its path."""
    path = folder / f"{name}-{scene}".replace(" ", "-")
    words = shlex.join([sys.executable, "-I", "-S", str(FAKE), name, scene])
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{name} 9.8.7 (test)" && exit\nexec {words} "$@"\n')
    path.chmod(0o755)
    return str(path)
