"""A port of a test stays its own, and a server may listen there more than once."""

from __future__ import annotations

import socket

import pytest

from remit.http.server import listen
from tests.ports import free_port


def test_a_port_is_nobody_else_s_and_a_server_may_come_back_to_it() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ports[0]))
        with listen("127.0.0.1", ports[0]), socket.create_connection(("127.0.0.1", ports[0])) as met:
            assert met.getpeername()[1] == ports[0]
