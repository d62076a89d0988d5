"""The filter is run here by an interpreter of its own: what the kernel would answer, for every call."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.sandbox.seccomp import (
    ABSENT,
    ALLOW,
    ARCHITECTURES,
    BROWSER,
    FORBIDDEN,
    KILL,
    MOST,
    REFUSED,
    FilterBranch,
    FilterVerdict,
    Instruction,
    assemble,
    digest,
    encoded,
    errno_verdict,
    packed,
    program,
)
from remit.process.enclosure import Rules

EPERM, ENOSYS, NO_FAMILY = (errno_verdict(number) for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))
encode = struct.Struct("<HBBI")
MACHINES = pytest.mark.parametrize("machine", ARCHITECTURES)


def answer(instructions: tuple[Instruction, ...] | list[Instruction], data: bytes) -> int:
    """What a program returns for a `struct seccomp_data` (the part of BPF that it uses)."""
    value, at = 0, 0
    while True:
        code, if_true, if_false, number = instructions[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, number)
            case 0x54:
                value &= number
            case 0x15:
                at += if_true if value == number else if_false
            case 0x35:
                at += if_true if value >= number else if_false
            case 0x45:
                at += if_true if value & number else if_false
            case 0x05:
                at += number
            case 0x06:
                return number
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def ask(machine: str, name: str, *args: int, rules: Rules = "program") -> int:
    found = ARCHITECTURES[machine]
    return _ask(machine, found.audit, found.numbers[name], *args, rules=rules)


def _ask(machine: str, audit: int, number: int, *args: int, rules: Rules = "program") -> int:
    padded = [*args, *(0 for _ in range(6 - len(args)))]
    return answer(program(machine, rules), struct.pack("<IIQ6Q", number, audit, 0, *padded))


@MACHINES
def test_every_call_gets_the_verdict_that_the_rules_give_it(machine: str) -> None:
    for name in ARCHITECTURES[machine].numbers:
        if name in REFUSED:
            continue
        wanted = EPERM if name in FORBIDDEN else ENOSYS if name in ABSENT else ALLOW
        assert ask(machine, name) == wanted, name


@MACHINES
def test_numbers_of_no_call_do_not_exist(machine: str) -> None:
    found = ARCHITECTURES[machine]
    unknown = set(range(600)) - set(found.numbers.values())
    assert {_ask(machine, found.audit, number) for number in unknown} == {ENOSYS}


@MACHINES
def test_calls_of_another_architecture_end_the_program(machine: str) -> None:
    for audit in (0, 0x40000003, 0xC000003E, 0xC00000B7, 0xC00000F3):
        expected = ALLOW if audit == ARCHITECTURES[machine].audit else KILL
        assert _ask(machine, audit, ARCHITECTURES[machine].numbers["read"]) == expected


def test_the_second_set_of_calls_of_x86_64_ends_the_program() -> None:
    found = ARCHITECTURES["x86_64"]
    assert _ask("x86_64", found.audit, 0x40000000 | found.numbers["read"]) == KILL
    assert _ask("x86_64", found.audit, 0xFFFFFFFF) == KILL


@MACHINES
@pytest.mark.parametrize("family", range(46))
def test_only_three_socket_families_exist(machine: str, family: int) -> None:
    assert ask(machine, "socket", family) == (ALLOW if family in {1, 2, 10} else NO_FAMILY)
    assert ask(machine, "socketpair", family) == (ALLOW if family == 1 else NO_FAMILY)


@MACHINES
def test_the_high_half_of_an_argument_hides_nothing(machine: str) -> None:
    high = 0xDEADBEEF << 32
    assert ask(machine, "ioctl", 0, 0x5412) == EPERM
    assert ask(machine, "ioctl", 0, high | 0x5412) == EPERM
    assert ask(machine, "socket", high | 40) == NO_FAMILY
    assert ask(machine, "clone", high | 0x10000000) == EPERM


@MACHINES
@pytest.mark.parametrize("flag", [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
def test_no_namespace_can_be_cloned(machine: str, flag: int) -> None:
    assert ask(machine, "clone", flag | 17) == EPERM
    assert ask(machine, "clone", 0x3D0F00) == ALLOW  # what a thread is made with


@MACHINES
def test_a_browser_may_make_the_namespaces_of_its_own_sandbox_and_ask_for_nothing_else_more(machine: str) -> None:
    for name in ("clone", "unshare"):
        assert ask(machine, name, 0x70000011, rules="browser") == ALLOW
        for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000):
            assert ask(machine, name, 0x10000000 | flag, rules="browser") == EPERM
    assert ask(machine, "prctl", 22, rules="browser") == ALLOW
    assert ask(machine, "prctl", 35, rules="browser") == EPERM
    for name in ARCHITECTURES[machine].numbers.keys() - BROWSER.keys():
        assert ask(machine, name, 0x40, rules="browser") == ask(machine, name, 0x40), name
    assert BROWSER.keys() <= FORBIDDEN | REFUSED.keys()
    assert digest(machine, "browser") != digest(machine)


@MACHINES
def test_set_id_bits_cannot_be_set_and_device_files_not_made(machine: str) -> None:
    for mode in (0o4755, 0o2755, 0o6000):
        assert ask(machine, "fchmod", 3, mode) == EPERM
        assert ask(machine, "fchmodat", 3, 0, mode) == EPERM
        assert ask(machine, "mkdirat", 3, 0, mode) == EPERM
        assert ask(machine, "mknodat", 3, 0, mode) == EPERM
        assert ask(machine, "openat", 3, 0, 0o100, mode) == EPERM
        assert ask(machine, "openat", 3, 0, 0, mode) == ALLOW  # without O_CREAT the mode is whatever was left there
    assert ask(machine, "fchmod", 3, 0o1777) == ALLOW
    assert ask(machine, "mknodat", 3, 0, 0o020666) == EPERM
    assert ask(machine, "mknodat", 3, 0, 0o060666) == EPERM
    assert ask(machine, "mknodat", 3, 0, 0o010666) == ALLOW


@MACHINES
def test_the_kernel_would_take_the_program(machine: str) -> None:
    instructions = program(machine)
    assert len(instructions) <= MOST
    assert len(encoded(machine)) == 8 * len(instructions)
    for at, one in enumerate(instructions):
        if one.code in {0x15, 0x35, 0x45}:
            assert at + 1 + max(one.if_true, one.if_false) < len(instructions)
        if one.code == 0x05:
            assert at + 1 + one.value < len(instructions)


def test_the_hash_names_the_program() -> None:
    assert digest("x86_64") != digest("aarch64")
    assert digest("x86_64").startswith("sha256:")


def test_a_machine_without_a_table_has_no_filter() -> None:
    with pytest.raises(KeyError):
        program("riscv64")


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 9)), min_size=1, max_size=900), st.randoms())
def test_programs_of_any_size_answer_as_the_tests_they_are_made_of(rows: list[tuple[int, int]], random: object) -> None:
    node: FilterVerdict | FilterBranch = FilterVerdict(99)
    for value, verdict in rows:
        node = FilterBranch(0, "equal", value, FilterVerdict(verdict), node)
    instructions = assemble(node)
    last = dict(rows)  # the later test stands before the earlier one
    for value in [*last][:20]:
        assert answer(instructions, struct.pack("<I", value)) == last[value]
    missing = next(value for value in range(1_000) if value not in last)
    assert answer(instructions, struct.pack("<I", missing)) == 99


def test_a_program_that_is_too_long_is_refused() -> None:
    def balanced(low: int, high: int) -> FilterVerdict | FilterBranch:
        if high - low == 1:
            return FilterVerdict(low)
        middle = (low + high) // 2
        return FilterBranch(0, "at_least", middle, balanced(middle, high), balanced(low, middle))

    instructions = assemble(balanced(0, 1_000))
    assert answer(instructions, struct.pack("<I", 617)) == 617
    assert len(packed(instructions)) == 8 * len(instructions)
    with pytest.raises(ValueError, match="4096"):
        assemble(balanced(0, 2_000))
