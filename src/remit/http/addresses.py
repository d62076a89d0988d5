"""Which addresses may be reached on behalf of someone else: public ones only.

A name is resolved once, every address that it has is judged, and the connection goes to an address that was judged:
a second look-up could give another answer (DNS rebinding). Sources: RFC 6890 and the registries of special addresses
that it opened, as of 2026, since what Python calls global depends on its version; and RFC 6052, 3056, 4380 and 5214
for addresses that carry another one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host; raises OSError if it has none."""

_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_METADATA: Final = frozenset({"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"})
"""Where clouds tell a machine its secrets; one of them is a public address."""
_UNICAST: Final = IPv6Network("2000::/3")
"""All that is given out for hosts of version 6."""
_SPECIAL: Final[tuple[IPv4Network | IPv6Network, ...]] = (
    *map(IPv4Network, ("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24")),
    *map(IPv6Network, ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20", "5f00::/16")),
)
"""Given out for protocols and documentation, though some versions of Python call parts of it global."""
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""Third quarter of a version 6 address whose last one is an address of version 4 (RFC 5214)."""


class BlockedAddressError(Exception):
    """The host has an address that must not be reached."""


class AddressPlace(NamedTuple):
    """An address that may be reached."""

    address: str
    port: int


def why_blocked(text: str) -> str:
    """Return why an address must not be reached; empty: it may."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return "it is not an address"
    for ip in _carried(address):
        if str(ip) in _METADATA:
            return "it serves cloud credentials"
        if not ip.is_global or ip.is_multicast or ip.is_reserved or _is_special(ip):
            return "it is not public"
    return ""


def _is_special(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return True
    return any(address.version == network.version and address in network for network in _SPECIAL)


async def reachable(host: str, port: int, resolve: Resolver | None = None) -> list[AddressPlace]:
    """The places behind a host, all of them public.

    Raises BlockedAddressError if any address of it is not public, and OSError if the host has none.
    """
    addresses = await (resolve or resolved)(host, port)
    if not addresses:
        raise OSError(f"{host} has no address")
    for address in addresses:
        if reason := why_blocked(address):
            raise BlockedAddressError(f"{host} has the address {address}: {reason}")
    return [AddressPlace(address, port) for address in addresses]


async def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host, as this machine knows them. Raises OSError."""
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in rows))


def _carried(address: Address) -> list[Address]:
    """The address, and those that it stands for on the way."""
    addresses: list[Address] = [address]
    if isinstance(address, IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if any(address in network for network in _NAT64) or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
        addresses += [ip for ip in inner if ip is not None]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        addresses.remove(address)  # the kernel connects to what it maps
    return addresses
