"""Stamps of an authority (RFC 3161) over checkpoints: OpenSSL's own, over HTTP on this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import msgspec
import pytest

from remit.clock import SECOND
from remit.evidence.note import Checkpoint, encoded, notes_in
from remit.journal.blobs import pack
from remit.journal.sqlite.store import SqliteStore
from remit.parts.recorder.keys import check_answer, is_over, query, roots_in, stamped_at
from remit.parts.recorder.publisher import PublishedState
from remit.parts.recorder.wiring import close
from remit_testing.journal.storage import note
from tests.cli.conftest import Project, project  # noqa: F401 - a fixture
from tests.parts.recorder.world import World

CONFIGURATION = """
[req]
distinguished_name = none
[none]
[authority]
extendedKeyUsage = critical,timeStamping
basicConstraints = CA:false
[tsa]
default_tsa = own
[own]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ess_cert_id_alg = sha256
"""
OPENSSL = shutil.which("openssl") or ""
HERE = Checkpoint("log.example", 3, b"x" * 32)
OTHER = Checkpoint("log.example", 4, b"x" * 32)


class Authority:
    """A time-stamping authority with a root certificate of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.answers = folder, list[bytes]()
        self.spoils = b""
        """An answer in place of a stamp."""
        folder.mkdir()
        (folder / "ca.cnf").write_text(CONFIGURATION, encoding="ascii")
        new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config ca.cnf"
        self._openssl(f"req -x509 {new} -keyout ca.key -out ca.pem -days 36500 -subj /CN={name}")
        self._openssl(f"req {new} -keyout own.key -out own.csr -subj /CN={name}-stamps")
        signed = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile ca.cnf -extensions authority"
        self._openssl(f"x509 -req -in own.csr -out own.pem {signed}")
        self.roots = str(folder / "ca.pem")

    def answer(self, asked: bytes) -> bytes:
        (self.folder / "query").write_bytes(asked)
        self._openssl("ts -reply -config ca.cnf -queryfile query -signer own.pem -inkey own.key -out answer")
        self.answers.append(self.spoils or (self.folder / "answer").read_bytes())
        return self.answers[-1]

    def reads(self, stamp: bytes, text: str) -> bool:
        """Whether OpenSSL takes a stamp over a text for one of this authority."""
        (self.folder / "stamp").write_bytes(stamp)
        (self.folder / "text").write_text(text, encoding="utf-8")
        return self._openssl("ts -verify -in stamp -data text -CAfile ca.pem", check=False) == 0

    def _openssl(self, words: str, *, check: bool = True) -> int:
        done = subprocess.run([OPENSSL, *words.split()], cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done.returncode


class Served(NamedTuple):
    authority: Authority
    url: str


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    if not OPENSSL:
        pytest.skip("openssl is not installed")
    folder, served, servers = tmp_path_factory.mktemp("authorities"), list[Served](), list[ThreadingHTTPServer]()
    for name in ("one", "two"):
        authority = Authority(folder / name, name)

        class Handler(BaseHTTPRequestHandler):
            own = authority

            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                right = self.headers["Content-Type"] == "application/timestamp-query"
                data = self.own.answer(asked) if right else b""
                self.send_response(200 if right else 415)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_request(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        served.append(Served(authority, f"http://127.0.0.1:{server.server_port}/"))
    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_stamp_is_for_its_checkpoint_and_follows_from_its_root(authorities: list[Served]) -> None:
    (one, _), (two, _) = authorities
    asked = query(HERE)
    answer = one.answer(asked.as_bytes())
    roots, others = roots_in(one.roots, "roots"), roots_in(two.roots, "roots")
    check_answer(asked, answer, HERE, roots)
    at = stamped_at(answer, HERE, roots)
    assert at is not None
    assert at % SECOND == 0
    assert stamped_at(answer, HERE, others) is None
    assert stamped_at(answer, OTHER, roots) is None
    assert (is_over(answer, HERE), is_over(answer, OTHER), is_over(b"", HERE)) == (True, False, False)
    assert (one.reads(answer, HERE.body), one.reads(answer, OTHER.body)) == (True, False)
    for wrong, told in ((query(HERE), HERE), (asked, OTHER)):
        with pytest.raises(OSError, match="not for this checkpoint"):
            check_answer(wrong, answer, told, [])
    with pytest.raises(OSError, match="does not follow from"):
        check_answer(asked, answer, HERE, others)
    with pytest.raises(OSError, match="cannot be read"):
        check_answer(asked, b"nonsense", HERE, [])
    with pytest.raises(OSError, match="refuses"):
        check_answer(asked, one.answer(b"nonsense"), HERE, [])


async def test_checkpoints_are_stamped_and_verify_says_since_when(tmp_path: Path, authorities: list[Served]) -> None:
    (one, url), (two, _) = authorities
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    world.authority, world.roots = url, one.roots
    process = world.start()
    one.answers.clear()
    for number in range(3):
        await process.journal.post(f"job/{number}", "job", note(1))
        await process.look(at_once=True)
    assert len(one.answers) == 1, "it is asked once an hour"
    await process.journal.post("job/last", "job", note(1))
    await process.end()
    assert len(one.answers) == 2, "and in the end"
    answer, codes, findings = await world.verify()
    newest = notes_in(world.notes.read_text(encoding="utf-8"))[-1].checkpoint
    at = stamped_at(one.answers[-1], newest, roots_in(one.roots, "roots"))
    assert (answer, codes, findings.stamps) == ("whole", [], 2)
    assert (findings.stamped, findings.stamped_at) == (newest.size, at)
    world.roots = two.roots
    answer, codes, findings = await world.verify()
    assert (answer, codes, findings.stamps, findings.stamped) == ("whole", [], 2, 0), "a stranger's is none"


async def test_a_stamp_for_another_checkpoint_is_found(tmp_path: Path, authorities: list[Served]) -> None:
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    process = world.start()
    await process.journal.post("job/1", "job", note(1))
    await process.look(at_once=True)
    stamp = authorities[0].authority.answer(query(OTHER).as_bytes())
    (first,) = notes_in(world.elsewhere)
    process.publisher.published = PublishedState(
        stamped=first.checkpoint.size, stamp=pack(msgspec.json.encode(encoded(stamp)))
    )
    await process.journal.post("job/2", "job", note(1))
    await process.end()
    answer, codes, _ = await world.verify()
    assert (answer, len(codes)) == ("rejected", 1)
    assert "the stamp of the checkpoint over 2 leaves is not for it" in codes[0]


async def test_an_authority_that_fails_holds_nothing_up_and_is_named(
    tmp_path: Path, authorities: list[Served], caplog: pytest.LogCaptureFixture
) -> None:
    authority, url = authorities[0]
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    world.authority, authority.spoils = url, b"no stamp"
    process = world.start()
    await process.journal.post("job/1", "job", note(1))
    await process.look(at_once=True)
    assert "its answer cannot be read" in process.publisher.failures["the stamps"]
    assert notes_in(world.elsewhere), "the second place has it"
    authority.spoils = b""
    await process.publisher.publish()
    assert process.publisher.failures == {}
    authority.spoils = b"no stamp"
    await process.journal.post("job/2", "job", note(1))
    await close(process.recorder, process.publisher)
    await process.journal.close()
    authority.spoils = b""
    assert "the last checkpoint: the stamps: its answer cannot be read" in caplog.text
    assert (await world.verify())[:2] == ("whole", [])


@pytest.mark.slow
def test_the_command_says_when_it_was_stamped_and_hands_stamps_out(
    project: Project,  # noqa: F811 - the fixture
    authorities: list[Served],
) -> None:
    authority, url = authorities[0]
    project.env |= {"XDG_DATA_HOME": str(project.folder / "data"), "REMIT_RECORDER_ORIGIN": "log.example"}
    project.env |= {"REMIT_RECORDER_STAMP_URL": url}
    project.here("recorder", "key")
    project.job("greet", "--name", "ann")
    (note,) = notes_in(project.here("recorder", "sign").out)
    size = note.checkpoint.size
    said = project.here("verify", "--stamp-roots", authority.roots)
    assert f"an authority stamped {size} leaves at 20" in said.out
    assert "no root certificate is known" in project.here("verify").err
    assert project.here("recorder", "checkpoints", "--stamps", str(project.folder / "out")).status == 0
    stamp, text = project.folder / f"out/{size}.tsr", project.folder / f"out/{size}.checkpoint"
    assert authority.reads(stamp.read_bytes(), text.read_text(encoding="utf-8"))
    project.env["REMIT_RECORDER_STAMP_ROOTS"] = str(project.folder / "remit.toml")
    assert "it holds no certificate in PEM" in project.here("verify").err
