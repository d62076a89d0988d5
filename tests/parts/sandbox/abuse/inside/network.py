"""Probes of the network and of sockets. Datagram sockets are only connected: that sends nothing."""

from __future__ import annotations

import os
import socket

from tests.parts.sandbox.abuse.inside.kit import Facts, Try, probe, read

GROUP = "network"
FAMILIES = {
    "VSOCK": (40, socket.SOCK_STREAM),
    "NETLINK": (16, socket.SOCK_RAW),
    "PACKET": (17, socket.SOCK_DGRAM),
    "ALG": (38, socket.SOCK_SEQPACKET),
    "KEY": (15, socket.SOCK_RAW),
    "XDP": (44, socket.SOCK_RAW),
    "BLUETOOTH": (31, socket.SOCK_STREAM),
    "CAN": (29, socket.SOCK_RAW),
    "TIPC": (30, socket.SOCK_STREAM),
    "RDS": (21, socket.SOCK_SEQPACKET),
    "MCTP": (45, socket.SOCK_DGRAM),
    "QIPCRTR": (42, socket.SOCK_DGRAM),
}
ADDRESSES = {
    "the address of a cloud's metadata": (socket.AF_INET, "169.254.169.254"),
    "a public address": (socket.AF_INET, "192.0.2.1"),
    "a public address of IPv6": (socket.AF_INET6, "2001:db8::1"),
    "a private address": (socket.AF_INET, "10.0.0.1"),
}


def _made(family: int, kind: int) -> Try:
    def run(facts: Facts) -> str:
        socket.socket(family, kind).close()
        return "a socket was made"

    return run


for _name, (_family, _kind) in FAMILIES.items():
    probe(GROUP, f"make a socket of {_name}")(_made(_family, _kind))


def _routed(family: int, address: str) -> Try:
    def run(facts: Facts) -> str:
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.connect((address, 9))
            return f"a way there from {one.getsockname()[0]}"

    return run


for _name, (_family, _address) in ADDRESSES.items():
    probe(GROUP, f"find a way to {_name}")(_routed(_family, _address))


def _connected(family: int, fact: str) -> Try:
    def run(facts: Facts) -> str:
        host = "127.0.0.1" if family == socket.AF_INET else "::1"
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(2)
            one.connect((host, int(facts[fact])))
        return "connected"

    return run


probe(GROUP, "connect to a server on the machine's loopback")(_connected(socket.AF_INET, "port"))
probe(GROUP, "connect to it by IPv6")(_connected(socket.AF_INET6, "port6"))


@probe(GROUP, "connect to an abstract socket of the machine")
def abstract(facts: Facts) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\0" + facts["abstract"])
    return "connected"


@probe(GROUP, "connect to a socket file of the machine")
def socket_file(facts: Facts) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(facts["socket"])
    return "connected"


@probe(GROUP, "connect to a socket file in the inputs")
def socket_inputs(facts: Facts) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("/inputs/socket")
    return "connected"


@probe(GROUP, "make a raw socket")
def raw(facts: Facts) -> str:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "made"


@probe(GROUP, "make a socket with a family in high bits")
def high(facts: Facts) -> str:
    from tests.parts.sandbox.abuse.inside.kit import called

    number = 41 if os.uname().machine == "x86_64" else 198
    found, _ = called(number, 16 | 1 << 32, socket.SOCK_RAW, 0)
    return "made" if found >= 0 else ""


@probe(GROUP, "see interfaces other than loopback")
def interfaces(facts: Facts) -> str:
    lines = read("/proc/self/net/dev", 10_000).splitlines()[2:]
    return " ".join(name for line in lines if (name := line.split(":")[0].strip()) != "lo")


@probe(GROUP, "see who listens on the machine")
def listening(facts: Facts) -> str:
    wanted = f":{int(facts['port']):04X} "
    return "the server is in sight" if wanted in read("/proc/self/net/tcp", 1_000_000) else ""


@probe(GROUP, "see abstract sockets of the machine")
def listed(facts: Facts) -> str:
    return "the socket is in sight" if facts["abstract"] in read("/proc/self/net/unix", 1_000_000) else ""


@probe(GROUP, "listen where the machine can be reached")
def reached(facts: Facts) -> str:
    """Whoever is within the machine's network finds the server's port taken."""
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", int(facts["port"])))
        except OSError as error:
            return "its port is taken: the network is the machine's" if error.errno == 98 else ""
    return ""
