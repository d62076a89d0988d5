"""The witness's protocol (c2sp.org/tlog-witness): each answer that it names, over HTTP, and its own notes."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from remit.evidence.merkle import Tree, proof
from remit.evidence.note import Checkpoint, NoteKey, encoded, notes_in, signed_by
from remit.evidence.proofs import leaf_of
from remit.journal.signing_key import is_signature
from remit_testing.clock import ManualClock
from tests.parts.recorder.world import WitnessServer, signer
from tests.patience import PATIENCE_S

LEAVES = [leaf_of(str(number).encode()) for number in range(20)]
LOG = signer("log.example", 1)
FOREIGN = signer("log.example", 2)


def checkpoint(size: int, leaves: Sequence[bytes] = LEAVES) -> Checkpoint:
    return Checkpoint("log.example", size, Tree().grown(leaves[:size]).root)


def request(old: int, size: int, *, by: object = LOG, hashes: Sequence[bytes] | None = None) -> bytes:
    given = proof(Tree().grown(LEAVES[:old]), LEAVES[old:size]) if hashes is None else hashes
    new = checkpoint(size)
    lines = [f"old {old}", *(encoded(one) for one in given)]
    return ("\n".join(lines) + "\n\n" + new.signed([by.line(new)])).encode()  # type: ignore[attr-defined] # a signer


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessServer]:
    with WitnessServer.running(tmp_path, ManualClock()) as running:
        running.logs.append(LOG.key)
        yield running


def ask(witness: WitnessServer, body: bytes, path: str = "/add-checkpoint") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", witness.server.server_port, timeout=PATIENCE_S)
    connection.request("POST", path, body)
    answer = connection.getresponse()
    found = answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    connection.close()
    return found


def test_it_cosigns_what_continues_what_it_holds_and_keeps_it_first(witness: WitnessServer) -> None:
    for old, size in ((0, 3), (3, 3), (3, 8), (8, 20)):
        status, _, lines = ask(witness, request(old, size))
        assert status == 200
        assert (
            signed_by(checkpoint(size), lines.splitlines(), witness.signer.key, is_signature)
            == ManualClock().now() // 1_000_000
        )
        (held,) = notes_in(witness.held("log.example"))
        assert held.checkpoint == checkpoint(size)
        assert held.signed_by(LOG.key, is_signature) == 0
        assert held.signed_by(FOREIGN.key, is_signature) is None


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (request(0, 8), 409, "5\n"),
        (request(8, 20), 409, "5\n"),
        (request(5, 8, hashes=[]), 422, "does not continue"),
        (request(5, 8, hashes=LEAVES[:3]), 422, "does not continue"),
        (request(5, 8, by=FOREIGN), 403, "not signed"),
        (request(9, 8, hashes=[]), 400, "larger"),
        (request(5, 8).replace(b"old 5", b"old 05"), 400, "not the size"),
        (request(5, 8).replace(b"old 5", b"new 5"), 400, "not the size"),
        (request(5, 8).replace(b"\n\n", b"\nAAAA\n\n", 1), 400, "not the size"),
        (b"", 400, "not the size"),
        (b"\xff\xfe\n\n\n", 400, "not the size"),
        (request(5, 8).replace(b"log.example\n", b"other.example\n"), 404, "no such log"),
        (b"x" * 70_000, 413, "64 KiB"),
    ],
    ids=lambda value: str(value)[:24] if isinstance(value, str) else "",
)
def test_everything_else_is_refused_and_changes_nothing(
    witness: WitnessServer, body: bytes, status: int, text: str
) -> None:
    assert ask(witness, request(0, 5))[0] == 200
    held = witness.held("log.example")
    answer = ask(witness, body)
    assert (answer[0], text in answer[2]) == (status, True)
    assert (answer[1] == "text/x.tlog.size") == (status == 409)
    assert witness.held("log.example") == held


def test_another_root_of_the_same_size_is_refused(witness: WitnessServer) -> None:
    assert ask(witness, request(0, 5))[0] == 200
    other = checkpoint(5, LEAVES[1:])
    body = f"old 5\n\n{other.signed([LOG.line(other)])}".encode()
    assert ask(witness, body)[:2] == (409, "text/x.tlog.size")


def test_a_folder_that_somebody_else_wrote_is_not_gone_on_from(witness: WitnessServer) -> None:
    forged = checkpoint(2)
    place = witness.witness.place("log.example")
    place.write_text(forged.signed([LOG.line(forged)]), encoding="utf-8")
    assert ask(witness, request(2, 5))[0] == 500
    assert ask(witness, b"", "/elsewhere")[0] == 404


def test_keys_are_written_as_c2sp_writes_them() -> None:
    for key in (LOG.key, signer("witness.example", 3, 4).key):
        assert NoteKey.parse(str(key)) == key
    for wrong in ("", "log.example", str(LOG.key)[:-1], str(LOG.key).replace("log", "dog"), f"a b{LOG.key}"):
        with pytest.raises(ValueError, match="it"):
            NoteKey.parse(wrong)


def test_a_torn_note_is_left_out_and_those_beside_it_are_read() -> None:
    one, two = checkpoint(3), checkpoint(8)
    first, second = one.signed([LOG.line(one)]), two.signed([LOG.line(two)])
    for cut in range(len(first)):
        found = [
            note.checkpoint
            for note in notes_in(f"\n{second}\n{first[:cut]}\n{second}")
            if note.signed_by(LOG.key, is_signature) == 0
        ]
        assert found[0] == two
        assert set(found) <= {one, two}
        assert len(found) >= 2
