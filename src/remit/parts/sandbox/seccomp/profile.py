"""The same rules as a seccomp profile of docker, podman and containerd (JSON), which their runtime compiles.

Such a profile knows no order and no "unless": a call gets the verdict of the entry that its arguments match. So each
test becomes two sets of patterns that do not meet: those that pass and those that are refused.
"""

from __future__ import annotations

import errno
import itertools
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from remit.parts.sandbox.seccomp.filter import ABSENT, ARCHITECTURES, FORBIDDEN, REFUSED, ArgumentTest

_NAMES: Final = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW: Final = 0xFFFFFFFF
"""The kernel looks at no more of the arguments that are tested."""
_TOP_BIT: Final = 1 << 31


class Pattern(NamedTuple):
    """Arguments that match: those whose bits under the mask are the value's."""

    mask: int
    value: int


_ANYTHING: Final = Pattern(0, 0)
_Match = Mapping[int, Pattern]
"""By the argument's number; arguments that are not named may be anything."""


@cache
def profile(machine: str) -> bytes:
    """The profile for a machine, as `platform.machine()` names it. Raises KeyError for one that has no table."""
    numbers = ARCHITECTURES[machine].numbers
    plain = sorted(name for name in numbers if name not in ABSENT | FORBIDDEN and name not in REFUSED)
    calls: list[dict[str, Any]] = [
        {"names": plain, "action": "SCMP_ACT_ALLOW"},
        _refusal(sorted(numbers.keys() & FORBIDDEN), errno.EPERM),
        # Named as well: an old service answers what is not named with EPERM, and the C library needs ENOSYS.
        _refusal(sorted(numbers.keys() & ABSENT), errno.ENOSYS),
    ]
    for name in sorted(numbers.keys() & REFUSED.keys()):
        calls += _tested(name, REFUSED[name])
    document = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": [_NAMES[machine]],
        "syscalls": calls,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _refusal(names: list[str], error: int) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _tested(name: str, tests: Iterable[ArgumentTest]) -> list[dict[str, Any]]:
    passes: list[_Match] = [{}]
    entries = []
    for test in tests:
        hits, misses = _cases(test)
        entries += [_refusal([name], test.error) | {"args": _words(condition)} for condition in hits]
        both = (_both(condition, other) for condition, other in itertools.product(passes, misses))
        passes = [condition for condition in both if condition is not None]
    return entries + [{"names": [name], "action": "SCMP_ACT_ALLOW", "args": _words(condition)} for condition in passes]


def _cases(test: ArgumentTest) -> tuple[list[_Match], list[_Match]]:
    """Return what the test refuses, and what it lets pass."""
    if test.how == "any_bit":
        [bits] = test.values
        hits, misses = [Pattern(bit, bit) for bit in _bits(bits)], [Pattern(bits, 0)]
    else:
        mask = _LOW if test.mask is None else test.mask
        named, rest = [Pattern(mask, value) for value in test.values], list(others(mask, test.values))
        hits, misses = (rest, named) if test.how == "not_in" else (named, rest)
    if test.only_if is None:
        return [{test.number: hit} for hit in hits], [{test.number: hit} for hit in misses]
    index, only = test.only_if
    counts: list[_Match] = [{test.number: hit, index: Pattern(bit, bit)} for hit in hits for bit in _bits(only)]
    return counts, [{index: Pattern(only, 0)}, *({test.number: hit} for hit in misses)]


def _bits(number: int) -> list[int]:
    return [1 << at for at in range(32) if number >> at & 1]


def others(mask: int, values: Iterable[int], bit: int = _TOP_BIT, above: Pattern = _ANYTHING) -> Iterable[Pattern]:
    """Patterns for all other numbers: exactly one matches each number that differs from every value under the mask."""
    within = [value for value in values if value & above.mask == above.value]
    if not within:
        yield above
    elif bit and not mask & bit:
        yield from others(mask, within, bit >> 1, above)
    elif bit:
        for value in (0, bit):
            yield from others(mask, within, bit >> 1, Pattern(above.mask | bit, above.value | value))


def _both(match: _Match, other: _Match) -> _Match | None:
    """Return what matches both; None if nothing can."""
    both = dict(match)
    for number, pattern in other.items():
        ours = both.get(number, _ANYTHING)
        if (ours.value ^ pattern.value) & ours.mask & pattern.mask:
            return None
        both[number] = Pattern(ours.mask | pattern.mask, ours.value | pattern.value)
    return both


def _words(match: _Match) -> list[dict[str, Any]]:
    return [
        {"index": number, "value": pattern.mask, "valueTwo": pattern.value, "op": "SCMP_CMP_MASKED_EQ"}
        for number, pattern in sorted(match.items())
    ]
