"""Coding agents for tests: the real ones, where `make agents` puts them, and programs that play a scene."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

BIN: Final = Path("build/agents/node_modules/.bin").absolute()
"""The real agents from npm."""
_AIDER: Final = Path("build/frameworks/aider/bin").absolute()
"""The one in a Python of its own, which is to hide no other."""


def path_with_agents() -> str:
    """Return a PATH on which the real agents are."""
    return f"{BIN}:{os.environ['PATH']}:{_AIDER}"


real = pytest.mark.skipif(not os.environ.get("REMIT_TEST_AGENTS"), reason="REMIT_TEST_AGENTS=1: `make agents` first")
"""Marks a test that runs them; they are large, and it takes minutes."""
FAKE = Path(__file__).with_name("fake_agent.py")


def agent_program(folder: Path, name: str, scene: str) -> str:
    """Write a program that plays a scene as the agent of this name would; its path."""
    path = folder / f"{name}-{scene}".replace(" ", "-")
    words = shlex.join([sys.executable, "-I", "-S", str(FAKE), name, scene])
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{name} 9.8.7 (test)" && exit\nexec {words} "$@"\n')
    path.chmod(0o755)
    return str(path)
