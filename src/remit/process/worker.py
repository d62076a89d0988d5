"""The child's side of a pool of workers (remit.process.workers): it answers jobs from stdin until that ends."""

from __future__ import annotations

import resource
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

J = TypeVar("J", bound=msgspec.Struct)

LENGTH: Final = struct.Struct(">I")
"""Before each message: its length in bytes."""
MEMORY: Final = 1024 * 1024 * 1024
"""Bytes of address space that a worker may take."""


def answer_jobs(job_type: type[J] | Any, answer: Callable[[J], object]) -> None:
    """Answer jobs of a type, perhaps a union, one after another.

    The process takes a bounded memory, writes no file and leaves no core.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for job in _jobs(sys.stdin.buffer, job_type):
        encoded = msgspec.msgpack.encode(answer(job))
        sys.stdout.buffer.write(LENGTH.pack(len(encoded)) + encoded)
        sys.stdout.buffer.flush()


def _jobs(stream: BinaryIO, job_type: type[J] | Any) -> Iterator[J]:
    while len(head := stream.read(LENGTH.size)) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        yield msgspec.msgpack.decode(stream.read(size), type=job_type)
