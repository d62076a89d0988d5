"""The rules as a program for the kernel: a binary search over call numbers, then the tests of arguments."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from remit.sandbox.seccomp.bpf import (
    ALLOW,
    ARCH,
    KILL,
    NUMBER,
    Branch,
    Instruction,
    Node,
    Verdict,
    argument,
    assemble,
    errno_verdict,
    packed,
)
from remit.sandbox.seccomp.rules import (
    ABSENT,
    FORBIDDEN,
    REFUSED,
    Argument,
)
from remit.sandbox.seccomp.syscalls import AARCH64, X86_64

_X32: Final = 0x40000000
"""Numbers from here on are of x86_64's second set of calls, which no program needs."""
_ALLOW: Final = Verdict(ALLOW)
_ABSENT: Final = Verdict(errno_verdict(errno.ENOSYS))
_FORBIDDEN: Final = Verdict(errno_verdict(errno.EPERM))


class Architecture(NamedTuple):
    """One of the machines that the filter is built for."""

    audit: int
    """AUDIT_ARCH_*, by which the kernel says whose call it is."""
    numbers: Mapping[str, int]


ARCHITECTURES: Final = {
    "x86_64": Architecture(0xC000003E, X86_64),
    "aarch64": Architecture(0xC00000B7, AARCH64),
}


@cache
def program(machine: str) -> tuple[Instruction, ...]:
    """The filter for a machine, as `platform.machine()` names it. Raises KeyError for one that has no table."""
    architecture = ARCHITECTURES[machine]
    leaves = sorted((number, leaf(name)) for name, number in architecture.numbers.items() if name not in ABSENT)
    found = _search(_ranges(leaves))
    known = Branch(NUMBER, "at_least", _X32, Verdict(KILL), found)
    return tuple(assemble(Branch(ARCH, "equal", architecture.audit, known, Verdict(KILL))))


@cache
def encoded(machine: str) -> bytes:
    """The filter's bytes. Raises KeyError."""
    return packed(list(program(machine)))


@cache
def digest(machine: str) -> str:
    """`sha256:…` of the filter, as receipts hold it. Raises KeyError."""
    return "sha256:" + hashlib.sha256(encoded(machine)).hexdigest()


@cache
def leaf(name: str) -> Node:
    """What becomes of a call, once its number is known."""
    if name in FORBIDDEN:
        return _FORBIDDEN
    found: Node = _ALLOW
    for test in REFUSED.get(name, ()):
        found = _tested(test, found)
    return found


def _tested(test: Argument, passed: Node) -> Node:
    refused = Verdict(errno_verdict(test.error))
    offset = argument(test.number)
    how = "any_bit" if test.how == "any_bit" else "equal"
    found, hit = (refused, passed) if test.how == "not_in" else (passed, refused)
    for value in test.values:
        found = Branch(offset, how, value, hit, found, test.mask)
    if test.only_if is not None:
        index, bits = test.only_if
        found = Branch(argument(index), "any_bit", bits, found, passed)
    return found


def _ranges(leaves: list[tuple[int, Node]]) -> list[tuple[int, Node]]:
    """(first number, what becomes of it and all up to the next row)."""
    rows: list[tuple[int, Node]] = [(0, _ABSENT)]
    after = 0
    for number, node in leaves:
        if number > after:
            rows.append((after, _ABSENT))
        rows.append((number, node))
        after = number + 1
    rows.append((after, _ABSENT))
    merged: list[tuple[int, Node]] = []
    for number, node in rows:
        if merged and merged[-1][0] == number:
            merged.pop()
        if not merged or merged[-1][1] != node:
            merged.append((number, node))
    return merged


def _search(rows: list[tuple[int, Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][1]
    middle = len(rows) // 2
    return Branch(NUMBER, "at_least", rows[middle][0], _search(rows[middle:]), _search(rows[:middle]))
