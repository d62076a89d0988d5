"""The log of anchors: it only grows, proves what it holds, and takes hashes of the recorders that it knows."""

from __future__ import annotations

import shutil
import urllib.error
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.canonical import canonical
from remit.errors import UsageError
from remit.evidence.anchors import MOST, signed_text
from remit.evidence.note import encoded
from remit.parts.audit.anchoring.client import AnchorClient, ProvenLog
from remit.parts.recorder.witness import AnchorLog, open_anchors
from remit_testing.clock import ManualClock
from tests.parts.audit.anchoring.log import LOG, holder, leaves, log_in

ANN, EVE = holder(5), holder(6)


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 200), max_size=40), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_each_state_continues_every_earlier_one_and_proves_what_it_holds(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    states, held = [ProvenLog()], dict[int, None]()
    for batch in batches:
        with log_in(folder, ANN) as client:  # opened again each time: what it answered is kept
            held |= dict.fromkeys(batch)
            newest = [client.register(leaves(batch), ANN, seen) for seen in states]  # raises for a wrong proof
            assert {one.size for one in newest} == {len(held)}
            states.append(newest[0])
            said = client.prove(leaves(range(201)))
            assert {int(one.leaf, 16): one.index for one in said.entries} == {
                number: place for place, number in enumerate(held)
            }


def _signed(hashes: list[str], by: Any = ANN, **changed: Any) -> bytes:
    asked = {"key": by.name, "leaves": hashes, "signature": encoded(by.sign(signed_text(hashes)))}
    return msgspec.json.encode({**asked, **changed})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (_signed(leaves([1]), EVE), 403),
        (_signed(leaves([1]), key=EVE.name), 403),
        (_signed(leaves([1]), signature=""), 403),
        (_signed(leaves([1]), leaves=leaves([2])), 403),
        (_signed(leaves([1]), old=9), 409),
        (_signed(leaves([1]), old=-1), 400),
        (_signed(leaves([1]), more=1), 400),
        (_signed(["AB" * 32]), 400),
        (_signed(leaves(range(MOST + 1))), 400),
        (b"", 400),
        (b"[]", 400),
    ],
)
def test_what_a_recorder_did_not_sign_is_refused(tmp_path: Path, body: bytes, status: int) -> None:
    log = AnchorLog(tmp_path / "anchors.db", [ANN.public], LOG, ManualClock())
    assert log.register(body).status == status
    assert log.prove(b'{"leaves":["' + b"x" * 64 + b'"]}').status == 400


def test_the_most_hashes_fit_into_a_request_and_a_log_that_was_put_back_is_noticed(tmp_path: Path) -> None:
    with log_in(tmp_path, ANN) as client:
        seen = client.register(leaves([1, 2, 3]), ANN, ProvenLog())
    shutil.copy(tmp_path / "anchors.db", tmp_path / "earlier.db")
    with log_in(tmp_path, ANN) as client:
        seen = client.register(leaves(range(10, 10 + MOST)), ANN, seen)
        assert len(client.prove(leaves(range(10, 10 + MOST))).entries) == MOST
        with pytest.raises(urllib.error.HTTPError, match="403"):
            client.register(leaves([7]), EVE, seen)
        with pytest.raises(ValueError, match="not signed"):
            AnchorClient(client.url, holder_key()).prove(leaves([1]))
    for other in ("anchors.db-wal", "anchors.db-shm"):
        (tmp_path / other).unlink(missing_ok=True)
    shutil.copy(tmp_path / "earlier.db", tmp_path / "anchors.db")
    with log_in(tmp_path, ANN) as client:
        with pytest.raises(ValueError, match="put back"):
            client.register(leaves([4]), ANN, seen)
        with pytest.raises(ValueError, match="put back"):
            client.register(leaves(range(2_000, 2_000 + MOST)), ANN, seen)


def holder_key() -> Any:
    """The key of another log."""
    return LOG.key._replace(public=EVE.public)


def test_it_publishes_its_key_and_names_a_file_that_holds_none(tmp_path: Path) -> None:
    place = tmp_path / f"{ANN.name}.pub"
    place.write_bytes(ANN.published()[place.name])
    assert [*open_anchors(tmp_path, [place], LOG, ManualClock())] == ["/anchors/register", "/anchors/prove"]
    assert len([*tmp_path.glob("*.pub")]) == 2
    for wrong in (b"", b"\xff", canonical({"a": 1})):
        place.write_bytes(wrong)
        with pytest.raises(UsageError):
            open_anchors(tmp_path, [place], LOG, ManualClock())
