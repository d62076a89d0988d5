"""The service keeps its promises over a journal here, and over a live server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.client import RemoteRemit
from remit.service.service import Service
from remit_testing.service import SERVICE_CHECKS
from remit_testing.service.world import Check
from tests.client.conftest import serving

pytestmark = pytest.mark.slow


@asynccontextmanager
async def local(service: Service) -> AsyncIterator[Service]:
    yield service


@asynccontextmanager
async def remote(service: Service) -> AsyncIterator[Service]:
    async with serving(service) as url, RemoteRemit(url, "") as remit:
        yield remit.service


@pytest.mark.parametrize("check", SERVICE_CHECKS, ids=lambda check: check.__name__)
async def test_a_service_here(check: Check) -> None:
    await check(local)


@pytest.mark.parametrize("check", SERVICE_CHECKS, ids=lambda check: check.__name__)
async def test_a_service_over_http(check: Check) -> None:
    await check(remote)
