"""Lines are the same however the bytes come in, within a cap, and cost what their bytes cost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.jsonrpc.stream import LineReader, LineTooLongError

CAP = 1_000
CHUNK = 64 * 1024


def fed(chunks: list[bytes], cap: int = CAP) -> list[bytes]:
    lines = LineReader(cap)
    return [line for chunk in chunks for line in lines.feed(chunk)]


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 400), max_size=20))
def test_any_chunking_gives_the_same_lines(texts: list[bytes], cuts: list[int]) -> None:
    texts = [text.replace(b"\n", b"") for text in texts]
    stream = b"".join(text + b"\n" for text in texts)
    places = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert fed(chunks) == texts


@given(st.binary(max_size=300))
def test_byte_by_byte_is_no_different(stream: bytes) -> None:
    assert fed([bytes([byte]) for byte in stream]) == fed([stream]) == stream.split(b"\n")[:-1]


def test_an_unfinished_line_is_kept_until_its_end_comes() -> None:
    lines = LineReader(CAP)
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"") == []
    assert lines.feed(b"o") == []
    assert lines.feed(b"\n\nthree\n") == [b"two", b"", b"three"]


@pytest.mark.parametrize("pieces", [[b"x" * 11], [b"x" * 6, b"x" * 5], [b"x" * 11 + b"\n"], [b"ok\n" + b"x" * 11]])
def test_a_line_beyond_the_cap_ends_it(pieces: list[bytes]) -> None:
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        fed(pieces, cap=10)


def test_a_line_of_just_the_cap_is_taken() -> None:
    assert fed([b"x" * 6, b"x" * 4 + b"\n"], cap=10) == [b"x" * 10]


class Counted(bytes):
    """Bytes that count what is copied out of them."""

    copied = 0

    def split(self, sep: bytes | None = None, maxsplit: int = -1) -> list[bytes]:  # type: ignore[override] # a position
        parts = super().split(sep, maxsplit)
        Counted.copied += sum(map(len, parts))
        return parts


def test_a_line_of_50_mb_in_small_chunks_is_copied_a_bounded_number_of_times() -> None:
    """Counted: each byte is cut out of its chunk once, and joined once."""
    size = 50 * 1024 * 1024
    lines = LineReader(size)
    chunk = Counted(b"x" * CHUNK)
    Counted.copied = 0
    for _ in range(size // CHUNK):
        assert lines.feed(chunk) == []
    held = lines._pieces
    assert len(held) == size // CHUNK, "pieces are kept apart until the end"
    (line,) = lines.feed(b"\n")
    assert len(line) == size
    assert Counted.copied == size
    assert lines._pieces == []
