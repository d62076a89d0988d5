from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

from remit.frames import MOST, frames_of


def fail(depth: int = 0) -> None:
    if depth:
        fail(depth - 1)
    raise LookupError("secret")


def raised(function: Callable[[], object]) -> BaseException:
    with pytest.raises((LookupError, ValueError)) as caught:
        function()
    return caught.value


def line_of(trace: TracebackType | None) -> int:
    assert trace is not None
    return line_of(trace.tb_next) if trace.tb_next else trace.tb_lineno


def test_the_innermost_frame_stands_last_with_file_line_and_function() -> None:
    error = raised(fail)
    assert frames_of(error)[-1] == f"tests/test_frames.py:{line_of(error.__traceback__)} in fail"
    assert "secret" not in "".join(frames_of(error))


def test_frames_of_libraries_are_left_out() -> None:
    frames = frames_of(raised(lambda: json.loads("{")))
    assert all("test_frames.py" in frame for frame in frames)


def test_a_deep_traceback_keeps_its_first_frame_and_the_last_ones() -> None:
    frames = frames_of(raised(lambda: fail(50)))
    assert len(frames) == MOST
    assert frames[0].endswith("in raised")
    assert frames[-1].endswith("in fail")


def test_a_file_elsewhere_is_named_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert frames_of(raised(fail))[-1].startswith(str(Path(__file__)))


def test_an_exception_that_was_never_raised_has_none() -> None:
    assert frames_of(ValueError()) == ()
