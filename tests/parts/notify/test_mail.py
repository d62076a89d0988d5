"""A message is handed in as a mail, encrypted and with a login where the settings say so."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.parts.notify.sender import AttemptEnd, Notice, Sender
from remit.parts.notify.target import NotifyTarget
from remit_testing.clock import ManualClock
from tests.http.certificates import certificate
from tests.parts.notify.servers import MailServer

MESSAGE = Notice(
    id="n_1",
    event="failed",
    at="2026-01-01T00:00:00Z",
    title="repay failed: über",
    job="job_1",
    url="https://r.example",
)


@asynccontextmanager
async def running(server: MailServer) -> AsyncIterator[MailServer]:
    async with await server.start():
        yield server


async def send(
    server: MailServer, *, host: str = "127.0.0.1", environ: dict[str, str] | None = None, **keys: Any
) -> AttemptEnd:
    table = {
        "name": "mail",
        "email": ["oncall@example.com", "boss@example.com"],
        "from": "remit@example.com",
        "smtp": f"smtp://{host}:{server.port}",
        **keys,
    }
    return await Sender(environ or {}, ".", ManualClock()).send(msgspec.convert(table, NotifyTarget), MESSAGE)


async def test_a_mail_says_what_happened_and_is_the_same_one_each_time() -> None:
    async with running(MailServer()) as server:
        assert await send(server) == AttemptEnd(ok=True, words="accepted by 127.0.0.1")
    ((sender, recipients, text),) = server.taken
    mail = message_from_bytes(text.removesuffix(b".\r\n"), policy=policy.default)
    assert sender.lower().startswith("from:<remit@example.com>")
    assert [each.lower() for each in recipients] == ["to:<oncall@example.com>", "to:<boss@example.com>"]
    assert (mail["Subject"], mail["Message-ID"]) == ("repay failed: über", "<n_1@example.com>")
    assert mail["Date"].datetime.isoformat() == "2026-01-01T00:00:00+00:00"
    content = mail.get_content()
    assert content.splitlines() == ["repay failed: über", "", "Job: job_1", "", "https://r.example"]


async def test_a_login_is_made_with_the_password_of_the_environment() -> None:
    async with running(MailServer(login=("remit", "hunter22"))) as server:
        keys = {"user": "remit", "password": "${WORD}"}
        assert (await send(server, environ={"WORD": "hunter22"}, **keys)).ok
        wrong = await send(server, environ={"WORD": "hunter23"}, **keys)
    assert not wrong.ok
    assert "SMTPAuthenticationError" in wrong.words
    assert "hunter23" not in wrong.words, "the server says it back"
    assert len(server.taken) == 1


async def test_one_refused_address_does_not_repeat_the_mail_for_the_others() -> None:
    async with running(MailServer()) as server:
        server.refused = {"boss@example.com"}
        answer = await send(server)
        server.refused = {"example.com"}
        nobody = await send(server)
    assert answer == AttemptEnd(ok=True, words="accepted by 127.0.0.1, but not for boss@example.com")
    assert not nobody.ok


async def test_without_starttls_no_mail_leaves_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.parts.notify.sender.is_loopback", lambda host: False)
    async with running(MailServer()) as server:
        answer = await send(server, user="remit", password="hunter22")
    assert not answer.ok
    assert server.taken == []
    assert "AUTH" not in server.commands


async def test_a_certificate_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("remit.parts.notify.sender.is_loopback", lambda host: False)
    made = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert, made.key)
    async with running(MailServer(context, ("remit", "hunter22"))) as server:
        unknown = await send(server, host="localhost", user="remit", password="hunter22")
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        known = await send(server, host="localhost", user="remit", password="hunter22")
    assert "CERTIFICATE_VERIFY_FAILED" in unknown.words
    assert known == AttemptEnd(ok=True, words="accepted by localhost")
    assert [verb for verb in server.commands if verb in {"STARTTLS", "AUTH"}] == ["STARTTLS", "STARTTLS", "AUTH"]
