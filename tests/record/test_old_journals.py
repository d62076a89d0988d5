"""What journals of older Remits say today is what they said before: bytes of JSON that programs read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.old.golden import GOLDEN, NAMES, lines, unpack


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all journals; what commands do to this process's logging is undone."""
    folder = tmp_path_factory.mktemp("journals")
    unpack(folder)
    logger = logging.getLogger("remit")
    kept = (list(logger.handlers), logger.level, logger.propagate)
    yield folder
    logger.handlers[:], logger.level, logger.propagate = kept


@pytest.mark.parametrize("name", NAMES)
def test_every_face_says_of_an_old_journal_what_it_said(journals: Path, name: str) -> None:
    assert lines(journals / f"{name}.db") == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def test_every_old_journal_is_held(journals: Path) -> None:
    assert {path.stem for path in journals.glob("*.db")} == set(NAMES)
