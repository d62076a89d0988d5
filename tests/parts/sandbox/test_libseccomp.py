"""The filter says of every call what libseccomp would say, given the same rules."""

from __future__ import annotations

import ctypes.util
import errno
import struct
import tempfile
from typing import Any

import pytest

from remit.parts.sandbox.seccomp import ABSENT, ARCHITECTURES, FORBIDDEN, REFUSED, Instruction
from tests.parts.sandbox.test_filter import answer, ask, encode

pytestmark = pytest.mark.skipif(ctypes.util.find_library("seccomp") is None, reason="there is no libseccomp here")


def theirs(machine: str) -> list[Instruction]:
    """libseccomp's program for the rules that need no argument, and for what is compared with equality alone."""
    import pyseccomp  # noqa: PLC0415 - it fails to import without the library

    made: Any = pyseccomp.SyscallFilter(defaction=pyseccomp.ERRNO(errno.ENOSYS))
    made.set_attr(pyseccomp.Attr.CTL_TSYNC, 0)
    native = pyseccomp.Arch.X86_64 if machine == "x86_64" else pyseccomp.Arch.AARCH64
    if not made.exist_arch(native):
        made.add_arch(native)
        made.remove_arch(pyseccomp.Arch.NATIVE)
    for name in sorted(ARCHITECTURES[machine].numbers):
        if name in ABSENT or name in REFUSED:
            continue
        action = pyseccomp.ERRNO(errno.EPERM) if name in FORBIDDEN else pyseccomp.ALLOW
        made.add_rule_exactly(action, name)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return [Instruction(*fields) for fields in encode.iter_unpack(file.read())]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_numbers_of_both_tables_and_all_plain_verdicts_are_libseccomp_s(machine: str) -> None:
    program = theirs(machine)
    found = ARCHITECTURES[machine]
    known = 0
    for name, number in found.numbers.items():
        if name in REFUSED:
            continue
        data = struct.pack("<IIQ6Q", number, found.audit, 0, *(0 for _ in range(6)))
        assert answer(program, data) == ask(machine, name), name
        known += 1
    assert known > 250
