from __future__ import annotations

import pytest

from remit.http.addresses import AddressPlace, BlockedAddressError, reachable, why_blocked

BLOCKED = [
    "127.0.0.1",
    "0.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "169.254.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:a00:1::",
    "192.0.0.192",
    "192.88.99.1",
    "192.31.196.1",
    "fec0::1",
    "3fff::1",
    "2607:f8b0::5efe:a00:1",
    "2607:f8b0::200:5efe:7f00:1",
    "::8.8.8.8",
    "100::1",
    "5f00::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "64:ff9b:1::808:808",
    "not-an-address",
    "1.2.3",
    "0x7f.1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", BLOCKED)
def test_an_address_that_is_not_public_is_blocked(address: str) -> None:
    assert why_blocked(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert why_blocked(address) == ""


async def test_one_private_address_among_public_ones_blocks_the_host() -> None:
    async def both(_host: str, _port: int) -> list[str]:
        return ["1.1.1.1", "10.0.0.1"]

    with pytest.raises(BlockedAddressError, match=r"evil.example has the address 10.0.0.1: it is not public"):
        await reachable("evil.example", 443, both)


async def test_a_host_is_resolved_once_and_its_addresses_come_back() -> None:
    asked: list[str] = []

    async def one(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["1.1.1.1"]

    assert await reachable("good.example", 443, one) == [AddressPlace("1.1.1.1", 443)]
    assert asked == ["good.example"]


async def test_a_host_without_an_address_is_an_error() -> None:
    async def none(_host: str, _port: int) -> list[str]:
        return []

    with pytest.raises(OSError, match="no address"):
        await reachable("empty.example", 1, none)
    with pytest.raises(BlockedAddressError):
        await reachable("localhost", 80)
