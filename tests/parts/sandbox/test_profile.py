"""The profile for containers says of every call what our own filter says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.sandbox.seccomp import ALLOW, ARCHITECTURES, REFUSED, errno_verdict, others, profile
from tests.parts.sandbox.test_filter import MACHINES, ask

LOOKED_AT = sorted(
    {0, 1, 2, 4, 10, 11, 16, 22, 35, 40, 0x20000, 0xFFFFFFFF, 0x5412, 0x541C, 0x5413, 0x5401, 0x3D0F00}
    | {0o100, 0o755, 0o4755, 0o2755, 0o20666, 0o60666, 0o10666, 0o24666, 0o20000000, 0x10000000, 1 << 31}
)
WORD = st.sampled_from(LOOKED_AT) | st.integers(0, 2**32 - 1)
WORDS = st.tuples(WORD, WORD, WORD, WORD)


def verdicts(machine: str, name: str, args: tuple[int, ...]) -> set[int]:
    """What the entries say that match; a service knows no order among them."""
    read: dict[str, Any] = json.loads(profile(machine))
    found = set()
    for entry in read["syscalls"]:
        tests = entry.get("args", ())
        if name in entry["names"] and all(args[one["index"]] & one["value"] == one["valueTwo"] for one in tests):
            found.add(ALLOW if entry["action"] == "SCMP_ACT_ALLOW" else errno_verdict(entry["errnoRet"]))
    return found or {errno_verdict(read["defaultErrnoRet"])}


@pytest.mark.slow
@MACHINES
def test_every_call_without_tests_gets_one_verdict(machine: str) -> None:
    for name in ARCHITECTURES[machine].numbers:
        if name not in REFUSED:
            assert verdicts(machine, name, (0, 0, 0, 0)) == {ask(machine, name)}, name


@pytest.mark.parametrize("name", sorted(REFUSED))
@given(args=WORDS)
def test_arguments_are_judged_alike(name: str, args: tuple[int, ...]) -> None:
    for machine in ARCHITECTURES:
        if name in ARCHITECTURES[machine].numbers:
            assert verdicts(machine, name, args) == {ask(machine, name, *args)}


@given(mask=st.sampled_from([0xFFFFFFFF, 0o170000, 0xFF]), values=st.frozensets(WORD, max_size=4), tried=WORD)
def test_each_other_number_matches_one_pattern(mask: int, values: frozenset[int], tried: int) -> None:
    masked = {value & mask for value in values}
    for number in {tried, *values, *(value ^ 1 for value in values)}:
        hits = sum(number & one.mask == one.value for one in others(mask, masked))
        assert hits == (0 if number & mask in masked else 1)
