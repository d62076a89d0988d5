"""Steps of two runs are aligned by place, tool and arguments; what was put in moves nothing that follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.forks.diff import StepMark, aligned


def marks(text: str) -> list[StepMark]:
    """`1:look(a)` is a step at 1 that looks with the argument a."""
    found = []
    for word in text.split():
        step, _, rest = word.partition(":")
        what, _, args = rest.rstrip(")").partition("(")
        found.append(StepMark(step, what, args))
    return found


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("1:a(x) 2:b(x)", "1:a(x) 2:b(x)", "1=1 2=2"),
        ("1:a(x) 2:b(x)", "1:n() 2:a(x) 3:b(x)", "=1 1=2 2=3"),
        ("1:n() 2:a(x) 3:b(x)", "1:a(x) 2:b(x)", "1= 2=1 3=2"),
        ("1:a(x) 2:a(y) 3:a(z)", "1:a(x) 2:a(z)", "1=1 2= 3=2"),
        ("1:a(x) 2:b(x)", "1:a(x) 2:b(y)", "1=1 2=2"),
        ("1:a(x) 2:b(x)", "1:a(x) 2:c(x)", "1=1 2= =2"),
        ("1.0.1:a(x) 1.1.1:a(y) 2:b()", "1:n() 2.0.1:a(x) 2.1.1:a(y) 3:b()", "=1 1.0.1=2.0.1 1.1.1=2.1.1 2=3"),
        ("1.0.1:a(x) 1.1.1:a(y)", "1.0.1:a(y)", "1.0.1= 1.1.1=1.0.1"),
        ("1.0.1:a(x) 1.0.2:b(x)", "1.0.1:a(x) 1.0.2:n() 1.0.3:b(x)", "1.0.1=1.0.1 =1.0.2 1.0.2=1.0.3"),
        ("1:child(x) 1.1:a(x)", "1:child(x) 1.1:a(y) 1.2:b()", "1=1 1.1=1.1 =1.2"),
        ("", "1:a()", "=1"),
        ("", "", ""),
        ("charge:a(x) 1:b()", "1:b() charge:a(x)", "=1 charge=charge 1="),
    ],
)
def test_steps_are_found_again(left: str, right: str, pairs: str) -> None:
    assert " ".join(f"{one}={two}" for one, two in aligned(marks(left), marks(right))) == pairs


STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=12)


@given(STEPS, STEPS)
def test_every_step_of_both_runs_comes_once_and_in_order(
    one: list[tuple[str, str]], two: list[tuple[str, str]]
) -> None:
    left = [StepMark(str(place), *step) for place, step in enumerate(one, 1)]
    right = [StepMark(str(place), *step) for place, step in enumerate(two, 1)]
    pairs = aligned(left, right)
    assert [a for a, _ in pairs if a] == [mark.step for mark in left]
    assert [b for _, b in pairs if b] == [mark.step for mark in right]
    assert all(a and b for a, b in aligned(left, left))


def test_long_runs_without_anything_in_common_are_aligned_too() -> None:
    left = [StepMark(str(n), "a", f"x{n}") for n in range(1, 8_001)]
    right = [StepMark(str(n), "a", f"y{n}") for n in range(1, 8_001)]
    assert aligned(left, right)[-1] == ("8000", "8000")
