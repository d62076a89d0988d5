"""`make wheel CORE=1`: what is built without parts holds none of them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts.dist import distributions
from scripts.wheel import tree_without
from tests.wiring.test_without_parts import PARTS


@pytest.mark.slow
@pytest.mark.parametrize("gone", [[], ["work"], PARTS], ids=["none", "one", "all"])
def test_a_wheel_holds_the_parts_that_were_not_left_out(gone: list[str], tmp_path: Path) -> None:
    wheel, _ = distributions(tree_without(gone, tmp_path / "tree"), tmp_path / "made", 0)
    place = tmp_path / wheel.name
    place.write_bytes(wheel.data)
    names = [name.split("/") for name in zipfile.ZipFile(place).namelist() if name.startswith("remit/parts/")]
    assert {name[2] for name in names if len(name) > 3} == set(PARTS) - set(gone)
