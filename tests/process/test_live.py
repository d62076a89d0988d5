from __future__ import annotations

import itertools
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from remit.process.live import LiveLines

STREAM: st.SearchStrategy[Literal["stdout", "stderr"]] = st.sampled_from(["stdout", "stderr"])


@given(st.lists(st.tuples(STREAM, st.binary(max_size=40) | st.just("ä€\n".encode()) | st.just(b"x" * 5_000))))
def test_nothing_is_lost_between_chunks_however_they_are_cut(
    chunks: list[tuple[Literal["stdout", "stderr"], bytes]],
) -> None:
    said: list[tuple[float, str]] = []
    live = LiveLines(lambda done, total, text: said.append((done, text)))
    for stream, data in chunks:
        live(stream, data)
    live.end()
    written = {name: b"".join(data for stream, data in chunks if stream == name) for name in ("stdout", "stderr")}
    texts = [written[name].decode(errors="replace").replace("\n", "") for name in written]
    assert sorted("".join(text for _, text in said)) == sorted("".join(texts))
    assert [done for done, _ in said] == list(range(1, len(said) + 1))
    assert all(len(text) <= 4_000 and "\n" not in text for _, text in said)


@given(st.text(max_size=300), st.lists(st.integers(0, 300), max_size=10))
def test_lines_come_in_order_and_whole(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-8", "replace")
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    said: list[str] = []
    live = LiveLines(lambda done, total, line: said.append(line))
    for start, end in itertools.pairwise(places):
        live("stdout", data[start:end])
    live.end()
    wanted = data.decode().split("\n")
    assert said == (wanted if wanted[-1] else wanted[:-1])


def test_a_secret_is_masked_wherever_a_long_line_is_cut() -> None:
    for before in range(0, 17_000, 350):
        said: list[str] = []
        live = LiveLines(lambda done, total, line: said.append(line))  # noqa: B023 - called within the round
        live("stdout", b"word " * (before // 5) + b"token=abc123def456 next " + b"more " * 4_000)
        live.end()
        assert "token=******** next" in "".join(said)
        assert not any("def456" in line for line in said)


def test_what_else_is_secret_is_masked_before_a_line_is_cut() -> None:
    pieces = list[str]()
    lines = LiveLines(lambda _done, _total, text: pieces.append(text), lambda text: text.replace("swordfish", "*"))
    lines("stderr", b"x" * 3_995 + b"swordfish" + b"y" * 40_000 + b"swordfish")
    lines.end()
    assert "".join(pieces) == "x" * 3_995 + "*" + "y" * 40_000 + "*"


def test_a_private_key_is_masked_in_every_line_of_it() -> None:
    said: list[str] = []
    live = LiveLines(lambda _done, _total, line: said.append(line))
    live("stderr", b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n")
    live("stdout", b"meanwhile\n")
    live("stderr", b"BAQEFAASCBK\n-----END PRIVATE KEY-----\nafter\n")
    assert said == ["********", "********", "meanwhile", "********", "********", "after"]
