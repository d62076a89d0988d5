"""Reads lines that a person types, without holding up the event loop: the job goes on, and Ctrl-C comes through."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CHUNK: Final = 4096


async def read_line() -> str | None:
    """The next line typed into stdin, without its end; None at its end (Ctrl-D).

    The terminal stays in line mode, so that its own editing keys work.
    """
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    typed = b""
    while not typed.endswith(b"\n"):
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _ready, ready)
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        piece = os.read(descriptor, _CHUNK)
        if not piece:
            return typed.decode(errors="replace") or None
        typed += piece
    return typed.decode(errors="replace").rstrip("\r\n")


def forget_typed() -> None:
    """Drop what was typed before anyone asked: keys pressed while a job ran must not answer its question."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the wait for a line at once, whatever else handles it."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _ready(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
