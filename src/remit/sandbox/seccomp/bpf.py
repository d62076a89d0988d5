"""A small assembler for seccomp's classic BPF (`linux/filter.h`, seccomp(2)).

A program is a tree of branches that end in verdicts. Blocks are laid out so that every jump leads forward, as the
kernel demands; a jump of more than 255 instructions goes through a BPF_JA.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_GO: Final = 0x05  # BPF_JMP | BPF_JA
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_FAR: Final = 255
MOST: Final = 4_096
"""Instructions that the kernel takes (BPF_MAXINSNS)."""

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000  # SECCOMP_RET_KILL_PROCESS
_ERRNO: Final = 0x00050000

NUMBER: Final = 0
"""Offset of the call's number in `struct seccomp_data`."""
ARCH: Final = 4


def errno_verdict(number: int) -> int:
    """The verdict that makes a call fail with an error number."""
    return _ERRNO | number


def argument(index: int, *, high: bool = False) -> int:
    """Offset of one half of an argument, on a little-endian machine."""
    return 16 + 8 * index + (4 if high else 0)


class Verdict(NamedTuple):
    """The end of the matter."""

    value: int


class Branch(NamedTuple):
    """Loads 32 bits, masks them, compares: `then` or `other`."""

    offset: int
    how: str
    """`equal`, `at_least` or `any_bit`."""
    value: int
    then: Node
    other: Node
    mask: int | None = None


Node = Verdict | Branch


class Instruction(NamedTuple):
    """`struct sock_filter`."""

    code: int
    if_true: int
    if_false: int
    value: int


_HOW: Final = {"equal": _EQUAL, "at_least": _AT_LEAST, "any_bit": _ANY_BIT}


def assemble(root: Node) -> list[Instruction]:
    """The program, first instruction first. Raises ValueError if the kernel would not take it."""
    backwards: list[Instruction] = []
    placed: dict[Verdict, int] = {}
    _emit(root, backwards, placed)
    if len(backwards) > MOST:
        raise ValueError(f"{len(backwards)} instructions; the kernel takes {MOST}")
    return backwards[::-1]


def packed(program: list[Instruction]) -> bytes:
    """The bytes of an array of `struct sock_filter`, as bwrap's `--seccomp` reads them."""
    return b"".join(struct.pack("<HBBI", *one) for one in program)


def _emit(node: Node, backwards: list[Instruction], placed: dict[Verdict, int]) -> int:
    """Place a node before everything placed so far; its position, counted from the end."""
    if isinstance(node, Verdict):
        at = placed.get(node)
        if at is None or len(backwards) - at > _FAR:
            backwards.append(Instruction(_RETURN, 0, 0, node.value))
            at = placed[node] = len(backwards)
        return at
    other = _emit(node.other, backwards, placed)
    then = _emit(node.then, backwards, placed)
    then, other = _near(then, other, backwards)
    here = len(backwards)
    backwards.append(Instruction(_HOW[node.how], here - then, here - other, node.value))
    if node.mask is not None:
        backwards.append(Instruction(_AND, 0, 0, node.mask))
    backwards.append(Instruction(_LOAD, 0, 0, node.offset))
    return len(backwards)


def _near(then: int, other: int, backwards: list[Instruction]) -> tuple[int, int]:
    """Both targets within reach of a conditional jump; at most two stepping stones are placed for them."""
    targets = [then, other]
    for index in (0, 1):
        if len(backwards) + 2 - targets[index] > _FAR:
            backwards.append(Instruction(_GO, 0, 0, len(backwards) - targets[index]))
            targets[index] = len(backwards)
    return targets[0], targets[1]
