"""Ports for servers that have to know theirs before they listen there."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine's own that no one else gets for as long as this process lives.

    It stays bound, and nobody listens: a server may, with SO_REUSEADDR, as servers do; the system gives it to no other.
    """
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holding.bind(("127.0.0.1", 0))
    port: int = holding.getsockname()[1]
    holding.detach()  # its descriptor stays open, and Python complains of no socket that nobody closed
    return port
