"""Servers on this machine that notifications are sent to: a web server and a mail server, on real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

from tests.patience import PATIENCE_S

OK: Final[tuple[int, dict[str, str], bytes]] = (200, {}, b"ok")


class Posted(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Hook:
    """A web server that keeps what is posted to it, and answers as it is told; without more to say, with 200."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.before_answer: Callable[[], None] = lambda: None
        self.arrived = threading.Condition()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook.arrived:
                    hook.posted.append(Posted(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                    status, headers, text = hook.answers.pop(0) if hook.answers else OK
                    hook.arrived.notify_all()
                hook.before_answer()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    async def until(self, count: int) -> list[Posted]:
        """Wait until so much was posted."""

        def wait() -> bool:
            with self.arrived:
                return self.arrived.wait_for(lambda: len(self.posted) >= count, PATIENCE_S)

        assert await asyncio.to_thread(wait), f"{len(self.posted)} of {count} messages arrived"
        return self.posted


@contextmanager
def running_hook() -> Iterator[Hook]:
    """A web server for the length of the block."""
    hook = Hook()
    thread = threading.Thread(target=hook.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hook
    finally:
        hook.server.shutdown()
        hook.server.server_close()
        thread.join()


class MailServer:
    """A mail server that keeps what it takes: EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA (RFC 5321, 3207, 4954)."""

    def __init__(self, tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None) -> None:
        """Offer STARTTLS with `tls`, and ask for this name and password."""
        self.taken: list[tuple[str, list[str], bytes]] = []
        """Sender, recipients and text of each mail."""
        self.commands: list[str] = []
        self.refused: set[str] = set()
        """Addresses that get no mail."""
        self._tls, self._login = tls, login
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender, recipients, known = "", list[str](), self._login is None
        writer.write(b"220 mail.example ESMTP\r\n")
        while line := await reader.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            self.commands.append(verb.upper())
            match verb.upper():
                case "EHLO":
                    offers = ["STARTTLS"] * (self._tls is not None) + ["AUTH PLAIN"] * (self._login is not None)
                    lines = ["mail.example", *offers]
                    ends = ["-"] * (len(lines) - 1) + [" "]
                    writer.write("".join(f"250{end}{one}\r\n" for end, one in zip(ends, lines, strict=True)).encode())
                case "STARTTLS" if self._tls is not None:
                    writer.write(b"220 go on\r\n")
                    await writer.drain()
                    await writer.start_tls(self._tls)
                case "AUTH":
                    _, name, password = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
                    known = (name, password) == self._login
                    writer.write(b"235 welcome\r\n" if known else f"535 not {password}\r\n".encode())
                case "MAIL" if known:
                    sender = rest
                    writer.write(b"250 ok\r\n")
                case "RCPT" if known:
                    refused = any(one in rest for one in self.refused)
                    recipients += [] if refused else [rest]
                    writer.write(b"550 no such person\r\n" if refused else b"250 ok\r\n")
                case "DATA" if recipients:
                    writer.write(b"354 go on\r\n")
                    text = await reader.readuntil(b"\r\n.\r\n")
                    self.taken.append((sender, recipients, text))
                    writer.write(b"250 ok\r\n")
                case "RSET":
                    writer.write(b"250 ok\r\n")
                case "QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                case _:
                    writer.write(b"503 not now\r\n")
            await writer.drain()
        writer.close()
