"""The input of a program: a file without a name, so that nothing has to be fed to it."""

from __future__ import annotations

import os


def stdin_of(data: bytes, feed: int | None = None) -> int:
    """A descriptor that holds some bytes, or a copy of `feed`; the caller closes it."""
    if feed is not None:
        return os.dup(feed)
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("remit-stdin", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
