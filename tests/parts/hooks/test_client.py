"""Both clients end with 2 on every failure, and print nothing then that an agent could take for leave."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.parts.hooks import places
from tests.parts.hooks.fake_guard import ANSWERS, answering

SOURCE = Path(places.__file__).parent
ALLOWED = b'0{"decision": "allow"}\n'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = tmp_path_factory.mktemp("client") / "client"
    compiler = shutil.which("cc")
    assert compiler is not None
    options = ("-Wall", "-Wextra", "-Werror", *places._FREESTANDING)
    subprocess.run([compiler, *options, "-o", str(compiled), str(SOURCE / "client.c")], check=True)
    return compiled


@pytest.fixture(params=["c", "python"])
def client(request: pytest.FixtureRequest, program: Path) -> list[str]:
    return [str(program)] if request.param == "c" else [sys.executable, "-I", "-S", str(SOURCE / "client.py")]


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c-") as place:
        yield Path(place) / "socket"


async def asked(client: list[str], socket: Path, *words: str, message: bytes = b"{}") -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        *client, str(socket), *(words or ("1", "claude.before", "/bin/false")),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate(message)
    return process.returncode or 0, out, err


@pytest.mark.parametrize("answer", ANSWERS)
async def test_an_answer_that_is_none_ends_with_2(client: list[str], socket: Path, answer: str) -> None:
    async with answering(socket, ANSWERS[answer]):
        status, out, err = await asked(client, socket)
    assert (status, out) == (2, b"")
    assert b"the call is not made" in err


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ALLOWED, (0, ALLOWED[1:], b"")),
        (b"0\n", (0, b"", b"")),
        (b"2no: it is forbidden\n", (2, b"", b"no: it is forbidden\n")),
    ],
)
async def test_an_answer_is_passed_on(
    client: list[str], socket: Path, answer: bytes, told: tuple[int, bytes, bytes]
) -> None:
    async with answering(socket, answer) as came:
        assert await asked(client, socket, message=b'{"tool_name": "Bash"}') == told
    assert came == [b'claude.before {"tool_name": "Bash"}']


async def test_a_long_message_arrives_whole(client: list[str], socket: Path) -> None:
    message = b'{"content": "%s"}' % (b"x" * 5_000_000)
    async with answering(socket, ALLOWED) as came:
        status, _, _ = await asked(client, socket, "10", "claude.before", "/bin/false", message=message)
    assert status == 0
    assert came == [b"claude.before " + message]


async def test_without_a_guard_its_starter_is_asked(client: list[str], socket: Path) -> None:
    starter = ("/bin/sh", "-c", 'read line; echo "started: $line"; exit 2', "x")
    assert await asked(client, socket, "5", "claude.before", *starter, message=b"hello\n") == (
        2,
        b"started: hello\n",
        b"",
    )


@pytest.mark.parametrize("words", [("1",), ("1", "t"), ("1", "t", "/no/such/starter")])
async def test_a_client_that_is_called_wrongly_ends_with_2(client: list[str], socket: Path, words: list[str]) -> None:
    status, out, _ = await asked(client, socket, *words)
    assert (status, out) == (2, b"")


async def test_a_path_that_no_socket_can_have_ends_with_2(client: list[str], socket: Path) -> None:
    status, out, _ = await asked(client, socket.parent / ("x" * 200), "1", "t", "/bin/sh", "-c", "exit 2", "x")
    assert (status, out) == (2, b"")


def test_the_client_is_small(program: Path) -> None:
    assert program.stat().st_size < 16_000
