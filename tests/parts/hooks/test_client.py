"""Both clients end with 2 on every failure, and print nothing then that an agent could take for leave."""

from __future__ import annotations

import asyncio
import platform
import re
import shlex
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


@pytest.fixture(params=["program", "aarch64", "python"])
def client(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "python":
        return [sys.executable, "-I", "-S", str(SOURCE / "client.py")]
    machine = platform.machine() if request.param == "program" else request.param
    emulator = [] if machine == platform.machine() else [shutil.which(f"qemu-{machine}") or ""]
    if "" in emulator:
        pytest.skip(f"nothing here runs programs of {machine}")
    return [*emulator, str(SOURCE / f"client-{machine}")]


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


@pytest.mark.parametrize(
    ("machine", "compiler"), [("x86_64", "x86_64-linux-gnu-gcc-12"), ("aarch64", "aarch64-linux-gnu-gcc-12")]
)
def test_what_ships_is_what_its_source_becomes(machine: str, compiler: str, tmp_path: Path) -> None:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"{compiler} is not here")
    source = (SOURCE / "client.c").read_text("utf-8")
    [options] = re.findall(r"gcc (.*) -o", source)
    words = [found, *shlex.split(options), "-Wall", "-Wextra", "-Werror", "-o", "made", str(SOURCE / "client.c")]
    subprocess.run(words, check=True, cwd=tmp_path)
    assert (tmp_path / "made").read_bytes() == (SOURCE / f"client-{machine}").read_bytes()
