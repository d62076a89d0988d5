from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remit.process.child import Tail


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_a_tail_is_the_end_of_what_came_in_whatever_the_pieces(pieces: list[bytes], cap: int) -> None:
    tail, whole = Tail(cap), b"".join(pieces)
    for piece in pieces:
        tail.feed(piece)
    assert tail.data == whole[-cap:]
    assert tail.size == len(whole)
    assert tail.truncated == (len(whole) > cap)


def test_a_tail_holds_no_more_than_its_cap_and_one_piece() -> None:
    tail = Tail(100)
    for _ in range(10_000):
        tail.feed(b"x" * 30)
    assert sum(map(len, tail._pieces)) <= 130
