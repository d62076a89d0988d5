"""Fixtures that tests of several floors share."""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from remit import Remit
from remit.settings import load
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit

# No test asserts times; on CI every run sees the same examples, elsewhere new ones. `--quick` asks for fewer.
settings.register_profile(
    "remit",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=int(os.environ.get("REMIT_TEST_EXAMPLES", "50")),
)
settings.register_profile("quick", settings.get_profile("remit"), max_examples=10)
settings.load_profile("remit")

# More rounds of a test, which somebody asked for by a number, take longer than the limit of one. A mark still counts.
if any(name.startswith("REMIT_TEST_") and value.isdecimal() for name, value in os.environ.items()):
    os.environ.setdefault("PYTEST_TIMEOUT", "7200")

# Tests make their own projects, and trust them; tests of trust take this away again. It reaches children too.
os.environ["REMIT_TRUST"] = "1"

# A shell starts what runs in its background with Ctrl-C ignored, and ignored it would stay, here and in every child.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What collection makes lives as long as the process: looking through it for garbage is time for nothing, in every test.
gc.disable()

_ALL_SLOW: Final = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)
_numbers = itertools.count()
_ROWS: Final = 3
"""Rows of a table of cases that `--quick` runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--quick`: a minute's breadth, for a developer; everything else is for `make test`."""
    parser.addoption(
        "--quick",
        action="store_true",
        help=f"leave out slow tests and those of the documentation; of each table {_ROWS} rows, few random examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load what `--quick` stands for."""
    if config.option.quick:
        config.option.markexpr = config.option.markexpr or "not slow"
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files whose tests are all slow where slow ones are: they import most, and would be deselected."""
    if config.option.quick and collection_path == Path(__file__).parent / "docs":
        return True
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave three rows of each table to `--quick`: its first, its last and the one in the middle."""
    if not config.option.quick:
        return
    tables: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if "callspec" in vars(item) and item.get_closest_marker("whole") is None:
            tables[item.nodeid.partition("[")[0]].append(item)
    left = {
        id(row)
        for rows in tables.values()
        for row in set(rows) - {rows[place * (len(rows) - 1) // (_ROWS - 1)] for place in range(_ROWS)}
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def remit_in(tmp_path: Path) -> OpenRemit:
    """A factory of Remits that see no settings but the test's."""

    def make(**given: Any) -> Remit:
        flags = {"journal.url": str(tmp_path / "journal.db"), "app.principal": "alice", **given.pop("flags", {})}
        return Remit(settings=load(env={}, cwd=tmp_path, flags=flags), **given)

    return make


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process that end none and need no settings of their own."""
    with PostgresServer.running() as server:
        yield server


@pytest.fixture
def schema() -> str:
    """A name that no other test uses."""
    return f"test_{next(_numbers)}"


@pytest.fixture
def storage(postgres: PostgresServer, schema: str) -> PostgresStorage:
    return PostgresStorage(f"{postgres.url}&schema={schema}")
