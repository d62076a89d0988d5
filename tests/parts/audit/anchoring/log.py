"""A log of anchors that listens on this machine, and its client."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit.evidence.note import WITNESS
from remit.parts.audit.anchoring.client import AnchorClient
from remit.parts.audit.formats.keys import OperatorSigner
from remit.parts.recorder.witness import AnchorLog, server_of
from remit_testing.clock import ManualClock
from tests.parts.recorder.world import signer

LOG = signer("witness.example", 99, WITNESS)


@contextmanager
def log_in(folder: Path, *holders: OperatorSigner) -> Iterator[AnchorClient]:
    """A client of a log that keeps in a folder what the holders of these keys register."""
    log = AnchorLog(folder / "anchors.db", [one.public for one in holders], LOG, ManualClock())
    server = server_of({"/anchors/register": log.register, "/anchors/prove": log.prove}, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield AnchorClient(f"http://127.0.0.1:{server.server_port}", LOG.key)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        log.close()


def holder(seed: int) -> OperatorSigner:
    """Someone who signs exports, the same for the same seed."""
    return OperatorSigner(Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big")))


def leaves(numbers: Sequence[int]) -> list[str]:
    """Hashes, one for each number."""
    return [f"{number:064x}" for number in numbers]
