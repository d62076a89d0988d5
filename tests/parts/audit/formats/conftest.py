"""The errands, done once a process: each test gets an account of its own, made of the same package."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from remit.parts.audit.formats.account import ExportAccount
from tests.opened import OpenRemit
from tests.parts.audit.formats.errands import package_of, ran

_PACKAGES: dict[bool, bytes] = {}
"""By whether the job waits."""


async def _account(remit_in: OpenRemit, folder: Path, *, waits: bool) -> ExportAccount:
    if waits not in _PACKAGES:
        _PACKAGES[waits] = await package_of(remit_in, folder, await ran(remit_in, folder, waits=waits))
    return ExportAccount(BytesIO(_PACKAGES[waits]))


@pytest.fixture
async def ended(remit_in: OpenRemit, tmp_path: Path) -> ExportAccount:
    """The account of a job that ended."""
    return await _account(remit_in, tmp_path, waits=False)


@pytest.fixture
async def waiting(remit_in: OpenRemit, tmp_path: Path) -> ExportAccount:
    """The account of a job that waits for an approval."""
    return await _account(remit_in, tmp_path, waits=True)
